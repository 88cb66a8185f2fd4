"""Canonical orders: rows, and sets of rows, sorted by their values instead of as they are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.typing import Array

_VALUES_AT_ONCE = 1 << 16  # in a temporary array that stays in the cache
_PHASE = 1.0  # so that content keys distinguish x from -x


def canonical_order(x: Array, ties: NDArray[Any] | None = None) -> NDArray[np.intp]:
    """Return an order of the rows that depends on their values only, not on the given order.

    Rows are sorted by a fixed generic projection, which only equal rows share; `ties` decides
    between these.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda._core.order import canonical_order
    >>> x = np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 0.0]])
    >>> bool((x[canonical_order(x)] == x[::-1][canonical_order(x[::-1])]).all())
    True
    """
    gaps = bool(np.isnan(x.sum()))
    filled = np.nan_to_num(x) if gaps else x
    spread = np.ptp(filled, axis=0)
    generic = _generic(x.shape[1])
    direction = generic / np.where(spread > 0, spread, 1.0)
    projection = np.empty(len(x))
    step = max(1, _VALUES_AT_ONCE // max(1, x.shape[1]))
    for start in range(0, len(x), step):  # of each row alone, unlike a matrix product
        rows = slice(start, start + step)
        projection[rows] = (filled[rows] * direction).sum(axis=1)
    keys = [] if ties is None else [ties]
    if gaps:
        keys.append((np.isnan(x) * generic).sum(axis=1))  # a gap is not a zero
    return np.lexsort((*keys, projection))


def content_values(sets: Sequence[Array]) -> list[Array]:
    r"""Return one number per row of several sets, :math:`\sin(1 + g^\top x)`, to be averaged.

    Weighted means of these numbers tell sets apart, even if their means and variances agree.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda._core.order import content_values
    >>> low, high = content_values([np.array([[-1.0], [1.0]]), np.array([[-2.0], [2.0]])])
    >>> bool(abs(low.mean() - high.mean()) > 0.1)
    True
    """
    largest = np.max([np.abs(np.nan_to_num(x)).max(axis=0) for x in sets], axis=0)
    direction = _generic(len(largest)) / np.where(largest > 0, largest, 1.0)
    return [np.sin(_PHASE + (np.nan_to_num(x) * direction).sum(axis=1)) for x in sets]


def _generic(d: int) -> Array:
    """Return fixed numbers without any structure, shape (d,)."""
    return np.asarray(np.random.default_rng(0).uniform(1.0, 2.0, d))
