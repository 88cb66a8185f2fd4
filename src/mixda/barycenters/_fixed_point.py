"""Algorithm 1 of the paper as a fixed point on inner products.

With ``Z`` the components ``[m, s, √β v]`` of all inputs, stacked, a barycenter is a linear image
``B = [λ_1 T_1 … λ_C T_C] Z``. Its distances to the inputs follow from the inner products ``Z Zᵀ``,
so that a round does not depend on the dimension (DESIGN §4, "Lift" and "Gram").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mixda._core.namespace import multiply, namespace, to_numpy
from mixda._core.parallel import thread_map
from mixda._core.typing import Array, Codes, Floats
from mixda.transport import LabelWeight, SparsePlan, solve_exact

_ROUNDING = 1e-9  # relative change of the objective that is no increase
MIN_INPUTS_FOR_THREADS = 8  # inputs or domains from which on threads share the plans


@dataclass(frozen=True)
class FixedPoint:
    """The best plans from the barycenter to each input, and the objective of every round."""

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
    max_iter: int,
    tol: float,
    plans: Sequence[SparsePlan] | None = None,
) -> FixedPoint:
    """Alternate plans and barycentric images (Algorithm 1) until neither changes.

    The result is the round of the lowest objective: the last one, unless the label weight changes
    from round to round (``beta="max"``).

    Parameters
    ----------
    gram : Gram
        Inner products of all inputs' components, stacked.
    input_weights : C arrays of shape (K_c,)
    component_weights : ndarray of shape (K_B,)
    lam : ndarray of shape (C,)
        Barycentric coordinates λ.
    costs : C arrays of shape (K_B, K_c)
        Costs between the start and the inputs.
    max_iter, tol : int, float
        Stop after `max_iter` rounds or when the objective changes by at most `tol`, relatively.
    plans : C SparsePlan, optional
        The plans whose image the start is. The fixed point is reached as soon as they recur.
    """
    sizes = [len(weights) for weights in input_weights]
    previous = [None] * len(sizes) if plans is None else list(plans)
    history: list[float] = []
    best: list[SparsePlan] = []
    while True:
        # ω_c = GMMOT(B, P_c) for every input, from the potentials of the previous round
        potentials = [None if plan is None else plan.potentials for plan in previous]
        with thread_map(len(sizes) >= MIN_INPUTS_FOR_THREADS) as run:
            marginals = [component_weights] * len(sizes), input_weights
            current = list(run(solve_exact, *marginals, costs, potentials))
        # L_it = Σ_c λ_c Σ_ij ω_c,ij C_c,ij
        values = [plan.value(cost) for plan, cost in zip(current, costs, strict=True)]
        history.append(float(sum(x * value for x, value in zip(lam, values, strict=True))))
        change = np.inf if len(history) < 2 else abs(history[-2] - history[-1])
        converged = change <= tol * abs(history[-1])
        converged |= all(new.same_as(old) for new, old in zip(current, previous, strict=True))
        if history[-1] <= min(history) + _ROUNDING * abs(history[-1]):
            best = current
        if converged or len(history) >= max_iter:
            return FixedPoint(best, history, converged)
        # B ← Σ_c λ_c T_ωc(B), known by its matrix alone
        previous = list(current)
        costs = image_costs(stack_maps(current, lam), gram, sizes)


@dataclass(frozen=True)
class Gram:
    """Inner products of stacked components: of their features, and of labels that stay apart.

    A constant β makes labels features like others (`lifted`). Labels stay apart only if every plan
    has a label weight of its own (``beta="max"``), the largest of its feature costs.
    """

    features: Floats | Points
    labels: Floats | Points | None = None

    @classmethod
    def lifted(cls, features: Floats, labels: Floats | None, weight: LabelWeight) -> Gram:
        """Combine two matrices of inner products into those of ``[m, s, √β v]``, β constant."""
        if labels is None or weight.constant is None:
            return cls(features, labels)
        return cls(features + weight.constant * labels)


class Points:
    """Stacked components themselves, for when the matrix of their inner products is too large.

    Memory grows with the number of components instead of its square. Points of torch or CuPy are
    multiplied on their device; the products are numpy arrays.
    """

    def __init__(self, points: Floats) -> None:
        self._points = points

    def products(self, image: sparse.csr_matrix | Alignment) -> Floats:
        """Inner products of ``image @ Z`` with the components ``Z``."""
        if namespace(self._points) is np:
            products: Floats = (image @ self._points) @ self._points.T
            return products
        return to_numpy(multiply(image, self._points) @ self._points.T)

    def diagonal(self) -> Floats:
        """Squared norms of the components."""
        xp = namespace(self._points)
        return to_numpy(xp.einsum("ij,ij->i", self._points, self._points))


def stack_maps(plans: Sequence[SparsePlan], lam: Array) -> sparse.csr_matrix:
    """Return the matrix ``[λ_1 T_1 … λ_C T_C]`` of the maps ``T_c = diag(1/b) ω_c`` (eq. 10, 13).

    Assignments make ``T_c`` permutations: one entry per row and input, without any division.
    """
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


@dataclass(frozen=True)
class Alignment:
    """The matrix ``[λ_1 P_1 … λ_C P_C]`` of C permutations, without the overhead of a sparse one.

    Attributes
    ----------
    columns : ndarray of shape (K, C)
        ``columns[j, c]`` is the row of the stacked inputs that input *c* gives to component *j*.
    lam : ndarray of shape (C,)
    """

    columns: Codes
    lam: Array

    def __matmul__(self, stacked: Floats) -> Floats:
        """Average the rows of the stacked inputs."""
        product: Floats = stacked[self.columns[:, 0]]
        product *= self.lam[0]
        for x, rows in zip(self.lam[1:], self.columns.T[1:], strict=True):
            if x > 0:
                product += stacked.dtype.type(x) * stacked[rows]
        return product


def image_costs(
    image: sparse.csr_matrix | Alignment, gram: Gram, sizes: Sequence[int]
) -> list[Floats]:
    """Costs between the barycenter ``image @ Z`` and every input, from inner products alone."""
    label_costs = None if gram.labels is None else _image_distances(image, gram.labels)
    return split_costs(_image_distances(image, gram.features), label_costs, sizes)


def _image_distances(image: sparse.csr_matrix | Alignment, gram: Floats | Points) -> Floats:
    """Squared distances between ``image @ Z`` and ``Z``, given the Gram matrix ``Z Zᵀ``.

    ``‖B_j - Z_k‖² = (M G Mᵀ)_jj - 2 (M G)_jk + G_kk`` with ``B = M Z``; the first term sums the
    entries of ``M G`` over the few components that make ``B_j``.
    """
    inner = gram.products(image) if isinstance(gram, Points) else image @ gram
    if isinstance(image, Alignment):
        norms: Floats = np.take_along_axis(inner, image.columns, axis=1) @ image.lam
    else:
        rows = np.repeat(np.arange(image.shape[0]), np.diff(image.indptr))
        norms = np.bincount(rows, image.data * inner[rows, image.indices], minlength=len(inner))  # type: ignore[assignment]
    inner *= -2.0
    inner += norms[:, None]
    inner += gram.diagonal()
    distances: Floats = np.maximum(inner, 0.0, out=inner)
    return distances


def split_costs(
    feature_costs: Floats, label_costs: Floats | None, sizes: Sequence[int]
) -> list[Floats]:
    """Cut stacked costs into one block per input.

    Labels that stay apart are added with the largest feature cost of the block as their weight.
    """
    cuts = np.cumsum(sizes)[:-1]
    blocks = np.split(feature_costs, cuts, axis=1)
    if label_costs is None:
        return blocks
    per_plan = LabelWeight(None)
    label_blocks = np.split(label_costs, cuts, axis=1)
    return [c + per_plan.for_plan(c) * v for c, v in zip(blocks, label_blocks, strict=True)]
