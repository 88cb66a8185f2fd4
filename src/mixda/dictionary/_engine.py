"""Loss and closed-form gradients of Algorithm 2 for labeled point clouds.

Notation, for the objective of eq. 16: a component of atom *c* is a point ``z = [m, s]`` with a
label *v*. All C atoms have K components, stacked into ``Z``. Domain *l* has points ``Q_l``, weights
``q_l`` and coordinates ``λ_l``. Its reconstruction is ``B_l = Σ_c λ_lc P_lc Z_c`` with permutations
``P_lc`` (the plans of Algorithm 1, times K). The loss of a domain is ``Σ_ij ω_ij ‖B_li - Q_lj‖²``.
Only a few matrix products per step depend on the dimension; the rest needs inner products alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mixda._core.parallel import thread_map
from mixda._core.typing import Array, Codes, Floats
from mixda.barycenters import (
    MIN_INPUTS_FOR_THREADS,
    Gram,
    fixed_point,
    image_costs,
    stack_maps,
)
from mixda.dictionary._state import AtomProducts, Evaluation, Reconstruction, State, WarmStart
from mixda.transport import LabelWeight, SparsePlan, solve_exact

_COLD_ROUNDS = 10  # of Algorithm 1 without a warm start
_WARM_ROUNDS = 1  # of Algorithm 1 from the alignment of the previous step
_MIN_ATOM_SHARE = 1e-12  # keeps the weights of an atom that no domain uses where they are
_MIN_COMPONENT_WEIGHT = 1e-3  # relative to uniform weights


class Engine:
    """The domains of one dictionary-learning problem, ready to be compared with atoms.

    Parameters
    ----------
    clouds : L arrays of shape (K_l, D)
        Components of the domains' mixtures as points.
    labels : L arrays of shape (K_l, nc), or None for an unlabeled domain
    weights : L arrays of shape (K_l,)
    n_atoms, n_components : int
        C and K.
    label_weight : LabelWeight
    dtype : "float64" or "float32"
        Of the matrix products.
    """

    def __init__(
        self,
        clouds: Sequence[Array],
        labels: Sequence[Array | None],
        weights: Sequence[Array],
        n_atoms: int,
        n_components: int,
        label_weight: LabelWeight,
        dtype: str = "float64",
    ) -> None:
        stacked = np.vstack(clouds)
        nc = next((v.shape[1] for v in labels if v is not None), 0)
        self.center = stacked.mean(axis=0)
        self.points: Floats = (stacked - self.center).astype(dtype)
        self.labels: Floats = np.vstack(
            [
                np.zeros((len(c), nc)) if v is None else v
                for c, v in zip(clouds, labels, strict=True)
            ]
        ).astype(dtype)
        self.is_labeled = [v is not None for v in labels]
        self.present_classes = [None if v is None else _class_mask(v) for v in labels]
        self.starts = np.cumsum([0, *(len(cloud) for cloud in clouds)])
        self.norms, self.label_norms = _squared_norms(self.points), _squared_norms(self.labels)
        self.weights = list(weights)
        self.n_atoms, self.n_components = n_atoms, n_components
        self.label_weight = label_weight
        self.dtype = dtype

    def evaluate(
        self,
        state: State,
        warm_start: Sequence[WarmStart] | None = None,
        products: AtomProducts | None = None,
    ) -> Evaluation:
        """Reconstruct every domain and compute the loss, the body of Algorithm 2 before its step.

        Parameters
        ----------
        state : State
        warm_start : L WarmStart, optional
            From the previous evaluation.
        products : AtomProducts, optional
            From an evaluation of the same atoms; computed if missing.
        """
        known = self._products(state) if products is None else products

        def reconstruct(l: int) -> Reconstruction:
            start = None if warm_start is None else warm_start[l]
            return self._reconstruct(l, state, known, start)

        with thread_map(len(self.weights) >= MIN_INPUTS_FOR_THREADS) as run:
            return Evaluation(list(run(reconstruct, range(len(self.weights)))), known)

    def _products(self, state: State) -> AtomProducts:
        """Compute the only products of an evaluation that depend on the dimension."""
        points, labels = state.points @ state.points.T, state.labels @ state.labels.T
        lifted = Gram.lifted(points, labels, self.label_weight)
        domain_points, domain_labels = state.points @ self.points.T, state.labels @ self.labels.T
        return AtomProducts(points, labels, domain_points, domain_labels, lifted)

    def _reconstruct(
        self, l: int, state: State, products: AtomProducts, warm_start: WarmStart | None
    ) -> Reconstruction:
        lam = state.coordinates[l]
        # Algorithm 1: B_l = Σ_c λ_lc P_lc Z_c, as the rows of Z that each component averages
        previous = None if warm_start is None else warm_start.columns
        columns = align_atoms(products.lifted, lam, self.n_components, previous)
        weights = self._component_weights(l, state, columns)

        # ground cost C_ji = ‖B_j - Q_i‖² + β ‖v_j - y_i‖² from inner products (eq. 12)
        domain = slice(self.starts[l], self.starts[l + 1])
        parts = _AveragedProducts.gather(
            products.points, products.domain_points[:, domain], columns
        )
        cost = parts.cost(lam, self.norms[domain])
        beta = self.label_weight.for_plan(cost) if self.is_labeled[l] else 0.0
        label_parts = None
        if beta > 0:
            label_parts = _AveragedProducts.gather(
                products.labels, products.domain_labels[:, domain], columns
            )
            cost += beta * label_parts.cost(lam, self.label_norms[domain])

        # SMW2(Q_l, B_l)² or, for the unlabeled target, MW2(Q_T, B_T)² (eq. 16)
        potentials = None if warm_start is None else warm_start.potentials
        plan = solve_exact(weights, self.weights[l], cost, potentials)

        quadratic, linear = parts.in_coordinates(weights, plan)
        if label_parts is not None:
            label_quadratic, label_linear = label_parts.in_coordinates(weights, plan)
            quadratic, linear = quadratic + beta * label_quadratic, linear + beta * label_linear
        nearest: Array = np.bincount(
            cost.argmin(axis=0), self.weights[l], minlength=self.n_components
        )  # type: ignore[assignment]
        return Reconstruction(
            columns, weights, plan, plan.value(cost), beta, quadratic, linear, nearest
        )

    def _component_weights(self, l: int, state: State, columns: Codes) -> Array:
        """Weights of a reconstruction: those of the atoms, averaged like the components.

        A domain that lacks classes is compared only with the components of the classes it has.
        """
        lam = state.coordinates[l]
        weights: Array = state.weights.ravel()[columns] @ lam
        mask = self.present_classes[l]
        if mask is not None:
            proportion = (state.labels @ mask)[columns] @ lam  # of the classes that it has
            if (weights * proportion).sum() > 0:
                weights = weights * proportion
        normalized: Array = weights / weights.sum()
        return normalized

    def gradient(
        self, state: State, reconstructions: Sequence[Reconstruction], coordinates: Array
    ) -> tuple[Floats, Floats]:
        """Half-gradients of the loss in the atoms' points and labels, with all plans fixed.

        ``½ ∂L/∂B_j = b_j B_j - Σ_i ω_ji Q_i`` (proof of Theorem 1; times β for labels, Theorem 2),
        and B is linear in the atoms: ``½ ∂L/∂Z_c = Σ_l λ_lc P_lcᵀ ½ ∂L/∂B_l``.
        """
        K, C = self.n_components, self.n_atoms
        # M stacks the maps [λ_l1 P_l1 … λ_lC P_lC] of all domains: B = M Z, C entries per row
        columns = np.concatenate([r.columns for r in reconstructions])
        size = len(columns)
        image = sparse.csr_matrix(
            (
                np.repeat(coordinates, K, axis=0).astype(self.dtype).ravel(),
                columns.ravel(),
                np.arange(0, size * C + 1, C),
            ),
            shape=(size, C * K),
        )
        plans = self._stacked_plans(reconstructions)
        weights = np.concatenate([r.weights for r in reconstructions]).astype(self.dtype)[:, None]
        betas = np.repeat([r.beta for r in reconstructions], K).astype(self.dtype)[:, None]
        # b_j B_j - Σ_i ω_ji Q_i, for points and for labels
        points: Floats = image @ state.points
        points *= weights
        points -= plans @ self.points
        labels: Floats = betas * (weights * (image @ state.labels) - plans @ self.labels)
        return image.T @ points, image.T @ labels

    def _stacked_plans(self, reconstructions: Sequence[Reconstruction]) -> sparse.csr_matrix:
        """All plans as the diagonal blocks of one matrix, (L·K, Σ K_l)."""
        K = self.n_components
        plans = [r.plan for r in reconstructions]
        counts = [np.bincount(plan.rows, minlength=K) for plan in plans]
        columns = [plan.columns + start for plan, start in zip(plans, self.starts, strict=False)]
        mass = np.concatenate([plan.mass for plan in plans]).astype(self.dtype)
        return sparse.csr_matrix(
            (mass, np.concatenate(columns), np.cumsum(np.concatenate([[0], *counts]))),
            shape=(K * len(plans), len(self.points)),
        )

    def hessian(
        self,
        reconstructions: Sequence[Reconstruction],
        coordinates: Array,
        factors: Sequence[float],
    ) -> Floats:
        """Half-Hessian ``Σ_l factor_l M_lᵀ diag(b_l) M_l`` of the loss in the atoms: (C·K, C·K).

        ``M_l = [λ_l1 P_l1 … λ_lC P_lC]``, so component *j* adds ``b_j λ_l λ_lᵀ`` to the rows and
        columns of the C atom components that it averages. Factors are 1 for points, β for labels.
        """
        size = self.n_atoms * self.n_components
        indices, values = [], []
        for r, lam, factor in zip(reconstructions, coordinates, factors, strict=True):
            if factor > 0:
                indices.append((r.columns[:, :, None] * size + r.columns[:, None, :]).ravel())
                values.append((factor * r.weights[:, None, None] * np.outer(lam, lam)).ravel())
        if not indices:
            return np.zeros((size, size), dtype=self.dtype)
        flat = np.bincount(np.concatenate(indices), np.concatenate(values), minlength=size * size)
        return flat.reshape(size, size).astype(self.dtype)

    def updated_weights(
        self, state: State, reconstructions: Sequence[Reconstruction], rate: float
    ) -> Array:
        """Move the atoms' component weights toward those that the domains would choose freely.

        With free weights every component of a domain goes to the nearest one of its reconstruction.
        The loss is convex in the weights, so for a single domain a step toward these never
        increases it. Several domains are averaged, weighted by their coordinates.
        """
        wanted = np.zeros(state.weights.size)
        for lam, r in zip(state.coordinates, reconstructions, strict=True):
            np.add.at(wanted, r.columns, r.nearest[:, None] * lam)
        shares = state.coordinates.sum(axis=0)[:, None]
        C, K = state.weights.shape
        goal = wanted.reshape(C, K) + _MIN_ATOM_SHARE * state.weights
        goal /= shares + _MIN_ATOM_SHARE
        moved = (1.0 - rate) * state.weights + rate * goal
        moved = np.maximum(moved, _MIN_COMPONENT_WEIGHT / K)
        weights: Array = moved / moved.sum(axis=1, keepdims=True)
        return weights


def align_atoms(gram: Gram, lam: Array, n_components: int, previous: Codes | None = None) -> Codes:
    """Algorithm 1 on atoms with K uniform components each: which of them a component averages.

    Parameters
    ----------
    gram : Gram
        Inner products of the stacked atoms.
    lam : ndarray of shape (C,)
        Barycentric coordinates.
    n_components : int
        K.
    previous : ndarray of shape (K, C), optional
        An alignment to start from. By default the start is the atom with the largest coordinate.

    Returns
    -------
    ndarray of shape (K, C)
        ``columns[j, c]`` is the row of the stacked atoms that atom *c* gives to component *j*.
    """
    C, K = len(lam), n_components
    offsets = np.arange(C) * K
    plans = None if previous is None else [_assignment(p) for p in (previous - offsets).T]
    if plans is None:
        first = int(np.argmax(lam)) * K
        entries = np.ones(K), np.arange(first, first + K), np.arange(K + 1)
        image = sparse.csr_matrix(entries, shape=(K, C * K))
    else:
        image = stack_maps(plans, lam)
    sizes, uniform = [K] * C, np.full(K, 1.0 / K)
    rounds = _COLD_ROUNDS if previous is None else _WARM_ROUNDS
    costs = image_costs(image, gram, sizes)
    result = fixed_point(gram, [uniform] * C, uniform, lam, costs, rounds, 0.0, plans)
    columns: Codes = np.stack([plan.columns for plan in result.plans], axis=1) + offsets
    return columns


def _assignment(permutation: Codes) -> SparsePlan:
    K = len(permutation)
    return SparsePlan(np.arange(K), permutation, np.full(K, 1.0 / K), (K, K), is_assignment=True)


@dataclass(frozen=True)
class _AveragedProducts:
    """Inner products that describe ``B(λ) = Σ_c λ_c Z_c[columns_c]`` for any λ."""

    own: Floats  # (K, C, C): between the atoms' contributions to component j
    cross: Floats  # (C·K, K_l): between atoms and the domain
    columns: Codes

    @classmethod
    def gather(cls, gram: Floats, cross: Floats, columns: Codes) -> _AveragedProducts:
        """Pick the products between the contributions of every pair of atoms."""
        return cls(gram[columns[:, :, None], columns[:, None, :]], cross, columns)

    def cost(self, lam: Array, norms: Floats) -> Floats:
        """Squared distances between the K components of B and the domain's components.

        ``‖B_j - Q_i‖² = λᵀ own_j λ + ‖Q_i‖² - 2 Σ_c λ_c ⟨Z_c[columns_jc], Q_i⟩``.
        """
        cost: Floats = np.add.outer(self.own @ lam @ lam, norms).astype(self.cross.dtype)
        for x, rows in zip(lam, self.columns.T, strict=True):
            if x > 0:
                cost -= 2.0 * x * self.cross[rows]
        return np.maximum(cost, 0.0, out=cost)

    def in_coordinates(self, weights: Array, plan: SparsePlan) -> tuple[Array, Array]:
        """Return A and h: with plans fixed the loss is ``λᵀAλ - 2hᵀλ + constant``.

        ``A = Σ_j b_j own_j`` and ``h_c = Σ_ji ω_ji ⟨Z_c[columns_jc], Q_i⟩``, so that half the
        gradient in λ is ``Aλ - h`` (DESIGN §4).
        """
        pairs = self.cross[self.columns[plan.rows], plan.columns[:, None]]
        return np.einsum("j,jcd->cd", weights, self.own), plan.mass @ pairs


def _class_mask(labels: Array) -> Array | None:
    """Ones for the classes of a domain and zeros for those it lacks; None if it lacks none."""
    mask = np.asarray(labels.any(axis=0), dtype=np.float64)
    return None if mask.all() else mask


def _squared_norms(points: Floats) -> Floats:
    norms: Floats = np.einsum("ij,ij->i", points, points)
    return norms
