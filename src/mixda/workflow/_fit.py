"""From files to files: fit, adapt, predict. What the command line calls, and scripts may.

Everything goes through `mixda.tables` on the way in and out, and through mixtures in between:
data become mixtures exactly as `fit_files` makes them, so that adapting data files and adapting
the mixtures fitted to them give the same model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.validation import check_choice, check_random_state
from mixda.chunks import from_files
from mixda.estimators import COMMANDS
from mixda.mixture import Mixture
from mixda.model import AdaptedModel
from mixda.tables import (
    PathArgument,
    Samples,
    Table,
    check_different,
    check_samples,
    check_writable,
    note_dropped,
    one_kind_of_classes,
    open_table,
    write_table,
)
from mixda.workflow._inputs import (
    Inputs,
    Reading,
    fit_domain,
    fit_domains_of,
    note_rare_classes,
    read_inputs,
    split_domains,
    stem,
)
from mixda.workflow._methods import make_estimator
from mixda.workflow._predictions import check_kept, output_names, predicted_rows

_LARGE_VALUES = 50_000_000  # 400 MB: larger tables stay on disk and are read once per iteration


def fit_files(
    paths: PathArgument | Sequence[PathArgument],
    label: str | None = None,
    domain: str | None = None,
    *,
    components: int | str | None = None,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    missing: str = "error",
    seed: int = 0,
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: PathArgument | None = None,
    resume: bool = False,
    verbose: bool = False,
) -> dict[str, Mixture]:
    r"""Fit one mixture to the rows of some files, or one to each domain in them.

    Parameters
    ----------
    paths : path, pattern, folder, or a sequence of these
        Files of one table, see `mixda.tables.open_table`.
    label : str, optional
        Column of the classes; without it the mixture is unlabeled.
    domain : str, optional
        Column of the names of the domains. Default: one domain, named after the first file.
    components : int or "bic", optional
        Per class if there is a label, else in all. Default 3 per class, or 30 in all but no more
        than one for ten rows.
    columns, drop : sequence of str
        The features, or columns that are none. Default: all columns of numbers.
    missing : "error" or "drop"
        What to do with rows that miss a value.
    seed : int
    n_jobs, client
        Where to fit, see `mixda.fit_mixture`. With one of them, or `resume`, or if the files are
        large, the rows are not held in memory but read once per iteration, with the same result.
    checkpoint : path, optional
        Where a fit that reads the rows again and again notes how far it is.
    resume : bool
        Go on from there, if the file exists; else it is deleted first.
    verbose : bool
        Show progress on a terminal.

    Returns
    -------
    dict of Mixture
        By name of the domain, in the units of the files.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mixda.workflow import fit_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "lab.csv")
    ...     _ = path.write_text("speed,state\n1.0,ok\n1.5,ok\n7.0,worn\n7.5,worn\n")
    ...     fit_files(path, label="state", components=1)
    {'lab': Mixture(n_components=2, n_features=1, classes=['ok', 'worn'])}
    """
    check_random_state(seed)
    check_different(label, domain)
    table = open_table(paths)
    if n_jobs is not None or client is not None or resume or _is_large(table):
        if checkpoint is not None and not resume:
            Path(checkpoint).unlink(missing_ok=True)
        source = from_files(paths, label, domain, columns=columns, drop=drop, missing=missing)
        where = {"n_jobs": n_jobs, "client": client, "checkpoint": checkpoint}
        name = stem(table.files[0])
        fitted = fit_domains_of(source, name, components, seed, verbose, **where)
        lost = (table.n_rows or 0) - sum(m.info["n_samples"] for m in fitted.values())
        note_dropped(
            {str(table.files[0]) + " …" * (len(table.files) > 1): lost} if lost > 0 else {}
        )
        return fitted
    samples = table.read(columns, label, domain, drop, missing)
    check_samples([samples], label)
    note_rare_classes(samples, components)
    return {
        name: fit_domain(name, part, components, seed, verbose)
        for name, part in split_domains(samples, stem(table.files[0])).items()
    }


def _is_large(table: Table) -> bool:
    """Whether the rows are better left on disk."""
    if table.n_rows is not None:
        return table.n_rows * len(table.columns) > _LARGE_VALUES
    return sum(file.stat().st_size for file in table.files) > 8 * _LARGE_VALUES


def adapt_files(
    sources: Sequence[PathArgument],
    target: PathArgument,
    label: str | None = None,
    domain: str | None = None,
    *,
    method: str = "auto",
    components: int | str | None = None,
    target_components: int | str | None = None,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    missing: str = "error",
    encoder: str | None = None,
    scale: str | None = "auto",
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    checkpoint: PathArgument | None = None,
    verbose: bool = False,
) -> AdaptedModel:
    """Adapt labeled sources to an unlabeled target, each a data file or a ``.gmm`` file.

    Parameters
    ----------
    sources : sequence of paths, patterns or folders
        Every file is a domain, and so is a folder; with `domain`, every value of that column.
    target : path, or the name of a domain
        The latter if the rows of the target are in the files of the sources. A label column of the
        target is not read.
    label, domain, columns, drop, missing, components, seed, verbose
        As in `fit_files`; they say how data files are read and become mixtures.
    target_components : int or "bic", optional
        Components of the target's mixture.
    method : str
        A key of `mixda.estimators.COMMANDS`. "auto" is `AutoMSDA`, which judges several candidates
        on the samples, and chooses encoder, scale and components by itself; with a ``.gmm``
        among the files it is "dadil".
    encoder : {"lda", "mlp", None}
        Learn features from the samples of the sources first; needs data files.
    scale : {"auto", "domain", "sources", None}
        Standardize by the moments of each domain, of all sources together, or not at all; "auto"
        is "sources".
    options : dict, optional
        More parameters of the estimator, those that have no parameter of their own here.
    checkpoint : path, optional
        Folder in which mixtures are kept that took more than a moment, so that the same call goes
        on after it was stopped; used by the methods over mixtures and by "auto". Delete it when
        the model is safe.

    Returns
    -------
    AdaptedModel
    """
    check_choice(method, "method", tuple(COMMANDS))
    check_choice(encoder, "encoder", ("lda", "mlp", None))
    check_choice(scale, "scale", ("auto", "domain", "sources", None))
    check_random_state(seed)
    inputs = read_inputs(sources, target, Reading(label, domain, columns, drop, missing))
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
        seed=seed,
        checkpoint=checkpoint,
        verbose=verbose,
    )
    if encoder is None and hasattr(estimator, "fit_mixtures"):
        same: dict[str, Any] = {"seed": seed, "checkpoint": checkpoint, "verbose": verbose}
        fit = partial(fit_domain, **same, n_init=estimator.n_init)
        parts, goal = _as_mixtures(inputs, fit, components, target_components)
        if target_components is None:
            estimator.set_params(target_components=goal.n_components)
        estimator.fit_mixtures(parts, goal)
        names = parts[0].feature_names
    else:
        names = _fit_samples(estimator, inputs)
    model: AdaptedModel = estimator.to_model(domain_names=[*inputs.sources, inputs.target_name])
    return model if names is None else replace(model, feature_names=tuple(names))


@dataclass(frozen=True)
class Prediction:
    """What `predict_file` did: rows written, without a label, and far from all known; classes."""

    rows: int
    missing: int
    far: int
    counts: dict[str, int]


def predict_file(
    model: AdaptedModel,
    paths: PathArgument | Sequence[PathArgument],
    output: PathArgument,
    *,
    keep: Sequence[str] = (),
    rows: int = 65_536,
    on_rows: Callable[[int, int | None], None] | None = None,
) -> Prediction:
    """Classify the rows of a table, batch by batch, into a csv or parquet file.

    Parameters
    ----------
    model : AdaptedModel
    paths : path, pattern, folder, or a sequence of these
        The columns may stand in any order, and there may be others.
    output : path
        Its columns: those of `keep`, ``label``, ``confidence`` (the largest probability),
        ``far`` (far from everything that the model knows), ``note``, and ``p_<class>``. Rows with
        a missing feature have a note and nothing else.
    keep : sequence of str
        Columns to copy.
    rows : int
        Rows at a time.
    on_rows : callable, optional
        Called after each batch with the rows done and the rows in all, if known.

    Returns
    -------
    Prediction
    """
    output = Path(output)
    check_writable(output)
    table = open_table(paths)
    if any(file.resolve() == output.resolve() for file in table.files):
        raise MixdaError(f"{output} is the file to predict; choose another name for the output.")
    features = table.features(model.feature_names)
    check_kept(keep, output_names(model))
    keep = list(dict.fromkeys(keep))
    twice = any(name in features for name in keep)  # read as numbers, and again as written
    tally = np.zeros(3 + len(model.classes), dtype=int)  # rows, missing, far, of each class

    def records() -> Iterator[Any]:
        copies = table.batches(keep, rows, as_written=keep)
        beside = [] if twice else keep
        for batch in table.batches([*features, *beside], rows, as_written=beside):
            written = next(copies) if twice else batch
            kept = {name: written.record.column(name) for name in keep}
            record, counts = predicted_rows(model, batch.matrix(features), kept)
            yield record
            tally[:] += counts
            if on_rows is not None:
                on_rows(int(tally[0]), table.n_rows)

    write_table(output, records())
    counts = dict(zip(map(str, model.classes), tally[3:].tolist(), strict=True))
    return Prediction(int(tally[0]), int(tally[1]), int(tally[2]), counts)


def report_file(
    model: AdaptedModel,
    output: PathArgument,
    paths: PathArgument | Sequence[PathArgument] | None = None,
    label: str | None = None,
) -> Path:
    """Write the report of a model, with the samples of some files and their labels if given.

    Parameters
    ----------
    model : AdaptedModel
    output : path
    paths : path, pattern, folder, or a sequence of these, optional
        Samples of the target; rows with missing values are left out.
    label : str, optional
        Column of the true classes, for the confusion matrix.

    Returns
    -------
    Path
    """
    from mixda.report import write_report

    if paths is None:
        if label is not None:
            raise MixdaError(f"label {label!r} needs data to be found in; give the data too.")
        return write_report(model, Path(output))
    table = open_table(paths)
    samples = table.read(list(model.feature_names), label, missing="drop")
    note_dropped(samples.dropped)
    return write_report(
        model,
        Path(output),
        samples.X,
        samples.y,
        row_numbers=samples.rows,
        n_dropped=sum(samples.dropped.values()),
    )


def output_paths(path: PathArgument, domains: Sequence[str], suffix: str = ".gmm") -> list[Path]:
    """Return where to write, one path per domain, or say at once that it will not do.

    The domain takes the place of ``{domain}``, else it follows a dash; a single unnamed domain
    (``""``) is written to `path` itself.

    Examples
    --------
    >>> from mixda.workflow import output_paths
    >>> [str(path) for path in output_paths("site.gmm", ["north", "south/2"])]
    ['site-north.gmm', 'site-south_2.gmm']
    """
    path = Path(path)
    if path.suffix.lower() != suffix:
        raise MixdaError(f"{path} must end in {suffix}, so that its kind is known.")
    if path.is_dir() or not path.parent.is_dir():
        raise MixdaError(f"{path} cannot be written: {path.parent} is not a folder.")
    if list(domains) == [""]:
        return [path]
    name = path.name if "{domain}" in path.name else f"{path.stem}-{{domain}}{path.suffix}"
    safe = [re.sub(r"[^\w.+-]", "_", domain) for domain in domains]
    if len(set(safe)) < len(safe):
        raise MixdaError(
            f"the domains {list(domains)!r} have names that are the same as file names; rename one."
        )
    return [path.with_name(name.replace("{domain}", word)) for word in safe]


def _as_mixtures(inputs: Inputs, fit: Callable[..., Mixture], n: Any, n_target: Any) -> Any:
    """Every domain as a mixture, data in the way of `fit_files`; classes all of one kind."""
    sources = [
        value if isinstance(value, Mixture) else fit(name, value, n)
        for name, value in inputs.sources.items()
    ]
    for name, mixture in zip(inputs.sources, sources, strict=True):
        if mixture.classes is None:
            raise MixdaError(
                f"the source {name!r} is a mixture without labels; fit it with the column of the "
                "classes (label, --label)."
            )
    classes = one_kind_of_classes([np.asarray(mixture.classes) for mixture in sources])
    sources = [replace(m, classes=names) for m, names in zip(sources, classes, strict=True)]
    if isinstance(inputs.target, Mixture):
        return sources, replace(inputs.target, labels=None, classes=None)
    return sources, fit(inputs.target_name, inputs.target, n_target)


def _fit_samples(estimator: Any, inputs: Inputs) -> tuple[str, ...]:
    """Fit an estimator to samples; the target's rows get a label that is never read."""
    parts = [*inputs.sources.values(), inputs.target]
    samples = [part for part in parts if isinstance(part, Samples)]
    labels = one_kind_of_classes([part.y for part in samples[:-1] if part.y is not None])
    y = np.concatenate([*labels, np.full(len(samples[-1].X), labels[0][0])])
    ids = np.repeat([*range(len(samples) - 1), -1], [len(part.X) for part in samples])
    estimator.fit(np.concatenate([part.X for part in samples]), y, sample_domain=ids)
    return samples[0].feature_names
