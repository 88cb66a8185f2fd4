"""Fewer rows in an order that depends on their content only, not on how they were given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixda._core.order import canonical_order
from mixda._core.typing import Array, Codes


def thin(X: Array, codes: Codes | None, n: int, seed: int) -> NDArray[np.intp]:
    """Return at most n rows in canonical order, with the class proportions of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._thinning import thin
    >>> X, codes = np.arange(100.0)[:, None], np.repeat([0, 1], [80, 20])
    >>> rows = thin(X, codes, 10, 0)
    >>> np.bincount(codes[rows]).tolist()
    [8, 2]
    """
    order = canonical_order(X)
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
    if len(X) <= n:
        return order
    # One row at random out of each of n equal stretches: stratified, as classes are side by side.
    edges = np.linspace(0, len(X), n + 1)
    draws = np.random.default_rng(seed).uniform(edges[:-1], edges[1:])
    kept: NDArray[np.intp] = order[np.unique(draws.astype(int))]
    return kept
