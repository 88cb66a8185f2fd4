"""Distances between domains, and the map that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixda._core.typing import Array
from mixda.mixture import Mixture
from mixda.transport import mw2, squared_distances
from mixda.views._planes import class_means, fix_sign


@dataclass(frozen=True, eq=False)
class DomainMap:
    """Domains as points in the plane.

    Attributes
    ----------
    names : tuple of str
    distances : ndarray of shape (n, n)
        MW2 between the domains.
    points : ndarray of shape (n, 2)
        Embedding by classical multidimensional scaling.
    error : float
        Relative error of the distances between the points, see `embed_distances`.
    """

    names: tuple[str, ...]
    distances: Array
    points: Array
    error: float


def domain_map(mixtures: Sequence[Mixture], names: Sequence[str]) -> DomainMap:
    """Embed domains in the plane by their pairwise MW2 distances."""
    distances = pairwise_distances(mixtures)
    return DomainMap(tuple(names), distances, *embed_distances(distances))


def default_domain_names(n_domains: int) -> list[str]:
    """Return the names of domains that have none: sources first, target last.

    Examples
    --------
    >>> from mixda.views import default_domain_names
    >>> default_domain_names(3)
    ['source 1', 'source 2', 'target']
    """
    return [*(f"source {k}" for k in range(1, n_domains)), "target"]


def pairwise_distances(mixtures: Sequence[Mixture]) -> Array:
    """Compute MW2 between all pairs of mixtures.

    Examples
    --------
    >>> from mixda import Mixture
    >>> from mixda.views import pairwise_distances
    >>> p, q = (Mixture([1.0], [[x]], [[1.0]]) for x in (0.0, 3.0))
    >>> pairwise_distances([p, q])
    array([[0., 3.],
           [3., 0.]])
    """
    n = len(mixtures)
    distances = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            distances[i, j] = distances[j, i] = mw2(mixtures[i], mixtures[j])
    return distances


def embed_distances(distances: Array) -> tuple[Array, float]:
    r"""Embed a distance matrix in the plane by classical multidimensional scaling.

    The coordinates are the leading eigenvectors of :math:`-\tfrac12 J D^{2} J` with
    :math:`J = I - \tfrac1n 11^\top`, scaled by the square roots of their eigenvalues.

    Returns
    -------
    points : ndarray of shape (n, 2)
    error : float
        Relative error of the embedded distances,
        :math:`\sqrt{\sum (d_{ij} - \hat d_{ij})^2 / \sum d_{ij}^2}`.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.views import embed_distances
    >>> points, error = embed_distances(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> points.round(6) + 0.0, round(error, 6)
    (array([[ 1.,  0.],
           [-1.,  0.]]), 0.0)
    """
    n = len(distances)
    center = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * center @ np.square(distances) @ center)
    points = np.zeros((n, 2))
    for axis, k in enumerate(range(n - 1, max(n - 3, -1), -1)):
        points[:, axis] = np.sqrt(max(values[k], 0.0)) * fix_sign(vectors[:, k])
    embedded = np.sqrt(squared_distances(points, points))
    total = np.square(distances).sum()
    error = float(np.sqrt(np.square(embedded - distances).sum() / total)) if total > 0 else 0.0
    return points, error


def class_gap(sources: Sequence[Mixture]) -> float:
    """Return the median distance between two class means of a source; 0 with a single class.

    Examples
    --------
    >>> from mixda import Mixture
    >>> from mixda.views import class_gap
    >>> class_gap([Mixture([0.5, 0.5], [[0.0], [4.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])])
    4.0
    """
    gaps: list[float] = []
    for m in sources:
        means = class_means(m)
        gaps += [float(np.linalg.norm(a - b)) for i, a in enumerate(means) for b in means[:i]]
    return float(np.median(gaps)) if gaps else 0.0
