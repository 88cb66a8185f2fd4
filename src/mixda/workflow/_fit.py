"""Fit mixtures to files: one per domain, in the units of the files."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mixda._core.atomic import check_output
from mixda._core.errors import MixdaError
from mixda._core.validation import check_choice, check_random_state
from mixda.checks import CheckReport, Request, choose_columns, read_frames
from mixda.chunks import RowSource, from_files
from mixda.em import (
    feature_units,
    fit_domains,
    fit_labeled_mixture,
    fit_mixture,
    fit_private_mixture,
)
from mixda.mixture import MIN_COMPONENT_ROWS, Mixture
from mixda.tables import (
    PathArgument,
    Samples,
    Table,
    check_different,
    check_samples,
    class_names,
    note_dropped,
    open_table,
)
from mixda.workflow._check import warn_about
from mixda.workflow._inputs import split_domains, stem

_COMPONENTS_PER_CLASS = 3
_MAX_UNLABELED_COMPONENTS = 30
_ROWS_PER_COMPONENT = 10  # of an unlabeled domain, at least
_LARGE_VALUES = 50_000_000  # 400 MB: larger tables stay on disk and are read once per iteration


def fit_files(
    paths: PathArgument | Sequence[PathArgument],
    label: str | None = None,
    domain: str | None = None,
    *,
    components: int | str | None = None,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    missing: str = "mixture",
    min_component_rows: int = MIN_COMPONENT_ROWS,
    allow_exposed_rows: bool = False,
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
        Column of the classes. Without it, the mixture is unlabeled.
    domain : str, optional
        Column of the domain names. Default: one domain, named after the first file.
    components : int or "bic", optional
        Number of components, per class if there is a label. Default: 3 per class; without a
        label, one for every ten rows, but at most 30.
    columns, drop : sequence of str
        Columns to use as features, or columns to leave out. Default: all columns of numbers but
        identifiers, timestamps, and those that are constant within each domain.
    missing : {"mixture", "drop", "error"}
        Keep rows with missing values, whose gaps are integrated out, leave them out, or raise an
        error.
    min_component_rows : int
        Components are merged until the mean of each averages at least this many rows, so that no
        mean is a row; see `mixda.fit_mixture`. ``info["smallest_component"]`` tells the smallest
        number.
    allow_exposed_rows : bool
        Accept classes and domains of fewer rows, or of equal rows, instead of raising an error.
    seed : int
    n_jobs, client
        Where to fit, see `mixda.fit_mixture`. With one of them, with `resume`, or if the files are
        large, rows are not held in memory but read once per iteration. The result is the same.
    checkpoint : path, optional
        File that saves the state of a fit that reads its rows once per iteration.
    resume : bool
        Resume from `checkpoint` if it exists. By default, an existing checkpoint is deleted.
    verbose : bool
        Show progress on a terminal.

    Returns
    -------
    dict of Mixture
        By domain name, in the units of the files.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mixda.workflow import fit_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "lab.csv")
    ...     rows = [f"{k ^ 1},{'ok' if k < 8 else 'worn'}" for k in range(16)]
    ...     _ = path.write_text("\n".join(["speed,state", *rows]))
    ...     fit_files(path, label="state")
    {'lab': Mixture(n_components=2, n_features=1, classes=['ok', 'worn'])}
    """
    check_random_state(seed)
    check_different(label, domain)
    table = open_table(paths)
    check_choice(missing, "missing", ("mixture", "drop", "error"))
    name = stem(table.files[0])
    request = Request((label,) if label else (), domain, columns, drop)
    chosen = _choose_columns(name, table, request)
    columns = [] if chosen.encoding is None else list(chosen.encoding.names)
    privacy = {"min_component_rows": min_component_rows, "allow_exposed_rows": allow_exposed_rows}
    if n_jobs is not None or client is not None or resume or _is_large(table):
        if checkpoint is not None and not resume:
            Path(checkpoint).unlink(missing_ok=True)
        source = from_files(paths, label, domain, columns=columns, missing=missing)
        where = {"n_jobs": n_jobs, "client": client, "checkpoint": checkpoint}
        mixtures = _fit_chunks(source, name, components, seed, verbose, **privacy, **where)
        _note_dropped_rows(table, mixtures)
        warn_about(chosen)
        return mixtures
    samples = table.read(columns, label, domain, missing=missing)
    check_samples([samples], label)
    mixtures = {
        name: _fit_domain(name, part, components, seed, verbose, **privacy)
        for name, part in split_domains(samples, name).items()
    }
    warn_about(chosen)
    return mixtures


def fit_private_file(
    paths: PathArgument | Sequence[PathArgument],
    label: str | None = None,
    *,
    bounds: Mapping[str, Sequence[float]],
    epsilon: float,
    delta: float = 1e-5,
    classes: Sequence[str] = (),
    components: int = 1,
    seed: int = 0,
) -> Mixture:
    """Fit a mixture with differential privacy to the rows of some files.

    Rows with missing values are left out.

    Parameters
    ----------
    paths, label : see `fit_files`
    bounds : dict of str to (low, high)
        The columns to use, and the range of each, from knowledge that is not private.
    epsilon, delta, components, seed
        `epsilon`, `delta`, `n_components` and `random_state` of `mixda.fit_private_mixture`.
    classes : sequence of str
        All classes that may occur; required with a label.

    Returns
    -------
    Mixture

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from mixda.workflow import fit_private_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "lab.npz")
    ...     np.savez(path, X=np.random.default_rng(0).random((500, 1)))
    ...     fit_private_file(path, bounds={"x0": (0.0, 1.0)}, epsilon=1.0)
    Mixture(n_components=1, n_features=1)
    """
    if (label is None) != (len(classes) == 0):
        raise MixdaError(
            "a private fit needs all classes that may occur together with the label (classes, "
            "--classes), because which of them occur is private."
        )
    table = open_table(paths)
    samples = table.read(list(bounds), label, missing="drop")
    check_samples([samples], label)
    mixture = fit_private_mixture(
        samples.X,
        samples.y,
        components,
        bounds=list(bounds.values()),
        epsilon=epsilon,
        delta=delta,
        classes=None if label is None else class_names(np.array(classes)),
        random_state=seed,
    )
    info = {**mixture.info, "name": stem(table.files[0]), "preprocessing": []}
    return replace(mixture, feature_names=samples.feature_names, info=info)


def _choose_columns(name: str, table: Table, request: Request) -> CheckReport:
    """Decide which columns of numbers to use."""
    label = next(iter(request.labels), None)
    frames = read_frames(name, table, label=label, hidden=(), domain=request.domain)
    report = choose_columns(frames, replace(request, numbers_only=True))
    report.raise_for_blockers()
    return report


def output_paths(path: PathArgument, domains: Sequence[str], suffix: str = ".gmm") -> list[Path]:
    """Return one output path per domain, after checking that it can be written.

    The domain replaces ``{domain}`` in `path`, or is appended after a dash. A single unnamed
    domain (``""``) is written to `path` itself.

    Examples
    --------
    >>> from mixda.workflow import output_paths
    >>> [str(path) for path in output_paths("site.gmm", ["north", "south/2"])]
    ['site-north.gmm', 'site-south_2.gmm']
    """
    path = Path(path)
    if path.suffix.lower() != suffix:
        raise MixdaError(f"the output {path} must end in {suffix}.")
    check_output(path)
    if list(domains) == [""]:
        return [path]
    name = path.name if "{domain}" in path.name else f"{path.stem}-{{domain}}{path.suffix}"
    safe = [re.sub(r"[^\w.+-]", "_", domain) for domain in domains]
    if len(set(safe)) < len(safe):
        raise MixdaError(
            f"two of the domains {list(domains)!r} would be written to the same file; rename one."
        )
    return [path.with_name(name.replace("{domain}", word)) for word in safe]


def _is_large(table: Table) -> bool:
    """Whether to leave the rows on disk."""
    if table.n_rows is not None:
        return table.n_rows * len(table.columns) > _LARGE_VALUES
    return sum(file.stat().st_size for file in table.files) > 8 * _LARGE_VALUES


def _note_dropped_rows(table: Table, mixtures: dict[str, Mixture]) -> None:
    n_dropped = (table.n_rows or 0) - sum(m.info["n_samples"] for m in mixtures.values())
    if n_dropped > 0:
        note_dropped({str(table.files[0]) + " …" * (len(table.files) > 1): n_dropped})


def _fit_domain(
    name: str, samples: Samples, components: Any, seed: int, verbose: bool, **privacy: Any
) -> Mixture:
    """Fit a mixture in raw units; features of very different units are standardized meanwhile.

    An affine map of an axis-aligned mixture is one, so nothing is lost on the way back.
    """
    X = samples.X
    unit = feature_units(np.nanstd(X, axis=0), np.nanmax(np.abs(X), axis=0), "auto")
    mean = np.nanmean(X, axis=0) if (unit != 1.0).any() else np.zeros(X.shape[1])
    Z = (X - mean) / unit
    rng = check_random_state(seed)
    if samples.y is None:
        if components is None:
            enough = max(1, len(X) // _ROWS_PER_COMPONENT)
            components = min(_MAX_UNLABELED_COMPONENTS, enough)
        mixture = fit_mixture(Z, components, random_state=rng, verbose=verbose, **privacy)
    else:
        components = _COMPONENTS_PER_CLASS if components is None else components
        mixture = fit_labeled_mixture(
            Z, samples.y, components, random_state=rng, verbose=verbose, **privacy
        )
    return replace(
        mixture,
        means=mixture.means * unit + mean,
        stds=mixture.stds * unit,
        feature_names=samples.feature_names,
        info={**mixture.info, "name": name, "preprocessing": []},
    )


def _fit_chunks(
    source: RowSource, name: str, components: Any, seed: int, verbose: bool, **options: Any
) -> dict[str, Mixture]:
    """Fit the mixtures of `_fit_domain` to data of any size, those of all domains at once."""
    default = _COMPONENTS_PER_CLASS if source.has_label else _MAX_UNLABELED_COMPONENTS
    capped = components is None and not source.has_label
    mixtures = fit_domains(
        source,
        default if components is None else components,
        standardize="auto",
        rows_per_component=_ROWS_PER_COMPONENT if capped else 1,
        random_state=seed,
        verbose=verbose,
        **options,
    )
    return {
        domain or name: replace(
            mixture, info={"name": domain or name, "preprocessing": [], **(mixture.info or {})}
        )
        for domain, mixture in mixtures.items()
    }
