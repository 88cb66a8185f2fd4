"""What pictures of domains need computed: places on a map, a common plane, frames, counts.

Shared by `mixda.plot` and `mixda.report`, so that both show the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.progress import Progress
from mixda._core.validation import Array
from mixda.dictionary import Dictionary
from mixda.mixture import Mixture
from mixda.transport import features, mw2, squared_distances

_SHRINKAGE = 0.5  # of each feature's spread towards the average one: a dead feature must not rule


def pairwise_distances(mixtures: Sequence[Mixture]) -> Array:
    """MW2 between all pairs, a symmetric matrix with a zero diagonal.

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
    r"""Points in the plane whose distances are as near to the given ones as scaling allows.

    Classical multidimensional scaling: the leading eigenvectors of
    :math:`-\tfrac12 J D^{2} J` with :math:`J = I - \tfrac1n 11^\top`.

    Returns
    -------
    points : ndarray of shape (n, 2)
    error : float
        Share of the distances' size that the plane misses,
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
        points[:, axis] = np.sqrt(max(values[k], 0.0)) * _with_sign(vectors[:, k])
    shown = np.sqrt(squared_distances(points, points))
    total = np.square(distances).sum()
    error = float(np.sqrt(np.square(shown - distances).sum() / total)) if total > 0 else 0.0
    return points, error


def class_gap(sources: Sequence[Mixture]) -> float:
    """Median distance between the means of two classes of one source; 0 with a single class.

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


def class_means(m: Mixture) -> Array:
    """Mean of each class that a labeled mixture holds, shape (classes present, d)."""
    mass = _joint(m)
    mass = mass[:, mass.sum(axis=0) > 0]
    means: Array = (mass.T @ m.means) / mass.sum(axis=0)[:, None]
    return means


@dataclass(frozen=True, eq=False)
class Plane:
    """One plane for all mixtures: ``x -> (x - center) @ axes``.

    Attributes
    ----------
    center : ndarray of shape (d,)
    axes : ndarray of shape (d, 2)
    kind : {"features", "lanes", "discriminant"}
        The two features themselves; the only feature and, upwards, the class; or directions.
    """

    center: Array
    axes: Array
    kind: str

    def place(self, m: Mixture) -> tuple[Array, Array]:
        r"""Return centers (K, 2), and square roots (K, 2, 2) of the covariances in the plane.

        Examples
        --------
        >>> from mixda import Mixture
        >>> from mixda.views import common_plane
        >>> p = Mixture([1.0], [[1.0, 2.0]], [[3.0, 4.0]], [[1.0]])
        >>> centers, roots = common_plane([p]).place(p)
        >>> centers, roots
        (array([[1., 2.]]), array([[[3., 0.],
                [0., 4.]]]))
        """
        centers = (m.means - self.center) @ self.axes
        products = self.axes[:, :, None] * self.axes[:, None, :]
        covariances = np.square(m.stds) @ products.reshape(-1, 4)
        roots = square_roots(covariances.reshape(-1, 2, 2))
        if self.kind == "lanes":
            centers[:, 1] = _lanes(m)
            roots[:, 1, 1] = 0.12
        return centers, roots


def common_plane(mixtures: Sequence[Mixture]) -> Plane:
    """Plane in which the classes of labeled mixtures are best told apart.

    Two features are shown as they are. From three on, the directions are linear discriminants
    with the spread within a class of a domain taken feature by feature (mixtures are axis-aligned),
    then, with two classes, the main direction of what is left.
    """
    d = mixtures[0].n_features
    if d == 1:
        return Plane(np.zeros(1), np.array([[1.0, 0.0]]), "lanes")
    if d == 2:
        return Plane(np.zeros(2), np.eye(2), "features")
    center = np.mean([m.weights @ m.means for m in mixtures], axis=0)
    spread = np.mean([_variance_within(m) for m in mixtures], axis=0)
    spread = (1 - _SHRINKAGE) * spread + _SHRINKAGE * spread.mean()
    scale = 1.0 / np.sqrt(np.maximum(spread, np.finfo(float).tiny))
    total = sum(_joint(m).T @ (m.means - center) for m in mixtures)
    mass = sum(_joint(m).sum(axis=0) for m in mixtures)
    between = scale * total / np.sqrt(np.maximum(mass, 1e-12))[:, None]
    axes = _directions(between)[: min(2, len(mass) - 1)]
    if len(axes) < 2:
        rest = np.concatenate([np.sqrt(m.weights)[:, None] * (m.means - center) for m in mixtures])
        rest = scale * rest
        rest = rest - rest @ axes.T @ axes
        axes = np.concatenate([axes, _directions(rest)[: 2 - len(axes)]])
    return Plane(center, scale[:, None] * axes.T, "discriminant")


def interpolation_frames(
    dictionary: Dictionary, n_steps: int, verbose: bool = False
) -> list[list[Mixture]]:
    """Barycenters on the way from the target's coordinates to each atom, `n_steps` a way.

    Component k of one frame is the one that component k of the frame before moves to. All ways
    begin with the same frame, the reconstruction of the target.
    """
    target = dictionary.coordinates[-1]
    n_atoms = len(dictionary.atoms)
    ways = [[dictionary.target] for _ in range(n_atoms)]
    with Progress(n_atoms * n_steps, "drawing the atoms", verbose) as progress:
        for c, (way, corner) in enumerate(zip(ways, np.eye(n_atoms), strict=True)):
            for step in range(1, n_steps + 1):
                t = step / n_steps
                lam = (1 - t) * target + t * corner
                way.append(_in_order_of(way[-1], dictionary.reconstruct(lam / lam.sum())))
                progress.update(c * n_steps + step)
    return ways


def confusion_counts(
    truth: NDArray[np.intp], guess: NDArray[np.intp], n_classes: int
) -> NDArray[np.intp]:
    """How often class i (row) was called class j (column); the codes of `truth` may go beyond.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.views import confusion_counts
    >>> confusion_counts(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    array([[1, 1],
           [0, 1]])
    """
    counts = np.zeros((max(n_classes, int(truth.max(initial=0)) + 1), n_classes), dtype=np.intp)
    np.add.at(counts, (truth, guess), 1)
    return counts


def label_codes(
    labels: NDArray[Any], classes: NDArray[Any]
) -> tuple[NDArray[np.intp], tuple[Any, ...]]:
    """Place of every label among the classes, and the unknown labels, whose places come after.

    Numbers and texts are compared as texts.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.views import label_codes
    >>> label_codes(np.array(["1", "0", "b"]), np.array([0, 1]))
    (array([1, 0, 2]), ('b',))
    """
    if (labels.dtype.kind == "U") != (classes.dtype.kind == "U"):
        labels, classes = labels.astype(str), classes.astype(str)
    place = {name: k for k, name in enumerate(classes.tolist())}
    unknown = [name for name in np.unique(labels).tolist() if name not in place]
    place.update({name: len(classes) + k for k, name in enumerate(unknown)})
    return np.array([place[name] for name in labels.tolist()], dtype=np.intp), tuple(unknown)


def along_diagonal(plan: Array, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Order of a plan's columns that puts the mass of a good matching on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.views import along_diagonal
    >>> along_diagonal(np.array([[0.0, 0.5], [0.5, 0.0]]), np.array([0, 1]))
    array([1, 0])
    """
    position = np.empty(len(rows))
    position[rows] = np.arange(len(rows))
    mass = np.maximum(plan.sum(axis=0), np.finfo(float).tiny)
    return np.argsort((position @ plan) / mass, kind="stable")


def wilson_interval(hits: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Range of a share that was seen `hits` times out of `n` (Wilson's, 95 % by default).

    Examples
    --------
    >>> from mixda.views import wilson_interval
    >>> [round(x, 3) for x in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    p = hits / n
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return float(max(middle - half, 0.0)), float(min(middle + half, 1.0))


def _joint(m: Mixture) -> Array:
    """Mass of every component and class (K, nc); one class if there are no labels."""
    labels = np.ones((m.n_components, 1)) if m.labels is None else m.labels
    mass: Array = m.weights[:, None] * labels
    return mass


def _variance_within(m: Mixture) -> Array:
    """Variance of each feature within the classes, the components' own spread included."""
    mass = _joint(m)
    mass = mass[:, mass.sum(axis=0) > 0]
    means = (mass.T @ m.means) / mass.sum(axis=0)[:, None]
    second = m.weights @ (np.square(m.stds) + np.square(m.means))
    variance: Array = np.maximum(second - mass.sum(axis=0) @ np.square(means), 0.0)
    return variance


def _directions(rows: Array) -> Array:
    """Leading right singular vectors, two at least, with signs that do not depend on chance."""
    rows = np.concatenate([rows, np.zeros((max(2 - len(rows), 0), rows.shape[1]))])
    _, _, vectors = np.linalg.svd(rows, full_matrices=False)
    return np.stack([_with_sign(vector) for vector in vectors])


def _with_sign(vector: Array) -> Array:
    largest = vector[np.argmax(np.abs(vector).round(9))]
    return -vector if largest < 0 else vector


def square_roots(matrices: Array) -> Array:
    """Symmetric square roots of symmetric matrices of shape (K, 2, 2)."""
    values, vectors = np.linalg.eigh(matrices)
    values = np.sqrt(np.maximum(values, 0.0))
    roots: Array = np.einsum("kij,kj,klj->kil", vectors, values, vectors)
    return roots


def _lanes(m: Mixture) -> Array:
    if m.labels is None:
        return np.full(m.n_components, -1.0)
    lanes: Array = m.labels @ np.arange(m.labels.shape[1], dtype=float)
    return lanes


def _in_order_of(before: Mixture, m: Mixture) -> Mixture:
    from scipy.optimize import linear_sum_assignment

    order = linear_sum_assignment(squared_distances(features(before), features(m)))[1]
    parts = {name: getattr(m, name)[order] for name in ("weights", "means", "stds")}
    return replace(m, **parts, labels=None if m.labels is None else m.labels[order])
