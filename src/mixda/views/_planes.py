"""The plane in which the components of several mixtures are drawn as ellipses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixda._core.typing import Array
from mixda.mixture import Mixture

_SHRINKAGE = 0.5  # toward the mean variance, so that a constant feature does not dominate
_LANE_STD = 0.12  # height of an ellipse when there is only one feature
_MIN_CLASS_MASS = 1e-12


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane shared by several mixtures: ``x -> (x - center) @ axes``.

    Attributes
    ----------
    center : ndarray of shape (d,)
    axes : ndarray of shape (d, 2)
    kind : {"features", "lanes", "discriminant"}
        Two of the features; the only feature with one horizontal lane per class; or linear
        discriminants.
    """

    center: Array
    axes: Array
    kind: str

    def place(self, m: Mixture) -> tuple[Array, Array]:
        r"""Project a mixture: centers (K, 2) and square roots of covariances (K, 2, 2).

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
            roots[:, 1, 1] = _LANE_STD
        return centers, roots


def feature_plane(n_features: int, dims: tuple[int, int]) -> Plane:
    """Return the plane of two of the features.

    Examples
    --------
    >>> from mixda.views import feature_plane
    >>> feature_plane(3, (2, 0)).axes.T
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    return Plane(np.zeros(n_features), np.eye(n_features)[:, list(dims)], "features")


def common_plane(mixtures: Sequence[Mixture]) -> Plane:
    """Return the plane that separates the classes of labeled mixtures best.

    One or two features are shown as they are. With more, the axes are linear discriminants. The
    within-class covariance is diagonal, as the mixtures are axis-aligned, and is shrunk toward a
    multiple of the identity. Two classes have only one discriminant; the second axis is then the
    first principal direction of the remaining variance of the means.
    """
    d = mixtures[0].n_features
    if d == 1:
        return Plane(np.zeros(1), np.array([[1.0, 0.0]]), "lanes")
    if d == 2:
        return feature_plane(2, (0, 1))
    center = np.mean([m.weights @ m.means for m in mixtures], axis=0)
    variance = np.mean([_within_class_variance(m) for m in mixtures], axis=0)
    variance = (1 - _SHRINKAGE) * variance + _SHRINKAGE * variance.mean()
    scale = 1.0 / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    total = sum(_class_mass(m).T @ (m.means - center) for m in mixtures)
    mass = sum(_class_mass(m).sum(axis=0) for m in mixtures)
    between = scale * total / np.sqrt(np.maximum(mass, _MIN_CLASS_MASS))[:, None]
    axes = _principal_directions(between)[: min(2, len(mass) - 1)]
    if len(axes) < 2:
        rest = np.concatenate([np.sqrt(m.weights)[:, None] * (m.means - center) for m in mixtures])
        rest = scale * rest
        rest = rest - rest @ axes.T @ axes
        axes = np.concatenate([axes, _principal_directions(rest)[: 2 - len(axes)]])
    return Plane(center, scale[:, None] * axes.T, "discriminant")


def class_means(m: Mixture) -> Array:
    """Return the mean of each class with positive mass, shape (n_present_classes, d)."""
    mass = _class_mass(m)
    mass = mass[:, mass.sum(axis=0) > 0]
    means: Array = (mass.T @ m.means) / mass.sum(axis=0)[:, None]
    return means


def square_roots(matrices: Array) -> Array:
    """Return the symmetric square roots of positive semi-definite matrices, shape (K, 2, 2)."""
    values, vectors = np.linalg.eigh(matrices)
    values = np.sqrt(np.maximum(values, 0.0))
    roots: Array = np.einsum("kij,kj,klj->kil", vectors, values, vectors)
    return roots


def ellipse_axes(roots: Array) -> tuple[Array, Array]:
    """Return half-axes (K, 2) and angles in degrees (K,) of the ellipses that `roots` describe.

    The first half-axis is the one nearer to the horizontal; its angle is in [-45, 45].

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.views import ellipse_axes
    >>> ellipse_axes(np.array([[[3.0, 0.0], [0.0, 4.0]]]))
    (array([[3., 4.]]), array([0.]))
    """
    values, vectors = np.linalg.eigh(roots)
    first = np.abs(vectors[:, 0]).argmax(axis=1)
    k = np.arange(len(roots))
    x, y = vectors[k, 0, first], vectors[k, 1, first]
    half_axes = np.column_stack([values[k, first], values[k, 1 - first]])
    return half_axes, np.degrees(np.arctan2(y * np.sign(x), np.abs(x)))


def fix_sign(vector: Array) -> Array:
    """Return the vector or its negative, such that its largest entry is positive."""
    largest = vector[np.argmax(np.abs(vector).round(9))]
    return -vector if largest < 0 else vector


def _class_mass(m: Mixture) -> Array:
    """Return the mass of each component and class, shape (K, nc); one class without labels."""
    labels = np.ones((m.n_components, 1)) if m.labels is None else m.labels
    mass: Array = m.weights[:, None] * labels
    return mass


def _within_class_variance(m: Mixture) -> Array:
    """Return the within-class variance of each feature, components' own variance included."""
    mass = _class_mass(m).sum(axis=0)
    second_moment = m.weights @ (np.square(m.stds) + np.square(m.means))
    variance: Array = second_moment - mass[mass > 0] @ np.square(class_means(m))
    return np.maximum(variance, 0.0)


def _principal_directions(rows: Array) -> Array:
    """Return the right singular vectors, at least two, with deterministic signs."""
    rows = np.concatenate([rows, np.zeros((max(2 - len(rows), 0), rows.shape[1]))])
    _, _, vectors = np.linalg.svd(rows, full_matrices=False)
    return np.stack([fix_sign(vector) for vector in vectors])


def _lanes(m: Mixture) -> Array:
    if m.labels is None:
        return np.full(m.n_components, -1.0)
    lanes: Array = m.labels @ np.arange(m.labels.shape[1], dtype=float)
    return lanes
