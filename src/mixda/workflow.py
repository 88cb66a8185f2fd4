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
from numpy.typing import NDArray

import mixda
from mixda._domains import (
    Inputs,
    PathArgument,
    Reading,
    fit_domain,
    fit_domains_of,
    read_inputs,
    split_domains,
    stem,
)
from mixda._validation import LARGEST, Array, check_choice, check_random_state
from mixda.chunks import from_files
from mixda.mixture import Mixture
from mixda.model import AdaptedModel
from mixda.tables import Batch, Samples, Table, check_writable, open_table, write_table

METHODS = {
    "auto": "AutoMSDA",
    "dadil": "GMMDaDiL",
    "wbt": "GMMWBT",
    "otda": "GMMOTDA",
    "source": "SourceOnly",
    "wjdot": "WJDOT",
    "jcpot": "JCPOT",
    "sample-wbt": "WBT",
    "sample-dadil": "DaDiL",
}

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
        Column of the classes; without it the mixture is unlabelled.
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
    table = open_table(paths)
    if n_jobs is not None or client is not None or resume or _is_large(table):
        if checkpoint is not None and not resume:
            Path(checkpoint).unlink(missing_ok=True)
        source = from_files(paths, label, domain, columns=columns, drop=drop, missing=missing)
        where = {"n_jobs": n_jobs, "client": client, "checkpoint": checkpoint}
        name = stem(table.files[0])
        return fit_domains_of(source, name, components, seed, verbose, **where)
    samples = table.read(columns, label, domain, drop, missing)
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
    verbose: bool = False,
) -> AdaptedModel:
    """Adapt labelled sources to an unlabelled target, each a data file or a ``.gmm`` file.

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
        One of `METHODS`. "auto" is `AutoMSDA`, which judges several candidates on the samples, and
        chooses encoder, scale and components by itself; with a ``.gmm`` among the files it is
        "dadil".
    encoder : {"lda", "mlp", None}
        Learn features from the samples of the sources first; needs data files.
    scale : {"auto", "domain", "sources", None}
        Standardise by the moments of each domain, of all sources together, or not at all; "auto"
        is "sources".
    options : dict, optional
        More parameters of the estimator.

    Returns
    -------
    AdaptedModel
    """
    check_choice(method, "method", tuple(METHODS))
    check_choice(encoder, "encoder", ("lda", "mlp", None))
    check_choice(scale, "scale", ("auto", "domain", "sources", None))
    check_random_state(seed)
    inputs = read_inputs(sources, target, Reading(label, domain, columns, drop, missing))
    if method == "auto" and inputs.mixtures:
        method = "dadil"
    if method == "auto":
        _check_left_to_auto(encoder, scale, components, target_components)
    estimator = _estimator(method, inputs, encoder, scale, options, seed, verbose)
    if encoder is None and hasattr(estimator, "fit_mixtures"):
        fit = partial(fit_domain, seed=seed, verbose=verbose)
        parts, goal = _as_mixtures(inputs, fit, components, target_components)
        if getattr(estimator, "class_prior", None) == "uniform":
            parts = [_balanced(part) for part in parts]
        estimator.fit_mixtures(parts, goal)
        names = parts[0].feature_names
    else:
        names = _fit_samples(estimator, inputs, components, target_components)
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
        raise ValueError(f"{output} is the file to predict; choose another name for the output.")
    features = table.features(model.feature_names)
    _check_kept(keep, _output_names(model))
    tally = np.zeros(3 + len(model.classes), dtype=int)  # rows, missing, far, of each class

    def records() -> Iterator[Any]:
        columns = list(dict.fromkeys([*features, *keep]))
        for batch in table.batches(columns, rows, as_written=keep):
            record, counts = _predicted(model, batch, features, keep)
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
    if paths is None:
        if label is not None:
            raise ValueError(f"label {label!r} needs data to be found in; give the data too.")
        return model.report(Path(output))
    table = open_table(paths)
    samples = table.read(list(model.feature_names), label, missing="drop")
    y = None if samples.y is None else _known_classes(samples.y, model.classes, table)
    return model.report(Path(output), samples.X, y)


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
        raise ValueError(f"{path} must end in {suffix}, so that its kind is known.")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: {path.parent} is not a folder.")
    if list(domains) == [""]:
        return [path]
    name = path.name if "{domain}" in path.name else f"{path.stem}-{{domain}}{path.suffix}"
    safe = [re.sub(r"[^\w.+-]", "_", domain) for domain in domains]
    if len(set(safe)) < len(safe):
        raise ValueError(
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
            raise ValueError(
                f"the source {name!r} is a mixture without labels; fit it with the column of the "
                "classes (label, --label)."
            )
    if len({np.asarray(mixture.classes).dtype.kind for mixture in sources}) > 1:
        sources = [replace(m, classes=np.asarray(m.classes).astype(str)) for m in sources]
    if isinstance(inputs.target, Mixture):
        return sources, replace(inputs.target, labels=None, classes=None)
    return sources, fit(inputs.target_name, inputs.target, n_target)


def _balanced(mixture: Mixture) -> Mixture:
    """Give all classes that occur the same mass: the target's proportions may well be others."""
    labels, shares = np.asarray(mixture.labels), mixture.class_proportions
    weights = mixture.weights * (labels[:, shares > 0] @ (1.0 / shares[shares > 0]))
    return replace(mixture, weights=weights / weights.sum())


def _check_left_to_auto(
    encoder: str | None, scale: str | None, components: Any, target_components: Any
) -> None:
    given = {
        "encoder": encoder is not None,
        "scale": scale != "auto",
        "components": components is not None,
        "target_components": target_components is not None,
    }
    for name in [name for name in given if given[name]]:
        raise ValueError(
            f"method 'auto' chooses {name} by itself; leave it out, or name a method, as dadil."
        )


def _estimator(
    method: str,
    inputs: Inputs,
    encoder: str | None,
    scale: str | None,
    options: Mapping[str, Any] | None,
    seed: int,
    verbose: bool,
) -> Any:
    class_name = METHODS[method]
    kind = getattr(mixda, class_name)
    if inputs.mixtures and (encoder is not None or not hasattr(kind, "fit_mixtures")):
        what = f"encoder {encoder!r}" if encoder is not None else f"method {method!r}"
        raise ValueError(
            f"{what} needs the samples of every domain, but {inputs.mixtures[0]!r} is a mixture; "
            "give its data file, or use the methods dadil, wbt or otda without an encoder."
        )
    known = kind().get_params(deep=False)
    asked = {"encoder": encoder, "scale": scale, **(options or {}), "random_state": seed}
    if "verbose" in known:
        asked["verbose"] = verbose
    unknown = [name for name in options or {} if name not in known]
    if unknown:
        raise ValueError(
            f"{class_name} has no parameter {unknown[0]!r}; it has {', '.join(sorted(known))}."
        )
    return kind(**{name: value for name, value in asked.items() if name in known})


def _fit_samples(
    estimator: Any, inputs: Inputs, components: int | str | None, target_components: Any
) -> tuple[str, ...]:
    """Fit an estimator to samples; the target's rows get a label that is never read."""
    parts = [*inputs.sources.values(), inputs.target]
    samples = [part for part in parts if isinstance(part, Samples)]
    known = estimator.get_params(deep=False)
    asked = {"n_components": components, "target_components": target_components}
    asked = {name: v for name, v in asked.items() if v is not None and name in known}
    estimator.set_params(**asked)
    labels = _one_kind([part.y for part in samples[:-1] if part.y is not None])
    y = np.concatenate([*labels, np.full(len(samples[-1].X), labels[0][0])])
    ids = np.repeat([*range(len(samples) - 1), -1], [len(part.X) for part in samples])
    estimator.fit(np.concatenate([part.X for part in samples]), y, sample_domain=ids)
    return samples[0].feature_names


def _one_kind(labels: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Classes of all sources as integers, or as strings as soon as one source has strings."""
    if len({part.dtype.kind for part in labels}) > 1:
        return [part.astype(str) for part in labels]
    return labels


def _known_classes(y: NDArray[Any], classes: NDArray[Any], table: Table) -> NDArray[Any]:
    by_name = {str(value): value for value in classes}
    unknown = sorted({str(value) for value in y} - set(by_name))
    if unknown:
        raise ValueError(
            f"{table.files[0]} has the label {unknown[0]!r}, which is not a class of the model "
            f"({', '.join(by_name)}); correct it, or leave the label out."
        )
    return np.array([by_name[str(value)] for value in y])


def _output_names(model: AdaptedModel) -> list[str]:
    return ["label", "confidence", "far", "note", *(f"p_{name}" for name in model.classes)]


def _check_kept(keep: Sequence[str], names: Sequence[str]) -> None:
    taken = [name for name in keep if name in names]
    if taken:
        raise ValueError(
            f"the column {taken[0]!r} cannot be kept, as the output has one of that name; rename "
            "it in the data."
        )


def _predicted(
    model: AdaptedModel, batch: Batch, features: Sequence[str], keep: Sequence[str]
) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Return the rows to write for a batch, and how many: all, missing, far, of each class."""
    X = batch.matrix(features)
    usable = np.asarray((np.abs(X) <= LARGEST).all(axis=1))
    proba = np.zeros((len(X), len(model.classes)))
    far = np.zeros(len(X), dtype=bool)
    if usable.any():
        rows = X if usable.all() else X[usable]
        proba[usable], far[usable] = model.predict_proba(rows), model.novelty(rows)
    winners = proba.argmax(axis=1)
    columns: dict[str, Any] = {name: batch.record.column(name) for name in keep}
    values = [model.classes[winners], proba.max(axis=1), far, None, *proba.T]
    for name, value in zip(_output_names(model), values, strict=True):
        columns[name] = _notes(X, usable, features) if value is None else _masked(value, usable)
    by_class = np.bincount(winners[usable], minlength=len(model.classes))
    return columns, np.array([len(X), (~usable).sum(), far.sum(), *by_class])


def _masked(values: NDArray[Any], usable: NDArray[np.bool_]) -> Any:
    import pyarrow

    return pyarrow.array(values, mask=None if usable.all() else ~usable)


def _notes(X: Array, usable: NDArray[np.bool_], features: Sequence[str]) -> Any:
    import pyarrow

    if usable.all():
        return pyarrow.nulls(len(X), pyarrow.string())
    notes: list[str | None] = [None] * len(X)
    for row in np.flatnonzero(~usable):
        place = int((~(np.abs(X[row]) <= LARGEST)).argmax())
        what = "no value" if np.isnan(X[row, place]) else "no usable value"
        notes[row] = f"{what} in {features[place]}"
    return pyarrow.array(notes, pyarrow.string())
