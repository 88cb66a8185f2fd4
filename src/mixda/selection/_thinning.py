"""Fewer rows in an order that depends on their content only, not on how they were given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mixda._core.validation import Array

Codes = NDArray[np.intp]


def canonical_order(sources: Sequence[tuple[Array, Codes]]) -> list[int]:
    """Return the sources in an order of their content, so that their ids do not matter.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._thinning import canonical_order
    >>> low, high = np.zeros((2, 1)), np.ones((2, 1))
    >>> codes = np.array([0, 1])
    >>> one, other = canonical_order([(high, codes), (low, codes)]), [(low, codes), (high, codes)]
    >>> one == canonical_order(other)[::-1]
    True
    """
    keys = [(float(np.sort(_keys(X)).mean()), len(X)) for X, _ in sources]
    return sorted(range(len(sources)), key=lambda k: keys[k])


def thin(X: Array, codes: Codes | None, n: int, seed: int) -> NDArray[np.intp]:
    """Return at most n rows in canonical order, with the class shares of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._thinning import thin
    >>> X, codes = np.arange(100.0)[:, None], np.repeat([0, 1], [80, 20])
    >>> rows = thin(X, codes, 10, 0)
    >>> np.bincount(codes[rows]).tolist()
    [8, 2]
    """
    order = np.argsort(_keys(X), kind="stable")
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
    if len(X) <= n:
        return order
    # One row at random out of each of n equal stretches: stratified, as classes are side by side.
    edges = np.linspace(0, len(X), n + 1)
    draws = np.random.default_rng(seed).uniform(edges[:-1], edges[1:])
    kept: NDArray[np.intp] = order[np.unique(draws.astype(int))]
    return kept


def _keys(X: Array) -> Array:
    """Return one number per row that depends on its content only."""
    direction = np.random.default_rng(0).normal(size=X.shape[1])
    spread = np.maximum(np.abs(X).max(axis=0), 1e-300)
    keys: Array = (X * (direction / spread)).sum(axis=1)
    return keys
