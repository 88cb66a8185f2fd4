"""Quantiles that files may hold: each averages a few values, so that none is the value of a row."""

from __future__ import annotations

import numpy as np

from mixda._core.typing import Array

_MIN_VALUES = 5  # that a quantile averages, if there are as many


def smooth_quantiles(X: Array, levels: Array) -> Array:
    """Return the mean of the five values nearest to each quantile of each column, shape (q, d).

    Examples
    --------
    >>> import numpy as np
    >>> from mixda._core.quantiles import smooth_quantiles
    >>> X = np.array([0.0, 1.0, 2.0, 3.0, 9.0, 27.0, 81.0])[:, None]
    >>> np.quantile(X, 0.5), smooth_quantiles(X, np.array([0.5]))
    (np.float64(3.0), array([[8.4]]))
    """
    n = len(X)
    width = min(_MIN_VALUES, n)
    middle = np.asarray(levels) * (n - 1)
    first = np.clip(np.round(middle - (width - 1) / 2), 0, n - width).astype(int)
    windows = np.sort(X, axis=0)[first[:, None] + np.arange(width)]
    return np.asarray(np.maximum.accumulate(windows.mean(axis=1), axis=0))
