"""Suites by name: their data, default features, and the folds of a target.

The path of a user's own data is also a suite. Folds do not depend on labels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixda import datasets
from mixda._core.errors import MixdaError
from mixda._core.validation import check_positive_int
from mixda.datasets import DomainDataset

N_FOLDS = 5


class Suite(NamedTuple):
    """The data of a suite and its default features."""

    load: Callable[[], DomainDataset]
    features: str
    targets: tuple[str, ...] | None = None  # by default each domain in turn


# loaded only when a suite is run, as the files may be missing
SUITES: dict[str, Suite] = {
    "toy": Suite(lambda: datasets.make_shifted_toy(random_state=2), "raw", ("target",)),
    "cwru": Suite(lambda: datasets.load_cwru(), "mlp"),
    "cwru-faults": Suite(lambda: datasets.load_cwru(loads=(1, 2, 3)), "mlp"),
    "cwru-24000": Suite(lambda: datasets.load_cwru(step=139, n_windows=800), "mlp"),
    "tep": Suite(lambda: datasets.load_tep(), "statistics-mlp"),
    "office-caltech": Suite(lambda: datasets.load_office_caltech(), "standardized"),
    "office-caltech-surf": Suite(lambda: datasets.load_office_caltech("surf"), "standardized"),
    "digits4": Suite(lambda: datasets.load_digits4(), "mlp"),
    "gas-drift": Suite(lambda: datasets.load_gas_drift(), "standardized"),
    "cstr": Suite(lambda: datasets.load_cstr(), "standardized"),
    "office31": Suite(
        lambda: datasets.load_office31(features="efficientnet"), "standardized-domain"
    ),
    "office-home": Suite(lambda: datasets.load_office_home(), "standardized"),
}
ABLATIONS = ("lighter", "better", "faster", "trajectories")


def find_suite(name: str, options: Mapping[str, Any] | None = None) -> Suite:
    """Return a suite by name, or the suite of a user's own file or folder.

    Parameters
    ----------
    name : str
        One of `SUITES`, or a path for `mixda.datasets.load_domains`.
    options : dict, optional
        Other arguments of `mixda.datasets.load_domains`.

    Examples
    --------
    >>> from mixda.benchmark._suites import find_suite
    >>> find_suite("toy").load().domain_names
    ('source 1', 'source 2', 'source 3', 'target')
    """
    options = dict(options or {})
    if name in SUITES:
        if options:
            words = ", ".join("columns" if word == "features" else word for word in options)
            raise MixdaError(
                f"{words}: options for reading your own data cannot be used with the built-in "
                f"suite {name!r}. Omit them, or pass the path of your data."
            )
        return SUITES[name]
    if not (name.strip() and Path(name).expanduser().exists()):
        raise MixdaError(
            f"suite must be among {', '.join([*SUITES, *ABLATIONS])}, or the path of your own "
            f"data, got {name!r}."
        )
    return Suite(lambda: datasets.load_domains(name, **options), "standardized")


def own_name(path: str) -> str:
    """Return a name for a user's own data that differs from all names of suites.

    Examples
    --------
    >>> from mixda.benchmark._suites import own_name
    >>> own_name("data/tep")
    'tep (own data)'
    """
    return f"{Path(path).expanduser().resolve().name or 'root'} (own data)"


def thin(data: DomainDataset, rows: int | None) -> DomainDataset:
    """Keep at most `rows` rows per domain, drawn independently of labels."""
    if rows is None:
        return data
    rows = check_positive_int(rows, "rows")
    shuffled = np.random.default_rng(0).permutation(len(data.X))
    domains = range(len(data.domain_names))
    kept = np.sort(np.concatenate([shuffled[data.domain[shuffled] == k][:rows] for k in domains]))
    block = None if data.block is None else data.block[kept]
    return replace(data, X=data.X[kept], y=data.y[kept], domain=data.domain[kept], block=block)


def fingerprint(data: DomainDataset) -> str:
    """Hash the arrays of the data to twelve hexadecimal digits."""
    total = hashlib.sha256()
    for array in (data.X, data.y, data.domain, data.block):
        total.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return total.hexdigest()[:12]


def make_folds(n_rows: int, block: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the fold of each row of a target, by block if available, otherwise at random.

    Consecutive blocks are assigned to at most five folds, so that rows that share raw data stay
    together. Labels are not used, so folds are not stratified.

    Parameters
    ----------
    n_rows : int
    block : ndarray of shape (n_rows,), optional

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.benchmark._suites import make_folds
    >>> make_folds(8, np.array([7, 7, 8, 8, 9, 9, 9, 9])).tolist()
    [0, 0, 1, 1, 2, 2, 2, 2]
    >>> np.bincount(make_folds(12, None)).tolist()
    [3, 3, 2, 2, 2]
    """
    if block is None or len(np.unique(block)) < 2:
        block = np.random.default_rng(0).permutation(n_rows)
    values, position = np.unique(block, return_inverse=True)
    if len(values) < 2:
        raise MixdaError(f"A target must have at least two rows to be split, got {n_rows}.")
    groups = np.array_split(np.arange(len(values)), min(N_FOLDS, len(values)))
    fold_of_value = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    folds: NDArray[np.int64] = fold_of_value[position]
    return folds
