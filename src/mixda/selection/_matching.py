r"""Own scales and ranks of a target, matched to other class proportions than those of the sources.

A domain on its own scale has mean zero and variance one whatever its class proportions are, so a
target that is mostly of one class has this class where the sources have the mean of all classes.
Matching gives the target the moments that the sources would have with its proportions :math:`\pi`
instead of their own, :math:`\pi^S`:

.. math:: z' = \mu(\pi) + \frac{\sigma(\pi)}{\sigma(\pi^S)} \, (z - \mu(\pi^S)), \qquad
          \mu(\pi) = \frac1N \sum_{\ell=1}^N \sum_k \pi_k \, \mu_{\ell k}, \qquad
          \sigma^2(\pi) = \frac1N \sum_{\ell=1}^N \sum_k \pi_k \,
          (\mu_{\ell k}^2 + \sigma_{\ell k}^2) - \mu(\pi)^2

with the moments :math:`\mu_{\ell k}, \sigma_{\ell k}` of class k in source :math:`\ell`, and all
operations feature by feature. On ranks, the moments of normal scores are matched in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mixda._core.typing import Array
from mixda.rules import Affine

_MIN_VARIANCE = 0.01  # of domains whose own variance is one
_MIN_CLASS_ROWS = 5  # of a class in a source; with fewer, those of all sources decide


def match_moments(
    sources: Sequence[Array], codes: Sequence[NDArray[np.intp]], usual: Array, shares: Array
) -> Affine:
    """Return the map from a target's own scale to the scale that its class proportions imply.

    Parameters
    ----------
    sources : sequence of ndarray of shape (n, d)
        Each on its own scale.
    codes : sequence of ndarray of shape (n,)
        Their classes.
    usual, shares : ndarray of shape (nc,)
        Class proportions of the sources and of the target.

    Examples
    --------
    A target of the second class only belongs at one, where this class is in the source:

    >>> import numpy as np
    >>> from mixda.selection._matching import match_moments
    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat([0, 1], 500)
    >>> Z = np.where(codes == 1, 1.0, -1.0)[:, None] + 0.1 * rng.normal(size=(1000, 1))
    >>> match = match_moments([Z], [codes], np.array([0.5, 0.5]), np.array([0.0, 1.0]))
    >>> match(np.array([[0.0], [1.0]])).round(1)
    array([[1. ],
           [1.1]])
    """
    first, second = _class_moments(sources, codes, len(shares))

    def moments(weights: Array) -> tuple[Array, Array]:
        mean = weights @ first
        return mean, np.sqrt(np.maximum(weights @ second - mean**2, _MIN_VARIANCE))

    (mean, std), (usual_mean, usual_std) = moments(shares), moments(usual)
    scale = usual_std / std
    return Affine(usual_mean - mean * scale, scale)


def _class_moments(
    sources: Sequence[Array], codes: Sequence[NDArray[np.intp]], n_classes: int
) -> tuple[Array, Array]:
    """Return the means of rows and of squared rows of each class, averaged over the sources."""
    pooled, known = np.vstack(sources), np.concatenate(codes)
    first = np.zeros((n_classes, pooled.shape[1]))
    second = np.zeros_like(first)
    for k in np.unique(known):
        rows = [X[own == k] for X, own in zip(sources, codes, strict=True)]
        rows = [part for part in rows if len(part) >= _MIN_CLASS_ROWS] or [pooled[known == k]]
        first[k] = np.mean([part.mean(axis=0) for part in rows], axis=0)
        second[k] = np.mean([(part**2).mean(axis=0) for part in rows], axis=0)
    return first, second
