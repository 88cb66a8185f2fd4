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
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mixda._core.namespace import as_like, dtype_name, multiply, namespace, to_numpy
from mixda._core.parallel import thread_map
from mixda._core.typing import Array, Codes, Floats
from mixda.barycenters import (
    MIN_INPUTS_FOR_THREADS,
    Alignment,
    Gram,
    fixed_point,
    image_costs,
)
from mixda.dictionary._quadratic import DampedStep, NormalEquations
from mixda.dictionary._state import AtomProducts, Evaluation, Reconstruction, State, WarmStart
from mixda.transport import LabelWeight, SparsePlan, solve_exact

_COLD_ROUNDS = 10  # of Algorithm 1 without a warm start
_WARM_ROUNDS = 1  # of Algorithm 1 from the alignment of the previous step
_MAX_UPDATES = 20  # of inner products before they are computed anew
_SPARSE_COST = 12  # time per multiplication of a sparse matrix, relative to a dense one
_STRIP = 8  # rows transposed at once
_MIN_ATOM_SHARE = 1e-12  # keeps the weights of an atom that no domain uses where they are
_MIN_COMPONENT_WEIGHT = 1e-3  # relative to uniform weights
_MIN_PRESENT = 0.5  # share of a domain's classes in a label, relative to the largest such share


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
    like : torch tensor or CuPy array, optional
        Points are kept, and products of points are computed, with its library, on its device and
        in its precision. Inner products, labels, plans and coordinates are always numpy arrays.
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
        like: Any = None,
    ) -> None:
        self.like, self.dtype = like, dtype if like is None else dtype_name(like)
        stacked = namespace(clouds[0]).vstack(clouds)
        nc = next((v.shape[1] for v in labels if v is not None), 0)
        self.center = stacked.mean(axis=0)
        self.points: Floats = self.on_device(stacked - self.center)
        self.labels: Floats = np.vstack(
            [
                np.zeros((len(c), nc)) if v is None else v
                for c, v in zip(clouds, labels, strict=True)
            ]
        ).astype(self.dtype)
        self.is_labeled = [v is not None for v in labels]
        self.present_classes = [None if v is None else _class_mask(v) for v in labels]
        self.starts = np.cumsum([0, *(len(cloud) for cloud in clouds)])
        self.norms, self.label_norms = _squared_norms(self.points), _squared_norms(self.labels)
        self.weights = list(weights)
        self.n_atoms, self.n_components = n_atoms, n_components
        self.label_weight = label_weight

    def on_device(self, points: Array) -> Floats:
        """Return points in the precision of the engine, and where its products are computed."""
        if self.like is None:
            return points.astype(self.dtype)
        on_device: Floats = as_like(points, self.like)
        return on_device

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
        own, cross = state.points @ state.points.T, state.points @ self.points.T
        return self.with_labels(to_numpy(own), to_numpy(cross), state, n_updates=0)

    def with_labels(self, own: Floats, cross: Floats, state: State, n_updates: int) -> AtomProducts:
        """Add the products of labels to those of points, among atoms and with domains."""
        labels = state.labels @ state.labels.T
        lifted = Gram.lifted(own, labels, self.label_weight)
        return AtomProducts(own, labels, cross, state.labels @ self.labels.T, lifted, n_updates)

    def updated_products(
        self, products: AtomProducts, step: DampedStep, unprojected: Floats, state: State
    ) -> AtomProducts | None:
        """Products after a damped step and a projection, without those of the whole atoms.

        Where the projection added E to the points V of the step, ``Z = V + E``, so
        ``ZQᵀ = VQᵀ + EQᵀ`` and ``ZZᵀ = VVᵀ + EYᵀ + YEᵀ`` with ``Y = (Z + V) / 2``. Only what is not
        zero in E is multiplied. Rounding errors add up, hence the limit on updates in a row.

        Parameters
        ----------
        products : AtomProducts
            Before the step.
        step : DampedStep
        unprojected : ndarray of shape (C·K, D)
            V.
        state : State
            After the step and the projection.

        Returns
        -------
        AtomProducts or None
            None if new products are cheaper, or due.
        """
        if self.like is not None:  # whole products are cheap on a device
            return None
        added = state.points - unprojected
        used, parts = _nonzero_parts(added)
        work = sum(p.nnz * _SPARSE_COST if sparse.issparse(p) else p.size for _, p in parts)
        work = (work + step.contraction.n_entries) * (len(added) + len(self.points))
        direct = len(added) * (len(added) / 2 + len(self.points)) * added.shape[1]
        if products.n_updates >= _MAX_UPDATES or work > direct:
            return None
        own, cross = step.products(products.points, products.domain_points, self._domain_products)
        middle = _transposed(state.points[:, used] - 0.5 * added[:, used])
        for rows, part in parts:
            cross[rows] += part @ self._points_by_feature[used]
            with_atoms = part @ middle
            own[rows] += with_atoms
            own[:, rows] += with_atoms.T
        return self.with_labels(own, cross, state, products.n_updates + 1)

    @cached_property
    def _domain_products(self) -> Floats:
        products: Floats = self.points @ self.points.T
        return products

    @cached_property
    def _points_by_feature(self) -> Floats:
        return _transposed(self.points)

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

        A domain that lacks classes is compared only with the components of the classes it has. The
        others get no mass at all: however small a mass is, it pulls the component toward another
        class, which increases the mass. Adam would follow it at full speed.
        """
        lam = state.coordinates[l]
        weights: Array = state.weights.ravel()[columns] @ lam
        mask = self.present_classes[l]
        if mask is not None:
            proportion = (state.labels @ mask)[columns] @ lam  # of the classes that it has
            proportion[proportion < _MIN_PRESENT * proportion.max()] = 0.0
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
        K = self.n_components
        image = self._stacked_maps(reconstructions, coordinates)
        plans = self._stacked_plans(reconstructions)
        weights = np.concatenate([r.weights for r in reconstructions]).astype(self.dtype)[:, None]
        betas = np.repeat([r.beta for r in reconstructions], K).astype(self.dtype)[:, None]
        # b_j B_j - Σ_i ω_ji Q_i, for points and for labels
        points: Floats = multiply(image, state.points)
        points *= as_like(weights, points)
        points -= multiply(plans, self.points)
        labels: Floats = betas * (weights * (image @ state.labels) - plans @ self.labels)
        return multiply(image.T, points), image.T @ labels

    def _stacked_maps(
        self, reconstructions: Sequence[Reconstruction], coordinates: Array
    ) -> sparse.csr_matrix:
        """Stack the maps ``[λ_l1 P_l1 … λ_lC P_lC]`` of all domains: ``B = M Z``."""
        K, C = self.n_components, self.n_atoms
        columns = np.concatenate([r.columns for r in reconstructions])
        size = len(columns)
        return sparse.csr_matrix(
            (
                np.repeat(coordinates, K, axis=0).astype(self.dtype).ravel(),
                columns.ravel(),
                np.arange(0, size * C + 1, C),
            ),
            shape=(size, C * K),
        )

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

    def normal_equations(
        self, reconstructions: Sequence[Reconstruction], coordinates: Array
    ) -> NormalEquations:
        """Return the loss as a quadratic in the atoms, with all plans fixed."""
        plans = [r.plan for r in reconstructions]
        rows = [plan.rows + self.n_components * l for l, plan in enumerate(plans)]
        columns = [plan.columns + start for plan, start in zip(plans, self.starts, strict=False)]
        return NormalEquations(
            np.concatenate([r.columns for r in reconstructions]),
            np.repeat(coordinates, self.n_components, axis=0),
            np.concatenate([r.weights for r in reconstructions]),
            (
                np.concatenate(rows),
                np.concatenate(columns),
                np.concatenate([plan.mass for plan in plans]),
            ),
            (self.n_atoms * self.n_components, len(self.points)),
        )

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
    if previous is None:
        plans, rounds = None, _COLD_ROUNDS
        first = np.arange(K)[:, None] + int(np.argmax(lam)) * K
        image = Alignment(first, np.ones(1))
    else:
        plans, rounds = [_assignment(p) for p in (previous - offsets).T], _WARM_ROUNDS
        image = Alignment(previous, lam)
    sizes, uniform = [K] * C, np.full(K, 1.0 / K)
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


def _nonzero_parts(added: Floats) -> tuple[slice, list[tuple[Codes, Any]]]:
    """Return the range of columns in use, and dense and sparse rows as (rows, matrix)."""
    nonzero = added != 0
    columns = np.flatnonzero(nonzero.any(axis=0))
    if len(columns) == 0:
        return slice(0, 0), []
    used = slice(int(columns[0]), int(columns[-1]) + 1)
    counts = np.count_nonzero(nonzero, axis=1)
    is_dense = counts * _SPARSE_COST > used.stop - used.start
    dense, light = np.flatnonzero(is_dense), np.flatnonzero(~is_dense & (counts > 0))
    return used, [(dense, added[dense, used]), (light, sparse.csr_matrix(added[light, used]))]


def _transposed(matrix: Floats) -> Floats:
    """Copy of the transpose, in strips that fit the cache: three times as fast as numpy's."""
    copy = np.empty(matrix.shape[::-1], dtype=matrix.dtype)
    for start in range(0, len(matrix), _STRIP):
        copy[:, start : start + _STRIP] = matrix[start : start + _STRIP].T
    return copy


def _class_mask(labels: Array) -> Array | None:
    """Ones for the classes of a domain and zeros for those it lacks; None if it lacks none."""
    mask = np.asarray(labels.any(axis=0), dtype=np.float64)
    return None if mask.all() else mask


def _squared_norms(points: Floats) -> Floats:
    return to_numpy(namespace(points).einsum("ij,ij->i", points, points))
