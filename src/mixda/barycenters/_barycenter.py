"""Mixture-Wasserstein barycenters: the public side of Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from mixda._core.errors import MixdaError
from mixda._core.namespace import as_like, check_like, to_float64
from mixda._core.typing import Array, Floats
from mixda._core.validation import (
    check_choice,
    check_positive_int,
    check_random_state,
    check_simplex,
    check_tol,
    is_word,
)
from mixda.barycenters._fixed_point import (
    FixedPoint,
    Gram,
    Points,
    fixed_point,
    image_costs,
    split_costs,
)
from mixda.barycenters._free_support import free_support
from mixda.barycenters._starts import input_order, starting_mixtures
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
_MAX_FREE_INPUTS = 512  # components in all, up to which support is free by default (seconds)
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
        Plans of the best round, shapes (K_B, K_c); the barycenter is their image.
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
    component_weights: str | ArrayLike = "auto",
    init: str | Mixture = "input",
    max_iter: int = 100,
    tol: float = 1e-9,
    random_state: int | np.random.Generator | None = None,
    like: Any = None,
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
        Components K_B of the barycenter; by default those of the mixture it starts from, or as many
        as free support needs. Components of weight zero are left out.
    beta : float, "auto" or "max"
        Weight of the labels. "auto" is the largest feature cost between any two inputs, a constant,
        so that the objective never increases. "max" is the largest feature cost of each plan,
        recomputed for every plan as in the authors' code.
    component_weights : "auto", "free", "start", "uniform" or array-like of shape (K_B,)
        Weights of the barycenter's components. "free": support and weights are free (see Notes);
        if `n_components` is given, components are merged until at most that many are left. "start"
        keeps the weights of the mixture that the fixed point starts from. "uniform" is the paper's
        choice. "auto" is "free" if neither `n_components` nor a start is given, `beta` is constant,
        and the inputs have the same classes and at most 512 components in all; otherwise "start".
        With "free" and "start", one-hot λ returns the input itself.
    init : "input", "random" or Mixture
        Starts of the fixed point. "input": every input that has all classes (at most eight, those
        with the largest coordinates first); the lowest objective wins. If the input with the
        largest coordinate lacks a class, all inputs together are one more start. If sizes differ, a
        start is resampled systematically to `n_components`. "random" is the paper's start: means
        drawn from N(0, I), unit deviations and uniform labels.
    max_iter, tol : int, float
        Stop after `max_iter` rounds or when the objective changes by at most `tol`, relatively.
    random_state : int or Generator, optional
        Used only with ``init="random"``.
    like : torch tensor or CuPy array, optional
        Inner products of components are computed with its library, on its device and in its
        precision. Requires scikit-learn's array dispatch. Default: numpy.

    Returns
    -------
    BarycenterResult

    Notes
    -----
    Algorithm 1 keeps the number of components and their weights, so with other weights in every
    input it ends above the minimum. Free support solves the multi-marginal linear program

    .. math:: \min_{\pi} \sum_t \pi_t \sum_c \lambda_c \lVert z_{c, t_c} - \bar z_t \rVert^2,
              \qquad \bar z_t = \sum_c \lambda_c z_{c, t_c}

    over tuples t of one component per input, restricted to a pool that grows from the plans of the
    fixed points. Each tuple is a component; there are at most :math:`\sum_c K_c - C + 1`.

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
    order = input_order(mixtures, lam)  # so that the order of the inputs does not matter
    mixtures, lam = [mixtures[c] for c in order], lam[order]
    max_iter, tol = check_positive_int(max_iter, "max_iter"), check_tol(tol)
    rng = check_random_state(random_state)
    K = None if n_components is None else check_positive_int(n_components, "n_components")
    wanted = component_weights
    if is_word(wanted, "auto"):
        is_plain = init == "input" and K is None and beta != "max"
        wanted = "free" if is_plain and _may_be_free(mixtures, lam) else "start"
    free = is_word(wanted, "free")
    starts = starting_mixtures(
        mixtures, lam, None if free else K, init, "start" if free else wanted, rng
    )
    aligned, classes = align_labels([*mixtures, *starts])
    problem = _Problem.of(mixtures, aligned[:C], lam, beta, check_like(like))
    solutions = []
    for start, labels in zip(starts, aligned[C:], strict=True):
        if init == "random" and labels is not None:  # over the classes of all inputs
            labels = np.full_like(labels, 1.0 / len(classes))
        solutions.append(problem.solve(features(start), labels, start.weights, max_iter, tol))
    best = min(solutions, key=lambda solution: solution.value)
    if free:
        best = problem.solve_free([solution.result for solution in solutions], K, max_iter, tol)
    image = best.result.matrix(lam)
    B, d = image @ problem.points, mixtures[0].n_features
    B_labels = None if problem.labels is None else _normalize(image @ problem.labels)
    named = None if B_labels is None else classes, names
    return BarycenterResult(
        Mixture(best.weights, B[:, :d], np.maximum(B[:, d:], 0.0), B_labels, *named),
        np.array(best.result.history),
        tuple(best.result.plans[c].toarray() for c in np.argsort(order)),
        problem.label_weight.parameter,
        best.result.converged,
    )


def _may_be_free(mixtures: Sequence[Mixture], lam: Array) -> bool:
    """Whether free support is fast enough, and all inputs have the same classes.

    The optimum is indifferent to a class that an input lacks, and may merge it with another.
    """
    labels, _ = align_labels([m for m, x in zip(mixtures, lam, strict=True) if x > 0])
    present = [v.any(axis=0) for v in labels if v is not None]
    n_inputs = sum(m.n_components for m in mixtures)
    few = n_inputs <= min(_MAX_FREE_INPUTS, _MAX_GRAM_ROWS)
    return few and all(np.array_equal(present[0], other) for other in present)


@dataclass(frozen=True, eq=False)
class _Solution:
    """A fixed point, and the weights of its components."""

    result: FixedPoint
    weights: Array

    @property
    def value(self) -> float:
        return min(self.result.history)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The inputs as stacked points and labels, with inner products that all starts share."""

    points: Array
    labels: Array | None
    input_weights: list[Array]
    lam: Array
    label_weight: LabelWeight
    gram: Gram
    like: Any

    @classmethod
    def of(
        cls,
        mixtures: Sequence[Mixture],
        labels: Sequence[Array | None],
        lam: Array,
        beta: Beta,
        like: Any,
    ) -> _Problem:
        clouds = [features(m) for m in mixtures]
        labeled = [v for v in labels if v is not None]
        points, stacked, weight = np.vstack(clouds), None, LabelWeight(0.0)
        if len(labeled) == len(mixtures):
            stacked, weight = np.vstack(labeled), label_weight(beta, clouds, like)
        gram = _gram(points - points.mean(axis=0), stacked, weight, like)
        return cls(points, stacked, [m.weights for m in mixtures], lam, weight, gram, like)

    def solve(
        self, points: Array, labels: Array | None, weights: Array, max_iter: int, tol: float
    ) -> _Solution:
        """Run the fixed point from given components."""
        costs, label_costs = squared_distances(points, self.points, self.like), None
        if self.labels is not None and labels is not None:
            label_costs = squared_distances(labels, self.labels)
            if self.label_weight.constant is not None:
                costs, label_costs = costs + self.label_weight.constant * label_costs, None
        return self._run(weights, split_costs(costs, label_costs, self._sizes), max_iter, tol)

    def solve_free(
        self, starts: Sequence[FixedPoint], n_components: int | None, max_iter: int, tol: float
    ) -> _Solution:
        """Free support and weights, from the plans of several fixed points; see `free_support`."""
        gram = self.gram.features
        if isinstance(gram, Points) or self.gram.labels is not None:
            raise MixdaError(
                "component_weights='free' needs a constant beta and at most "
                f"{_MAX_GRAM_ROWS} components in all; use beta='auto' or component_weights='start'."
            )
        used = np.flatnonzero(self.lam > 0)
        ends = np.cumsum([0, *self._sizes])
        rows = np.concatenate([np.arange(ends[c], ends[c + 1]) for c in used])
        image, weights = free_support(
            gram[np.ix_(rows, rows)],
            [self.input_weights[c] for c in used],
            self.lam[used],
            [[start.plans[c] for c in used] for start in starts],
            n_components,
        )
        image = image @ sparse.eye(len(gram), format="csr")[rows]
        return self._run(weights, image_costs(image, self.gram, self._sizes), max_iter, tol)

    @property
    def _sizes(self) -> list[int]:
        return [len(weights) for weights in self.input_weights]

    def _run(
        self, weights: Array, blocks: Sequence[Floats], max_iter: int, tol: float
    ) -> _Solution:
        inputs = self.gram, self.input_weights, weights, self.lam
        return _Solution(fixed_point(*inputs, blocks, max_iter, tol), weights)


def _gram(centered: Array, labels: Array | None, weight: LabelWeight, like: Any) -> Gram:
    """Inner products of centered points, so that distances do not cancel, and of labels."""

    def own(points: Array) -> Any:
        return points if like is None else as_like(points, like)

    if len(centered) <= _MAX_GRAM_ROWS:
        points, products = own(centered), None if labels is None else labels @ labels.T
        return Gram.lifted(to_float64(points @ points.T), products, weight)
    if labels is None:
        return Gram(Points(own(centered)))
    if weight.constant is None:
        return Gram(Points(own(centered)), Points(labels))
    return Gram(Points(own(np.hstack([centered, np.sqrt(weight.constant) * labels]))))


def label_weight(beta: Beta, clouds: Sequence[Array], like: Any = None) -> LabelWeight:
    """Return the label weight that a user asks for with a number, "auto" or "max"."""
    if isinstance(beta, str):
        check_choice(beta, "beta", ("auto", "max"))
        return LabelWeight(auto_beta(clouds, like) if beta == "auto" else None)
    weight = LabelWeight.parse(beta)
    if len(clouds) > 1 and weight.constant is not None and weight.constant > _MAX_BETA_RATIO:
        largest = auto_beta(clouds, like)
        if weight.constant > _MAX_BETA_RATIO * largest:
            raise MixdaError(
                f"beta={weight.constant:g} is more than {_MAX_BETA_RATIO:g} times the largest "
                f"feature cost between two domains ({largest:g}), so rounding would erase the "
                "features; look for outliers or different units in the target, or, if you set "
                "beta, use 'auto'."
            )
    return weight


def auto_beta(clouds: Sequence[Array], like: Any = None) -> float:
    """Return the largest squared distance between components of two different inputs."""
    pairs = [(a, b) for i, a in enumerate(clouds) for b in clouds[:i]]
    return max((float(squared_distances(a, b, like).max()) for a, b in pairs), default=1.0)


def _normalize(labels: Array) -> Array:
    labels = np.maximum(labels, 0.0)
    normalized: Array = labels / labels.sum(axis=1, keepdims=True)
    return normalized
