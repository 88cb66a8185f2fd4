"""Mixture-Wasserstein barycenters: the public side of Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import (
    check_choice,
    check_positive_int,
    check_random_state,
    check_simplex,
    check_tol,
)
from mixda.barycenters._fixed_point import FixedPoint, Gram, Points, fixed_point, split_costs
from mixda.mixture import Mixture
from mixda.transport import (
    Beta,
    LabelWeight,
    align_labels,
    check_same_features,
    features,
    squared_distances,
)

_MAX_BETA_RATIO = 1e8  # to the largest feature cost, so that features keep half of their digits
_MAX_GRAM_ROWS = 4096  # components in all, above which their inner products (128 MB) are not kept


@dataclass(frozen=True, eq=False)
class BarycenterResult:
    r"""The result of `barycenter`.

    Attributes
    ----------
    mixture : Mixture
        The barycenter, labeled if all inputs are.
    history : ndarray of shape (n_iter,)
        Objective :math:`\sum_c \lambda_c \mathcal{SMW}_2(B, P_c)^2` at the start of each round.
    plans : tuple of ndarray
        Plans of the last round, shapes (K_B, K_c); the barycenter is their image.
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
    r"""Barycenter of mixtures under MW2 or, if all are labeled, SMW2 (eq. 14, Algorithm 1).

    .. math:: \mathcal{B}(\lambda, \mathcal{P}) = \arg\min_B
              \sum_{c} \lambda_c \, \mathcal{SMW}_2(B, P_c)^2

    Parameters
    ----------
    mixtures : sequence of C Mixture
        Weights and numbers of components may differ; features must not. Classes are matched by
        name.
    weights : array-like of shape (C,), optional
        Barycentric coordinates λ; uniform by default.
    n_components : int, optional
        Components K_B of the barycenter; by default those of the mixture it starts from.
        Components of weight zero are left out.
    beta : float, "auto" or "max"
        Weight of the labels. "auto" is the largest feature cost between any two inputs, a constant,
        so that the objective never increases. "max" is the largest feature cost of each plan,
        recomputed for every plan as in the authors' code.
    component_weights : "start", "uniform" or array-like of shape (K_B,)
        Weights of the barycenter's components. "start" keeps those of the mixture it starts from,
        so that one-hot λ returns the input itself. "uniform" is the paper's choice.
    init : "input", "random" or Mixture
        Start of the fixed point. "input" is the input with the largest coordinate; ties go to the
        one with the most components, then to the one with the larger mean. If that input lacks a
        class, all inputs are pooled. If sizes differ, the start is resampled systematically to
        `n_components`. "random" is the paper's start: means drawn from N(0, I), unit deviations
        and uniform labels.
    max_iter, tol : int, float
        Stop after `max_iter` rounds or when the objective changes by at most `tol`, relatively.
    random_state : int or Generator, optional
        Used only with ``init="random"``.

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
    (array([8.5, 1. ]), array([2., 2.]), array([1, 0]))
    """
    mixtures = list(mixtures)
    if not mixtures:
        raise MixdaError("mixtures is empty; a barycenter needs at least one mixture.")
    names = check_same_features(mixtures)
    C = len(mixtures)
    lam = np.full(C, 1.0 / C) if weights is None else check_simplex(weights, "weights", C)
    max_iter, tol = check_positive_int(max_iter, "max_iter"), check_tol(tol)
    rng = check_random_state(random_state)
    start = _starting_mixture(mixtures, lam, n_components, init, component_weights, rng)
    (*labels, start_labels), classes = align_labels([*mixtures, start])
    labeled = [v for v in labels if v is not None]
    clouds = [features(m) for m in mixtures]
    points, point_labels = np.vstack(clouds), None
    weight = LabelWeight(0.0)
    if len(labeled) == C:
        point_labels = np.vstack(labeled)
        weight = label_weight(beta, clouds)
        if init == "random" and start_labels is not None:  # over the classes of all inputs
            start_labels = np.full_like(start_labels, 1.0 / len(classes))
    result = _solve(points, point_labels, mixtures, start, start_labels, lam, weight, max_iter, tol)
    image = result.matrix(lam)
    B = image @ points
    d = start.n_features
    B_labels = None if point_labels is None else _normalize(image @ point_labels)
    named = None if point_labels is None else classes, names
    mixture = Mixture(start.weights, B[:, :d], np.maximum(B[:, d:], 0.0), B_labels, *named)
    plans = tuple(plan.toarray() for plan in result.plans)
    history = np.array(result.history)
    return BarycenterResult(mixture, history, plans, weight.parameter, result.converged)


def _solve(
    points: Array,
    labels: Array | None,
    mixtures: Sequence[Mixture],
    start: Mixture,
    start_labels: Array | None,
    lam: Array,
    weight: LabelWeight,
    max_iter: int,
    tol: float,
) -> FixedPoint:
    """Run the fixed point on the inputs' stacked points and labels."""
    costs, label_costs = squared_distances(features(start), points), None
    if labels is not None and start_labels is not None:
        label_costs = squared_distances(start_labels, labels)
        if weight.constant is not None:
            costs, label_costs = costs + weight.constant * label_costs, None
    sizes = [m.n_components for m in mixtures]
    gram = _gram(points - points.mean(axis=0), labels, weight)
    inputs = [m.weights for m in mixtures]
    blocks = split_costs(costs, label_costs, sizes)
    return fixed_point(gram, inputs, start.weights, lam, blocks, max_iter, tol)


def _gram(centered: Array, labels: Array | None, weight: LabelWeight) -> Gram:
    """Inner products of centered points, so that distances do not cancel, and of labels."""
    if len(centered) <= _MAX_GRAM_ROWS:
        products = None if labels is None else labels @ labels.T
        return Gram.lifted(centered @ centered.T, products, weight)
    if labels is None:
        return Gram(Points(centered))
    if weight.constant is None:
        return Gram(Points(centered), Points(labels))
    return Gram(Points(np.hstack([centered, np.sqrt(weight.constant) * labels])))


def label_weight(beta: Beta, clouds: Sequence[Array]) -> LabelWeight:
    """Return the label weight that a user asks for with a number, "auto" or "max"."""
    if isinstance(beta, str):
        check_choice(beta, "beta", ("auto", "max"))
        return LabelWeight(auto_beta(clouds) if beta == "auto" else None)
    weight = LabelWeight.parse(beta)
    if len(clouds) > 1 and weight.constant is not None and weight.constant > _MAX_BETA_RATIO:
        largest = auto_beta(clouds)
        if weight.constant > _MAX_BETA_RATIO * largest:
            raise MixdaError(
                f"beta={weight.constant:g} is more than {_MAX_BETA_RATIO:g} times the largest "
                f"feature cost between two domains ({largest:g}), so rounding would erase the "
                "features; look for outliers or different units in the target, or, if you set "
                "beta, use 'auto'."
            )
    return weight


def auto_beta(clouds: Sequence[Array]) -> float:
    """Return the largest squared distance between components of two different inputs."""
    pairs = [(a, b) for i, a in enumerate(clouds) for b in clouds[:i]]
    return max((float(squared_distances(a, b).max()) for a, b in pairs), default=1.0)


def _starting_mixture(
    mixtures: Sequence[Mixture],
    lam: Array,
    n_components: int | None,
    init: str | Mixture,
    component_weights: str | ArrayLike,
    rng: np.random.Generator,
) -> Mixture:
    """Return the mixture that the fixed point starts from, without components of weight zero."""
    origin = init if isinstance(init, Mixture) else _origin(mixtures, lam)
    check_same_features([origin, *mixtures])
    K = origin.n_components if n_components is None else n_components
    K = check_positive_int(K, "n_components")
    if not isinstance(init, Mixture):
        check_choice(init, "init", ("input", "random"))
    weights = np.full(K, 1.0 / K)
    if not isinstance(component_weights, str):
        weights = check_simplex(component_weights, "component_weights", K)
        weights = weights[weights > 0]
    elif (
        check_choice(component_weights, "component_weights", ("start", "uniform")) == "start"
        and init != "random"
        and origin.n_components == K
    ):
        origin = _drop_empty_components(origin)
        weights = origin.weights
    if init == "random":  # the first line of Algorithm 1
        nc = 0 if origin.classes is None else len(origin.classes)
        means = rng.standard_normal((len(weights), origin.n_features))
        labels = np.full((len(weights), nc), 1.0 / nc) if nc else None
        return Mixture(weights, means, np.ones_like(means), labels, origin.classes)
    return resample(origin, weights)


def _drop_empty_components(p: Mixture) -> Mixture:
    kept = p.weights > 0
    if kept.all():
        return p
    labels = None if p.labels is None else p.labels[kept]
    return Mixture(p.weights[kept], p.means[kept], p.stds[kept], labels, p.classes)


def _origin(mixtures: Sequence[Mixture], lam: Array) -> Mixture:
    """Return the input with the largest coordinate, or all inputs together if it lacks a class.

    Among several with that coordinate it is the one with the most components; then the values of
    its mean decide, so that the order of the inputs does not matter.
    """
    heaviest = [m for m, x in zip(mixtures, lam, strict=True) if x >= lam.max() * (1.0 - 1e-9)]
    origin = max(heaviest, key=lambda m: (m.n_components, *(m.weights @ m.means)))
    used = [m for m, x in zip(mixtures, lam, strict=True) if x > 0]
    (own, *labels), classes = align_labels([origin, *used])
    if own is None or any(v is None for v in labels):
        return origin
    all_labels = np.vstack([v for v in labels if v is not None])
    if not (all_labels.any(axis=0) & ~own.any(axis=0)).any():
        return origin
    weights = np.concatenate([x * m.weights for x, m in zip(lam[lam > 0], used, strict=True)])
    means, stds = (np.vstack([getattr(m, name) for m in used]) for name in ("means", "stds"))
    return Mixture(weights / weights.sum(), means, stds, all_labels, classes)


def resample(p: Mixture, weights: Array) -> Mixture:
    """Represent `p` by components of the given weights: systematic sampling of its own components.

    Components are visited class by class, so that each class keeps its proportion. The values of
    their means decide on the order of the classes.
    """
    if np.array_equal(p.weights, weights):
        return p
    order = np.arange(p.n_components)
    if p.labels is not None:
        mass = p.weights @ p.labels
        means = (p.weights[:, None] * p.labels).T @ p.means / np.where(mass > 0, mass, 1.0)[:, None]
        rank = np.argsort(np.lexsort(means.T[::-1]))
        order = np.argsort(rank[p.labels.argmax(axis=1)], kind="stable")
    ends = np.cumsum(p.weights[order])
    middles = np.cumsum(weights) - 0.5 * weights
    chosen = order[np.searchsorted(ends, middles * ends[-1]).clip(max=p.n_components - 1)]
    labels = None if p.labels is None else p.labels[chosen]
    return Mixture(weights, p.means[chosen], p.stds[chosen], labels, p.classes)


def _normalize(labels: Array) -> Array:
    labels = np.maximum(labels, 0.0)
    normalized: Array = labels / labels.sum(axis=1, keepdims=True)
    return normalized
