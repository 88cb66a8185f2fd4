"""Adapt files: read the domains, fit the estimator of a method, return its model.

If every domain comes as data, this is ``estimator.fit`` on the concatenated tables. If some domain
comes as a ``.gmm`` file, it is ``estimator.fit_mixtures``: the same code, entered one step later.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.validation import check_choice, check_positive_int, check_random_state
from mixda.chunks import Domains, RowSource, from_arrays, running_on
from mixda.em import refine_mixture
from mixda.estimators import COMMANDS, MultiSourceClassifier
from mixda.mixture import MIN_COMPONENT_ROWS, Mixture
from mixda.model import AdaptedModel
from mixda.tables import PathArgument, Samples, one_kind_of_classes
from mixda.workflow._check import stored_checks, warn_about
from mixda.workflow._inputs import Inputs, Reading, check_inputs, open_inputs, read_inputs
from mixda.workflow._labels import LabelColumns
from mixda.workflow._methods import make_estimator

_MAX_REFERENCE_ROWS = 20_000  # of a target that does not fit in memory


def adapt_files(
    sources: Sequence[PathArgument],
    target: PathArgument,
    label: str | Sequence[str] | None = None,
    domain: str | None = None,
    *,
    method: str = "auto",
    components: int | str | None = None,
    target_components: int | str | None = None,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    missing: str = "mixture",
    min_component_rows: int = MIN_COMPONENT_ROWS,
    allow_exposed_rows: bool = False,
    ordinal: Mapping[str, Sequence[str]] | None = None,
    rename_labels: Mapping[str, str] | None = None,
    target_labels: str | None = None,
    force: bool = False,
    encoder: str | None = "auto",
    scale: str | None = "auto",
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    max_rows: int | None = None,
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: PathArgument | None = None,
    verbose: bool = False,
) -> AdaptedModel:
    """Adapt labeled sources to an unlabeled target; each is a data file or a ``.gmm`` file.

    With data files for all domains, the model is that of the estimator fitted to the same arrays:
    ``GMMDaDiL(random_state=seed).fit(X, y, sample_domain)`` for
    ``method="dadil"``.

    Parameters
    ----------
    sources : sequence of paths, patterns or folders
        Each file is a domain, and so is each folder. With `domain`, each value of that column is.
    target : path, or the name of a domain
        A name if the rows of the target are in the files of the sources. The label column of the
        target is never read, unless `target_labels` names it.
    label : str or sequence of str
        Column of the classes. "b.csv:type" is the column of one file.
    domain, columns, drop
        How to read data files, see `fit_files`. By default, columns of text are categories, and
        identifiers, timestamps and columns that are constant within each domain are left out;
        `columns` brings them back. Categories are one-hot encoded with the levels of the sources.
    missing : {"mixture", "drop", "error"}
        Keep rows with missing values and integrate the gaps out, leave these rows out, or raise
        an error.
    ordinal : dict of str to sequence of str, optional
        Columns whose levels have an order, from the lowest to the highest.
    rename_labels : dict of str to str, optional
        New names of classes, to make the names of several files agree.
    target_labels : str, optional
        Labels of some rows of the target, which "auto" learns from: a column of the target, empty
        where there is no label, or a file that `label_file` wrote and you filled in.
    force : bool
        Adapt even if `mixda.check` finds blockers.
    method : str
        A key of `mixda.estimators.COMMANDS`. "auto" is `AutoMSDA`, which compares several
        candidates on the samples and chooses encoder, scale and components itself. If one of the
        files is a ``.gmm``, "auto" is "dadil".
    components, target_components : int or "bic", optional
        `n_components` and `target_components` of the estimator. Default: those of the estimator.
    encoder : {"auto", "lda", "mlp", None}
        Learn features from the samples of the sources first: linear discriminants or a small
        network. Requires data files. "auto" is the default of the estimator; for "dadil", "wbt" and
        "otda" that is "lda", and None if one of the files is a ``.gmm``.
    scale : {"auto", "domain", "sources", None}
        Standardize each domain by its own moments, all by those of the sources, or not at all.
        "auto" is the default of the estimator: "domain" for "dadil", "wbt" and "otda", else
        "sources".
    min_component_rows : int
        For the methods over mixtures, `min_component_rows` of the estimator: components are
        merged until the mean of each averages at least this many rows.
    allow_exposed_rows : bool
        Accept classes of fewer rows, or of equal rows, instead of raising an error.
    options : dict, optional
        Other parameters of the estimator.
    seed : int
        `random_state` of the estimator.
    max_rows : int, optional
        Most rows of each domain that are held in memory, see `mixda.chunks.Domains`. Mixtures of
        larger domains are fitted to all their rows, which are read once per iteration; everything
        else uses a stratified sample of this size.
    n_jobs, client
        Where the rows of larger domains are read, see `mixda.fit_mixture`. On a Dask cluster,
        the members of "auto" are fitted there as well.
    checkpoint : path, optional
        Folder for intermediate results, so that the same call can resume after an interruption.
        Used by the methods over mixtures and by "auto". Delete it when the model is saved.
    verbose : bool
        Show progress on a terminal.

    Returns
    -------
    AdaptedModel

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from mixda.workflow import adapt_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, shift in (("lab", 0.0), ("plant", 1.0)):
    ...         X, y = shift + np.array([[(k ^ 1) / 2] for k in range(20)]), np.repeat([0, 1], 10)
    ...         np.savez(pathlib.Path(folder, f"{name}.npz"), X=X, y=y)
    ...     sources, target = [f"{folder}/lab.npz"], f"{folder}/plant.npz"
    ...     model = adapt_files(sources, target, "y", method="wbt", components=1)
    >>> model.predict([[1.5], [9.5]])
    array([0, 1])
    """
    check_choice(method, "method", tuple(COMMANDS))
    check_choice(encoder, "encoder", ("auto", "lda", "mlp", None))
    check_choice(scale, "scale", ("auto", "domain", "sources", None))
    check_random_state(seed)
    check_choice(missing, "missing", ("mixture", "drop", "error"))
    reading = Reading(
        LabelColumns.parse(label),
        domain,
        columns,
        drop,
        missing,
        None if max_rows is None else check_positive_int(max_rows, "max_rows"),
        ordinal or {},
        rename_labels or {},
        target_labels,
    )
    opened = open_inputs(sources, target, reading)
    checks = check_inputs(opened, reading, measure_distances=False)
    if checks is not None and not force:
        checks.raise_for_blockers("or go on anyway (force, --force)")
    inputs = read_inputs(opened, None if checks is None else checks.encoding, reading)
    if method == "auto" and inputs.mixtures:
        method = "dadil"
    estimator = make_estimator(
        method,
        inputs,
        options or {},
        encoder=encoder,
        scale=scale,
        components=components,
        target_components=target_components,
        min_component_rows=check_positive_int(min_component_rows, "min_component_rows"),
        seed=seed,
        checkpoint=checkpoint,
        verbose=verbose,
    )
    if inputs.target_labels is not None:
        _use_target_labels(estimator, method, inputs)
    if checks is not None:
        warn_about(checks)
    with running_on(client) as where:
        data = _domains(inputs, max_rows, n_jobs, where, verbose)
        if inputs.mixtures:
            names = _fit_mixtures(estimator, inputs, data)
        elif data is not None:
            names = _fit_large(estimator, data)
        else:
            names = _fit(estimator, inputs)
    model: AdaptedModel = estimator.to_model(domain_names=[*inputs.sources, inputs.target_name])
    model.check_exposed(allow_exposed_rows, min_component_rows)
    model = replace(model, settings={**model.settings, **stored_checks(checks)})
    return _with_facts_of_files(model, names, inputs, data)


def _with_facts_of_files(
    model: AdaptedModel, names: Sequence[str] | None, inputs: Inputs, data: Domains | None
) -> AdaptedModel:
    """Add the names of the features, the encoding of the columns and the target's reference."""
    if names is not None:
        model = replace(model, feature_names=tuple(names))
    if isinstance(inputs.target, Samples):
        model = model.with_reference(inputs.target.X)
    elif data is not None and not isinstance(inputs.target, Mixture):
        model = model.with_reference(data.samples[-1].thinned(_MAX_REFERENCE_ROWS).X)
    numeric = inputs.encoding is None or inputs.encoding.numeric
    return replace(model, columns=None if numeric else inputs.encoding)


def _use_target_labels(estimator: MultiSourceClassifier, method: str, inputs: Inputs) -> None:
    if "target_labels" not in estimator.get_params(deep=False):
        raise MixdaError(
            f"target_labels (--target-labels): method {method!r} does not learn from labels of the "
            "target; use method auto, or leave them out."
        )
    estimator.set_params(target_labels="use")
    if inputs.is_large:
        raise MixdaError(
            "target_labels (--target-labels) needs all rows in memory, but a source has more "
            "than max_rows (--max-rows); raise it, or leave the labels out."
        )


def _fit(estimator: MultiSourceClassifier, inputs: Inputs) -> tuple[str, ...]:
    """Fit the estimator to samples; return the feature names."""
    domains = [*inputs.sources.values(), inputs.target]
    samples = [domain for domain in domains if isinstance(domain, Samples)]
    labels = one_kind_of_classes([part.y for part in samples[:-1] if part.y is not None])
    own = np.full(len(samples[-1].X), labels[0][0])  # `fit` drops the target's rows of y
    if inputs.target_labels is not None:
        own = np.full(len(own), None, dtype=object)
        known = inputs.target_labels != own
        given = inputs.target_labels[known].astype(str)
        *labels, own[known] = one_kind_of_classes([*labels, given])
    ids = np.repeat([*range(len(samples) - 1), -1], [len(part.X) for part in samples])
    X = np.concatenate([part.X for part in samples])
    estimator.fit(X, np.concatenate([*labels, own]), sample_domain=ids)
    return samples[0].feature_names


def _domains(
    inputs: Inputs, max_rows: int | None, n_jobs: int | None, client: Any, verbose: bool
) -> Domains | None:
    """Return all domains that are not mixtures as sources of any size; None if all are small."""
    if not inputs.is_large:
        return None
    rows: dict[int, RowSource] = {}
    for key, domain in [*enumerate(inputs.sources.values()), (-1, inputs.target)]:
        if isinstance(domain, Samples):
            source = replace(from_arrays(domain.X, domain.y), text_labels=True)
            rows[key] = replace(source, feature_names=domain.feature_names)
        elif isinstance(domain, RowSource):
            rows[key] = domain
    return Domains(rows, max_rows, n_jobs, client, verbose)


def _fit_large(estimator: MultiSourceClassifier, data: Domains) -> tuple[str, ...] | None:
    """Fit the estimator to data of any size; return the feature names."""
    _note_left_out(data)
    estimator.fit(data)
    return data.feature_names


def _note_left_out(data: Domains) -> None:
    """Say how many rows were left out because a value is missing."""
    n_left_out = sum(sample.n_left_out for sample in data.samples.values())
    if n_left_out:
        warnings.warn(f"rows left out because a value is missing: {n_left_out:,}.", stacklevel=3)


def _fit_mixtures(estimator: Any, inputs: Inputs, data: Domains | None) -> tuple[str, ...] | None:
    """Fit the estimator to mixtures, those given and those of data; return the feature names."""
    sources = [
        domain if isinstance(domain, Mixture) else _summarize(estimator, name, domain, key, data)
        for key, (name, domain) in enumerate(inputs.sources.items())
    ]
    for name, mixture in zip(inputs.sources, sources, strict=True):
        if mixture.classes is None:
            raise MixdaError(
                f"source {name!r} is a mixture without labels; fit it again with the column of "
                "the classes (label, --label)."
            )
    classes = one_kind_of_classes([np.asarray(mixture.classes) for mixture in sources])
    sources = [replace(m, classes=names) for m, names in zip(sources, classes, strict=True)]
    target = inputs.target
    if not isinstance(target, Mixture):
        target = _summarize(estimator, inputs.target_name, target, -1, data, sources)
    estimator.fit_mixtures(sources, target)
    return sources[0].feature_names


def _summarize(
    estimator: Any,
    name: str,
    domain: Samples | RowSource,
    key: int,
    data: Domains | None,
    sources: Sequence[Mixture] = (),
) -> Mixture:
    """Return the mixture of a domain; that of a sample is refined over all rows."""
    samples: Any = domain if isinstance(domain, Samples) or data is None else data.samples[key]
    mixture: Mixture = estimator.domain_mixture(samples.X, samples.y, sources)
    if data is not None and data.samples[key].is_thinned:
        refined = refine_mixture(
            estimator.checkpoint,
            data.stream(key),
            mixture,
            digest=data.samples[key].digest,
            min_component_rows=estimator.min_component_rows,
            allow_exposed_rows=True,
            verbose=estimator.verbose,
            n_jobs=data.n_jobs,
            client=data.client,
        )
        classes = mixture.classes
        mixture = replace(refined, classes=classes, info={**mixture.info, **refined.info})
    return replace(mixture, feature_names=domain.feature_names, info={**mixture.info, "name": name})
