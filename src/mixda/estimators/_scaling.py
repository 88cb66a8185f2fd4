"""Maps of a domain to a common scale, from its unlabeled rows: standardization, rank-to-normal."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from mixda._core.quantiles import smooth_quantiles
from mixda._core.typing import Array
from mixda.rules import Affine, Interpolate

_MAX_KNOTS = 65
_ROWS_PER_KNOT = 5


def standardization(X: Array) -> Affine:
    """Return the map to mean 0 and standard deviation 1; constant features keep their scale."""
    mean, std = X.mean(axis=0), X.std(axis=0)
    return Affine(mean, np.where(std > 1e-9 * (1.0 + np.abs(mean)), std, 1.0))


def rank_to_normal(X: Array) -> Interpolate:
    """Return the map of each feature's quantiles to normal ones, with at least five rows a knot.

    A knot averages five values, so that files do not hold the values of single rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.estimators import rank_to_normal
    >>> X = np.exp(np.random.default_rng(0).normal(size=(1000, 1)))
    >>> Z = rank_to_normal(X)(X)
    >>> bool(abs(Z.mean()) < 0.05) and bool(abs(Z.std() - 1) < 0.05)
    True
    """
    n_knots = int(np.clip(len(X) // _ROWS_PER_KNOT, 2, _MAX_KNOTS))
    levels = (np.arange(n_knots) + 0.5) / n_knots
    knots = smooth_quantiles(X, levels)
    scores = np.tile(norm.ppf(levels)[:, None], (1, X.shape[1]))
    for j in range(X.shape[1]):  # tied quantiles share the mean of their scores, as midranks do
        _, place, counts = np.unique(knots[:, j], return_inverse=True, return_counts=True)
        if len(counts) < n_knots:
            scores[:, j] = (np.bincount(place, scores[:, j]) / counts)[place]
    return Interpolate(knots, scores)
