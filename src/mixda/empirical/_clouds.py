"""Samples as mixtures, and balanced batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.errors import MixdaError
from mixda._core.namespace import check_dispatched, is_dispatched, namespace, to_numpy
from mixda._core.typing import Array, Codes, Source
from mixda._core.validation import check_X, encode_classes
from mixda.mixture import Mixture, has_gaps


def point_cloud(
    X: ArrayLike, y: ArrayLike | None = None, classes: ArrayLike | None = None
) -> Mixture:
    """Return samples as a mixture of n components with zero deviations and one-hot labels.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,), optional
    classes : array-like of shape (nc,), optional
        The classes, by default those that occur in `y`.

    Examples
    --------
    >>> from mixda.empirical import point_cloud
    >>> point_cloud([[0.0], [1.0]], ["b", "a"]).labels
    array([[0., 1.],
           [1., 0.]])
    """
    X = check_X(X)
    weights = np.full(len(X), 1.0 / len(X))
    if y is None:
        return Mixture(weights, X, np.zeros_like(X))
    names, codes = encode_classes(y, classes, len(X))
    return Mixture(weights, X, np.zeros_like(X), np.eye(len(names))[codes], names)


def check_clouds(sources: Sequence[Source], target: Array) -> tuple[list[Source], Array]:
    """Return samples of all domains in one library: numpy, or torch or CuPy if dispatch is on."""
    arrays: list[Any] = [*(X for X, _ in sources), target]
    libraries = {namespace(X).__name__ for X in arrays}
    if libraries == {"numpy"}:
        return list(sources), target
    if len(libraries) > 1:
        raise MixdaError(
            f"sources and target must be arrays of one library, got {' and '.join(libraries)}."
        )
    arrays = [check_dispatched(X) if is_dispatched(X) else check_X(X) for X in arrays]
    if any(has_gaps(X) for X in arrays):
        raise MixdaError("sources or target have NaN; remove or impute them.")
    codes = [to_numpy(codes) for _, codes in sources]
    return list(zip(arrays[:-1], codes, strict=True)), arrays[-1]


def draw_balanced(codes: Codes, size: int, rng: np.random.Generator) -> Codes:
    """Draw the rows of a batch in which all present classes have the same size, up to one."""
    present = rng.permutation(np.unique(codes))
    counts = np.bincount(np.arange(size) % len(present), minlength=len(present))
    rows = []
    for code, count in zip(present, counts, strict=True):
        members = np.flatnonzero(codes == code)
        rows.append(rng.choice(members, count, replace=count > len(members)))
    return np.concatenate(rows)
