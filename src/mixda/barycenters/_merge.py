"""Merging mixtures of a stream into one of bounded size."""

from __future__ import annotations

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_positive_int
from mixda.mixture import SMALLEST_COMPONENT, Mixture, smallest_component
from mixda.transport import check_same_features, features, squared_distances


def merge_mixtures(
    memory: Mixture, batch: Mixture, *, share: float, max_components: int
) -> Mixture:
    r"""Add the components of a batch to a memory and merge the closest until few enough are left.

    The pair that is closest in W2 is replaced by its Wasserstein barycenter,

    .. math:: p = p_1 + p_2, \quad m = \frac{p_1 m_1 + p_2 m_2}{p}, \quad
              s = \frac{p_1 s_1 + p_2 s_2}{p},

    until `max_components` are left. Standard deviations are averaged, so merging does not inflate
    them.

    Parameters
    ----------
    memory, batch : Mixture
        With the same features. Labels are dropped.
    share : float in (0, 1]
        Weight of the batch in the result.
    max_components : int

    Returns
    -------
    Mixture

    Examples
    --------
    >>> from mixda import Mixture
    >>> from mixda.online import merge_mixtures
    >>> p = Mixture([0.5, 0.5], [[0.0], [10.0]], [[1.0], [1.0]])
    >>> q = Mixture([1.0], [[0.5]], [[3.0]])
    >>> m = merge_mixtures(p, q, share=0.5, max_components=2)
    >>> m.weights, m.means.ravel().round(3), m.stds.ravel().round(3)
    (array([0.75, 0.25]), array([ 0.333, 10.   ]), array([2.333, 1.   ]))
    """
    names = check_same_features([memory, batch])
    check_positive_int(max_components, "max_components")
    if not 0.0 < share <= 1.0:
        raise MixdaError(f"share must be greater than 0 and at most 1, got {share!r}.")
    points = np.vstack([features(memory), features(batch)])
    weights = np.concatenate([(1.0 - share) * memory.weights, share * batch.weights])
    points, weights = points[weights > 0], weights[weights > 0]
    distances = squared_distances(points, points)
    np.fill_diagonal(distances, np.inf)
    alive = np.ones(len(points), dtype=bool)
    while alive.sum() > max_components:
        i, j = sorted(np.unravel_index(int(distances.argmin()), distances.shape))
        total = weights[i] + weights[j]
        points[i] = (weights[i] * points[i] + weights[j] * points[j]) / total
        weights[i] = total
        alive[j] = False
        to_merged: Array = np.where(alive, ((points - points[i]) ** 2).sum(axis=1), np.inf)
        to_merged[i] = np.inf
        distances[i], distances[:, i] = to_merged, to_merged
        distances[j], distances[:, j] = np.inf, np.inf
    d = memory.n_features
    weights = weights[alive] / weights[alive].sum()
    counts = [smallest_component(p) for p in (memory, batch)]
    known = [count for count in counts if count is not None]
    info = {SMALLEST_COMPONENT: min(known)} if known else {}
    return Mixture(weights, points[alive, :d], points[alive, d:], feature_names=names, info=info)
