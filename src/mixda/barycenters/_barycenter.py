"""Mixture-Wasserstein barycenters: Algorithm 1 as a fixed point on inner products.

A barycenter is a linear image ``B = Σ_c λ_c T_c Z_c`` of the inputs' components, so its distances
to them need only the inner products of the components: every round is free of the dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from mixda._core.errors import MixdaError
from mixda._core.parallel import thread_map
from mixda._core.validation import (
    Array,
    Floats,
    check_choice,
    check_positive_int,
    check_random_state,
    check_simplex,
    check_tol,
)
from mixda.mixture import Mixture
from mixda.transport import (
    Beta,
    SparsePlan,
    align_labels,
    check_same_features,
    features,
    resolve_beta,
    solve_exact,
    squared_distances,
)

MANY = 8  # inputs or domains, from which on threads share their plans
_BETAS = ("auto", "max")
_LARGEST_BETA = 1e8  # times the features' costs; they keep half of the digits
_GRAM_ROWS = 4096  # components in all, beyond which their inner products (128 MB) are not kept


@dataclass(frozen=True, eq=False)
class BarycenterResult:
    r"""What `barycenter` returns.

    Attributes
    ----------
    mixture : Mixture
        The barycenter, labeled if all inputs are.
    history : ndarray of shape (n_iter,)
        Objective :math:`\sum_c λ_c \mathcal{SMW}_2(B, P_c)^2` at the start of every round.
    plans : tuple of ndarray
        Plans of the last round, whose image the barycenter is, shapes (K_B, K_c).
    beta : float or "max"
        The label weight that was used.
    converged : bool
        Whether the objective or the plans stopped changing within `max_iter` rounds.
    """

    mixture: Mixture
    history: Array
    plans: tuple[Array, ...]
    beta: float | str
    converged: bool


def barycenter(
    mixtures: Sequence[Mixture],
    weights: ArrayLike | None = None,
    n_components: int | None = None,
    *,
    beta: Beta = "auto",
    component_weights: str | ArrayLike = "start",
    init: str | Mixture = "input",
    max_iter: int = 100,
    tol: float = 1e-9,
    random_state: int | np.random.Generator | None = None,
) -> BarycenterResult:
    r"""Barycenter of mixtures under MW2 or, when all are labeled, SMW2 (Algorithm 1).

    .. math:: \mathcal{B}(\lambda, \mathcal{P}) = \arg\min_B
              \sum_{c} \lambda_c \, \mathcal{SMW}_2(B, P_c)^2

    Parameters
    ----------
    mixtures : sequence of C Mixture
        Any weights, any numbers of components, the same features. Classes are matched by name.
    weights : array-like of shape (C,), optional
        Barycentric coordinates λ; uniform by default.
    n_components : int, optional
        Components K_B of the barycenter; by default those of the mixture it starts from.
        Components without weight are left out.
    beta : float, "auto" or "max"
        Weight of the labels. "auto": the largest feature cost between any two inputs, a constant,
        so that the objective never increases. "max": the largest feature cost of each plan,
        computed anew every time as in the authors' code.
    component_weights : "start", "uniform" or array-like of shape (K_B,)
        Weights of the barycenter's components. "start" keeps those of the mixture it starts from,
        so that one-hot λ gives back that very input; "uniform" is the paper's choice.
    init : "input", "random" or Mixture
        Where the fixed point starts: at the input with the largest coordinate (of several, the
        one with the most components; if it lacks a class, all inputs together; resampled
        systematically to `n_components` when sizes differ), as in the paper at means drawn from
        N(0, I) with unit deviations and uniform labels, or at a given mixture.
    max_iter, tol : int, float
        Stop after `max_iter` rounds or when the objective changes by at most `tol`, relatively.
    random_state : int or Generator, optional
        Only for ``init="random"``.

    Returns
    -------
    BarycenterResult

    Examples
    --------
    >>> from mixda import Mixture, barycenter
    >>> p = Mixture([0.5, 0.5], [[0.0], [8.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])
    >>> q = Mixture([0.5, 0.5], [[9.0], [2.0]], [[3.0], [3.0]], [[0, 1], [1, 0]])
    >>> b = barycenter([p, q]).mixture
    >>> b.means.ravel(), b.stds.ravel(), b.labels.argmax(axis=1)
    (array([1. , 8.5]), array([2., 2.]), array([0, 1]))
    """
    mixtures = list(mixtures)
    if not mixtures:
        raise MixdaError("mixtures is empty; a barycenter needs at least one mixture.")
    names = check_same_features(mixtures)
    C = len(mixtures)
    lam = np.full(C, 1.0 / C) if weights is None else check_simplex(weights, "weights", C)
    max_iter, tol = check_positive_int(max_iter, "max_iter"), check_tol(tol)
    clouds = [features(m) for m in mixtures]
    rng = check_random_state(random_state)
    start = _start(mixtures, lam, n_components, init, component_weights, rng)
    (*labels, start_labels), classes = align_labels([*mixtures, start])
    labeled = [v for v in labels if v is not None]
    if len(labeled) < C:
        labeled = []
    beta = constant_beta(beta, clouds) if labeled else 0.0
    points, points_labels = np.vstack(clouds), np.vstack(labeled) if labeled else None
    label_costs = None
    if points_labels is not None and start_labels is not None:
        if init == "random":  # uniform over all classes, also those of other inputs
            start_labels = np.full_like(start_labels, 1.0 / len(classes))
        label_costs = squared_distances(start_labels, points_labels)
    sizes = [len(cloud) for cloud in clouds]
    centered = points - points.mean(axis=0)
    gram = Gram(Points(centered), None if points_labels is None else Points(points_labels))
    if len(points) <= _GRAM_ROWS:
        gram = Gram.of(centered, points_labels).lifted(beta)
    elif not isinstance(beta, str) and points_labels is not None:
        gram = Gram(Points(np.hstack([centered, np.sqrt(beta) * points_labels])), None)
    result = fixed_point(
        gram,
        [m.weights for m in mixtures],
        start.weights,
        lam,
        split_costs(squared_distances(features(start), points), label_costs, sizes, beta),
        beta,
        max_iter,
        tol,
    )
    image = result.matrix(lam)
    B = image @ points
    d = start.n_features
    B_labels = None if points_labels is None else _as_labels(image @ points_labels)
    named = classes if labeled else None, names
    mixture = Mixture(start.weights, B[:, :d], np.maximum(B[:, d:], 0.0), B_labels, *named)
    plans = tuple(plan.toarray() for plan in result.plans)
    return BarycenterResult(mixture, np.array(result.history), plans, beta, result.converged)


class Points:
    """Stacked components themselves, where the matrix of their inner products would be too large.

    Their memory grows with their number, that of the matrix with its square.
    """

    def __init__(self, points: Floats) -> None:
        self._points = points

    def products(self, image: sparse.csr_matrix) -> Floats:
        """Inner products of ``image @ Z`` with the components ``Z``."""
        products: Floats = (image @ self._points) @ self._points.T
        return products

    def diagonal(self) -> Floats:
        """Squared norms of the components."""
        norms: Floats = np.einsum("ij,ij->i", self._points, self._points)
        return norms


@dataclass(frozen=True)
class Gram:
    """Inner products of stacked components: of their features, and of their labels or None."""

    features: Any  # a matrix, or Points
    labels: Any

    @classmethod
    def of(cls, points: Floats, labels: Floats | None) -> Gram:
        """Multiply; the points should be centerd, so that distances do not cancel."""
        return cls(points @ points.T, None if labels is None else labels @ labels.T)

    def lifted(self, beta: float | str) -> Gram:
        """Inner products of ``[m, s, √β v]``: for a constant β labels are features like others."""
        if self.labels is None or isinstance(beta, str):
            return self
        return Gram(self.features + beta * self.labels, None)


@dataclass(frozen=True)
class FixedPoint:
    """Last plans from the barycenter to each input, and the objective of every round."""

    plans: list[SparsePlan]
    history: list[float]
    converged: bool

    def matrix(self, lam: Array) -> sparse.csr_matrix:
        """Return ``[λ_1 T_1 … λ_C T_C]``: the barycenter is this matrix times the components."""
        return stack_maps(self.plans, lam)


def fixed_point(
    gram: Gram,
    input_weights: Sequence[Array],
    component_weights: Array,
    lam: Array,
    costs: Sequence[Floats],
    beta: float | str,
    max_iter: int,
    tol: float,
    plans: Sequence[SparsePlan] | None = None,
) -> FixedPoint:
    """Alternate plans and barycentric images (Algorithm 1) until neither changes.

    Parameters
    ----------
    gram : Gram
        Inner products of all inputs' components, stacked.
    input_weights : C arrays of shape (K_c,)
    component_weights : ndarray of shape (K_B,)
    lam : ndarray of shape (C,)
    costs : C arrays of shape (K_B, K_c)
        Costs between the start and the inputs.
    beta : float or "max"
    plans : C SparsePlan, optional
        The plans whose image the start is: a warm start rests as soon as they come out again.
    """
    sizes = [len(w) for w in input_weights]
    previous = [None] * len(sizes) if plans is None else list(plans)
    history: list[float] = []
    while True:
        warm = [None if plan is None else plan.potentials for plan in previous]
        with thread_map(len(sizes) >= MANY) as run:
            found = list(
                run(solve_exact, [component_weights] * len(sizes), input_weights, costs, warm)
            )
        history.append(
            float(sum(x * p.value(c) for x, p, c in zip(lam, found, costs, strict=True)))
        )
        change = np.inf if len(history) < 2 else abs(history[-2] - history[-1])
        resting = change <= tol * abs(history[-1])
        resting |= all(new.same_as(old) for new, old in zip(found, previous, strict=True))
        if resting or len(history) >= max_iter:
            return FixedPoint(found, history, resting)
        previous = list(found)
        image = stack_maps(found, lam)
        costs = image_costs(image, gram, sizes, beta)


def image_costs(
    image: sparse.csr_matrix, gram: Gram, sizes: Sequence[int], beta: float | str
) -> list[Floats]:
    """Costs between the barycenter ``image @ Z`` and every input, from inner products alone."""
    label_costs = None if gram.labels is None else image_distances(image, gram.labels)
    return split_costs(image_distances(image, gram.features), label_costs, sizes, beta)


def stack_maps(plans: Sequence[SparsePlan], lam: Array) -> sparse.csr_matrix:
    """Return the matrix ``[λ_1 T_1 … λ_C T_C]`` of the maps ``T_c = diag(1/b) ω_c``."""
    offsets = np.cumsum([0] + [plan.shape[1] for plan in plans])
    shape = (plans[0].shape[0], int(offsets[-1]))
    if all(plan.is_assignment for plan in plans):
        indices = np.stack([plan.columns for plan in plans], axis=1) + offsets[:-1]
        entries = np.tile(lam, shape[0]), indices.ravel(), np.arange(0, indices.size + 1, len(lam))
        return sparse.csr_matrix(entries, shape=shape)
    values = []
    for plan, x in zip(plans, lam, strict=True):
        mass = np.bincount(plan.rows, plan.mass, minlength=plan.shape[0])
        values.append(x * plan.mass / mass[plan.rows])
    rows = np.concatenate([plan.rows for plan in plans])
    columns = np.concatenate([p.columns + o for p, o in zip(plans, offsets, strict=False)])
    return sparse.csr_matrix((np.concatenate(values), (rows, columns)), shape=shape)


def image_distances(image: sparse.csr_matrix, gram: Floats | Points) -> Floats:
    """Squared distances between ``image @ Z`` and ``Z``, given the Gram matrix of ``Z``."""
    inner = gram.products(image) if isinstance(gram, Points) else image @ gram
    rows = np.repeat(np.arange(image.shape[0]), np.diff(image.indptr))
    norms = np.bincount(rows, image.data * inner[rows, image.indices], minlength=len(inner))
    inner *= -2.0
    inner += norms[:, None]
    inner += gram.diagonal()
    distances: Floats = np.maximum(inner, 0.0, out=inner)
    return distances


def split_costs(
    feature_costs: Floats,
    label_costs: Floats | None,
    sizes: Sequence[int],
    beta: float | str,
) -> list[Floats]:
    """Cut stacked costs into one block per input and add the labels' part, if it is apart."""
    cuts = np.cumsum(sizes)[:-1]
    blocks = np.split(feature_costs, cuts, axis=1)
    if label_costs is None:
        return blocks
    label_blocks = np.split(label_costs, cuts, axis=1)
    return [c + resolve_beta(beta, c) * v for c, v in zip(blocks, label_blocks, strict=True)]


def constant_beta(beta: Beta, clouds: Sequence[Array]) -> float | str:
    """Return the number behind `beta` for all pairs of inputs, or "max", which has none."""
    if isinstance(beta, str):
        return auto_beta(clouds) if beta == "auto" else check_choice(beta, "beta", _BETAS)
    number = resolve_beta(beta, np.zeros((1, 1)))
    if len(clouds) > 1 and number > _LARGEST_BETA and number > _LARGEST_BETA * auto_beta(clouds):
        raise MixdaError(
            f"beta={number:g} is more than {_LARGEST_BETA:g} times the largest cost between "
            "components of the sources, so that rounding would erase their features; look for "
            "outliers or other units in the target, or, if you gave beta, use 'auto'."
        )
    return number


def auto_beta(clouds: Sequence[Array]) -> float:
    """Return the largest squared distance between components of two different inputs."""
    pairs = [(a, b) for i, a in enumerate(clouds) for b in clouds[:i]]
    return max((float(squared_distances(a, b).max()) for a, b in pairs), default=1.0)


def _start(
    mixtures: Sequence[Mixture],
    lam: Array,
    n_components: int | None,
    init: str | Mixture,
    component_weights: str | ArrayLike,
    rng: np.random.Generator,
) -> Mixture:
    origin = init if isinstance(init, Mixture) else _origin(mixtures, lam)
    check_same_features([origin, *mixtures])
    K = origin.n_components if n_components is None else n_components
    K = check_positive_int(K, "n_components")
    weights = np.full(K, 1.0 / K)
    if not isinstance(component_weights, str):
        weights = check_simplex(component_weights, "component_weights", K)
    elif check_choice(component_weights, "component_weights", ("start", "uniform")) == "start":
        weights = origin.weights if init != "random" and origin.n_components == K else weights
    if not isinstance(init, Mixture):
        check_choice(init, "init", ("input", "random"))
    kept = weights > 0
    if weights is origin.weights and not kept.all():
        labels = None if origin.labels is None else origin.labels[kept]
        origin = Mixture(
            weights[kept], origin.means[kept], origin.stds[kept], labels, origin.classes
        )
    weights = weights[kept]
    if init == "random":
        K = len(weights)
        nc = 0 if origin.classes is None else len(origin.classes)
        means = rng.standard_normal((K, origin.n_features))
        labels = np.full((K, nc), 1.0 / nc) if nc else None
        return Mixture(weights, means, np.ones_like(means), labels, origin.classes)
    return resample(origin, weights)


def _origin(mixtures: Sequence[Mixture], lam: Array) -> Mixture:
    """Return the largest of the inputs with the largest coordinate; all, if it lacks a class."""
    heaviest = [m for m, x in zip(mixtures, lam, strict=True) if x >= lam.max() * (1.0 - 1e-9)]
    origin = max(heaviest, key=lambda m: m.n_components)
    used = [m for m, x in zip(mixtures, lam, strict=True) if x > 0]
    (own, *labels), classes = align_labels([origin, *used])
    if own is None or any(v is None for v in labels):
        return origin
    everyone = np.vstack([v for v in labels if v is not None])
    if not (everyone.any(axis=0) & ~own.any(axis=0)).any():
        return origin
    weights = np.concatenate([x * m.weights for x, m in zip(lam[lam > 0], used, strict=True)])
    means, stds = (np.vstack([getattr(m, name) for m in used]) for name in ("means", "stds"))
    return Mixture(weights / weights.sum(), means, stds, everyone, classes)


def resample(p: Mixture, weights: Array) -> Mixture:
    """Represent `p` by components of the given weights, without moving any: systematic sampling.

    Components are walked in the order of their classes, so that each class keeps its share.
    """
    if np.array_equal(p.weights, weights):
        return p
    order = np.arange(p.n_components)
    if p.labels is not None:
        order = np.argsort(p.labels.argmax(axis=1), kind="stable")
    ends = np.cumsum(p.weights[order])
    middles = np.cumsum(weights) - 0.5 * weights
    chosen = order[np.searchsorted(ends, middles * ends[-1]).clip(max=p.n_components - 1)]
    labels = None if p.labels is None else p.labels[chosen]
    return Mixture(weights, p.means[chosen], p.stds[chosen], labels, p.classes)


def _as_labels(labels: Array) -> Array:
    labels = np.maximum(labels, 0.0)
    normalized: Array = labels / labels.sum(axis=1, keepdims=True)
    return normalized
