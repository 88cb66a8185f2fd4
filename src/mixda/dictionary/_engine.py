"""Loss and closed-form gradients of Algorithm 2 for labeled point clouds.

An atom component is a point (for mixtures ``[m, s]``) with a label; all atoms have K components.
The reconstruction of domain *l* is ``B_l = Σ_c λ_lc P_lc Z_c`` with permutations ``P_lc``, so the
inner problems work on inner products, and only a few products per step touch the dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mixda._core.parallel import thread_map
from mixda._core.validation import Array, Floats
from mixda.barycenters import MANY, Gram, fixed_point, image_costs, stack_maps
from mixda.transport import SparsePlan, resolve_beta, solve_exact

_SMALL = 1e-12  # keeps an atom that no domain uses where it is
_SMALL_BLOCK = 16  # components: larger connected blocks are inverted together
_COLD_ROUNDS = 10  # of Algorithm 1 at the first step
_WARM_ROUNDS = 1  # at every later step, which goes on from the last plans


@dataclass
class State:
    """What is learned: atoms stacked along rows, and the coordinates of every domain.

    Attributes
    ----------
    points : (C·K, D)
        Components of the atoms, around the engine's center.
    labels : (C·K, nc)
        One distribution over the classes per component.
    coordinates : (L, C)
        Barycentric coordinates, rows in the simplex.
    masses : (C, K)
        Weights of the atoms' components.
    """

    points: Floats
    labels: Floats
    coordinates: Array
    masses: Array


@dataclass(frozen=True)
class Reconstruction:
    """One domain at one step: which atom components make its barycenter, and how it is matched.

    `columns[j, c]` is the row of ``State.points`` that atom *c* gives to component *j*. With plans
    fixed the loss is ``λᵀ quadratic λ - 2 linearᵀ λ + constant``. `nearest` is the mass of the
    domain's components that lie nearest to each component.
    """

    maps: list[SparsePlan]
    columns: NDArray[np.intp]
    weights: Array
    plan: SparsePlan
    loss: float
    beta: float
    quadratic: Array
    linear: Array
    nearest: Array


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
    beta : float or "max"
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
        beta: float | str,
        dtype: str = "float64",
    ) -> None:
        stacked = np.vstack(clouds)
        nc = next((v.shape[1] for v in labels if v is not None), 0)
        self.center = stacked.mean(axis=0)
        self.points: Floats = (stacked - self.center).astype(dtype)
        self.stacked_labels: Floats = np.vstack(
            [
                np.zeros((len(c), nc)) if v is None else v
                for c, v in zip(clouds, labels, strict=True)
            ]
        ).astype(dtype)
        self.is_labeled = [v is not None for v in labels]
        has = [np.ones(nc) if v is None else v.any(axis=0) for v in labels]
        self.has = [None if row.all() else row.astype(np.float64) for row in has]
        self.starts = np.cumsum([0, *(len(cloud) for cloud in clouds)])
        self.norms, self.label_norms = _row_norms(self.points), _row_norms(self.stacked_labels)
        self.weights = list(weights)
        self.n_atoms, self.n_components = n_atoms, n_components
        self.beta = beta
        self.dtype = dtype
        self._last: tuple[Floats, Gram, Gram, Gram] | None = None

    def evaluate(
        self, state: State, previous: Sequence[Reconstruction] | None = None
    ) -> list[Reconstruction]:
        """Reconstruct every domain and match it; plans start from those of the `previous` step."""
        products = self._products(state)

        def one(l: int) -> Reconstruction:
            return self._reconstruct(l, state, *products, None if previous is None else previous[l])

        with thread_map(len(self.weights) >= MANY) as run:
            return list(run(one, range(len(self.weights))))

    def _products(self, state: State) -> tuple[Gram, Gram, Gram]:
        """Inner products among the atoms and with the domains; kept while the atoms rest."""
        if self._last is None or self._last[0] is not state.points:  # steps make new arrays
            gram = Gram.of(state.points, state.labels)
            cross = Gram(state.points @ self.points.T, state.labels @ self.stacked_labels.T)
            self._last = state.points, gram, gram.lifted(self.beta), cross
        return self._last[1:]

    def _reconstruct(
        self,
        l: int,
        state: State,
        gram: Gram,
        lifted: Gram,
        cross: Gram,
        previous: Reconstruction | None,
    ) -> Reconstruction:
        lam = state.coordinates[l]
        maps = self.align(lifted, lam, None if previous is None else previous.maps)
        offsets = np.arange(self.n_atoms) * self.n_components
        columns = np.stack([plan.columns for plan in maps], axis=1) + offsets
        weights: Array = state.masses.ravel()[columns] @ lam
        has = self.has[l]
        if has is not None:  # components of a class that the domain lacks are not its business
            share = (state.labels @ has)[columns] @ lam
            weights = weights * share if (weights * share).sum() > 0 else weights
        weights = weights / weights.sum()

        domain = slice(self.starts[l], self.starts[l + 1])
        products = _Products.of(gram.features, cross.features[:, domain], columns)
        cost = products.cost(lam, self.norms[domain])
        beta = resolve_beta(self.beta, cost) if self.is_labeled[l] else 0.0
        label_products = None
        if beta > 0 and gram.labels is not None and cross.labels is not None:
            label_products = _Products.of(gram.labels, cross.labels[:, domain], columns)
            cost += beta * label_products.cost(lam, self.label_norms[domain])
        warm = None if previous is None else previous.plan.potentials
        plan = solve_exact(weights, self.weights[l], cost, warm)
        quadratic, linear = products.in_coordinates(weights, plan)
        if label_products is not None:
            more = label_products.in_coordinates(weights, plan)
            quadratic, linear = quadratic + beta * more[0], linear + beta * more[1]
        nearest: Array = np.bincount(
            cost.argmin(axis=0), self.weights[l], minlength=self.n_components
        )  # type: ignore[assignment]
        return Reconstruction(
            maps, columns, weights, plan, plan.value(cost), beta, quadratic, linear, nearest
        )

    def align(self, gram: Gram, lam: Array, plans: Sequence[SparsePlan] | None) -> list[SparsePlan]:
        """Algorithm 1 on the atoms: permutations between the barycenter and each of them."""
        K = self.n_components
        if plans is None:  # start at the atom with the largest coordinate
            first = int(np.argmax(lam)) * K
            image = sparse.csr_matrix(
                (np.ones(K), np.arange(first, first + K), np.arange(K + 1)),
                shape=(K, self.n_atoms * K),
            )
        else:
            image = stack_maps(plans, lam)
        sizes, uniform = [K] * self.n_atoms, np.full(K, 1.0 / K)
        costs = image_costs(image, gram, sizes, self.beta)
        rounds = _COLD_ROUNDS if plans is None else _WARM_ROUNDS
        found = fixed_point(
            gram, [uniform] * self.n_atoms, uniform, lam, costs, self.beta, rounds, 0.0, plans
        )
        return found.plans

    def gradient(
        self, state: State, found: Sequence[Reconstruction], coordinates: Array
    ) -> tuple[Floats, Floats]:
        """Half-gradients of the loss in the atoms' points and labels, with all plans fixed.

        With plan ω between the reconstruction B (weights b) and the domain Q,
        ``½∂L/∂B_j = b_j B_j - Σ_i ω_ji Q_i``, and B is linear in the atoms.
        """
        K, C = self.n_components, self.n_atoms
        columns = np.concatenate([r.columns for r in found])
        size = len(columns)
        image = sparse.csr_matrix(
            (
                np.repeat(coordinates, K, axis=0).astype(self.dtype).ravel(),
                columns.ravel(),
                np.arange(0, size * C + 1, C),
            ),
            shape=(size, C * K),
        )
        plans = self._stacked_plans(found)
        weights = np.concatenate([r.weights for r in found]).astype(self.dtype)[:, None]
        betas = np.repeat([r.beta for r in found], K).astype(self.dtype)[:, None]
        points: Floats = image @ state.points
        points *= weights
        points -= plans @ self.points
        labels: Floats = betas * (weights * (image @ state.labels) - plans @ self.stacked_labels)
        return image.T @ points, image.T @ labels

    def _stacked_plans(self, found: Sequence[Reconstruction]) -> sparse.csr_matrix:
        """All plans as the diagonal blocks of one matrix, (L·K, Σ K_l)."""
        K = self.n_components
        counts = [np.bincount(r.plan.rows, minlength=K) for r in found]
        columns = [r.plan.columns + start for r, start in zip(found, self.starts, strict=False)]
        mass = np.concatenate([r.plan.mass for r in found]).astype(self.dtype)
        return sparse.csr_matrix(
            (mass, np.concatenate(columns), np.cumsum(np.concatenate([[0], *counts]))),
            shape=(K * len(found), len(self.points)),
        )

    def hessian(
        self, found: Sequence[Reconstruction], coordinates: Array, factors: Sequence[float]
    ) -> Floats:
        """Half-Hessian ``Σ_l factor_l M_lᵀ diag(b_l) M_l`` of the loss in the atoms: (C·K, C·K)."""
        size = self.n_atoms * self.n_components
        where, values = [], []
        for r, lam, factor in zip(found, coordinates, factors, strict=True):
            if factor > 0:
                where.append((r.columns[:, :, None] * size + r.columns[:, None, :]).ravel())
                values.append((factor * r.weights[:, None, None] * np.outer(lam, lam)).ravel())
        if not where:
            return np.zeros((size, size), dtype=self.dtype)
        flat = np.bincount(np.concatenate(where), np.concatenate(values), minlength=size * size)
        return flat.reshape(size, size).astype(self.dtype)

    def pulled_masses(self, state: State, found: Sequence[Reconstruction], rate: float) -> Array:
        """Move the atoms' component weights towards those that the domains would choose freely.

        With free weights every component of a domain goes to the nearest of its reconstruction.
        The loss is convex in the weights, so for one domain a part of the way to these never
        increases it; several domains get the average of their wishes, weighted by coordinates.
        """
        pulled = np.zeros(state.masses.size)
        for lam, r in zip(state.coordinates, found, strict=True):
            np.add.at(pulled, r.columns, r.nearest[:, None] * lam)
        shares = state.coordinates.sum(axis=0)[:, None]
        C, K = state.masses.shape
        towards = (pulled.reshape(C, K) + _SMALL * state.masses) / (shares + _SMALL)
        masses = np.maximum((1.0 - rate) * state.masses + rate * towards, 1e-3 / K)
        moved: Array = masses / masses.sum(axis=1, keepdims=True)
        return moved


@dataclass(frozen=True)
class _Products:
    """Inner products that describe ``B(λ) = Σ_c λ_c Z_c[columns_c]`` for any λ."""

    own: Floats  # (K, C, C): between the atoms' contributions to component j
    cross: Floats  # (C·K, K_l): between atoms and the domain
    columns: NDArray[np.intp]

    @classmethod
    def of(cls, gram: Floats, cross: Floats, columns: NDArray[np.intp]) -> _Products:
        """Pick the products between the contributions of every pair of atoms."""
        return cls(gram[columns[:, :, None], columns[:, None, :]], cross, columns)

    def cost(self, lam: Array, norms: Floats) -> Floats:
        """Squared distances between the K components of B and the domain's."""
        cost: Floats = np.add.outer(self.own @ lam @ lam, norms).astype(self.cross.dtype)
        for x, c in zip(lam, self.columns.T, strict=True):
            if x > 0:
                cost -= 2.0 * x * self.cross[c]
        return np.maximum(cost, 0.0, out=cost)

    def in_coordinates(self, weights: Array, plan: SparsePlan) -> tuple[Array, Array]:
        """Return ``A``, ``h``: with plans fixed the loss is ``λᵀAλ - 2hᵀλ + constant``."""
        pairs = self.cross[self.columns[plan.rows], plan.columns[:, None]]
        return np.einsum("j,jcd->cd", weights, self.own), plan.mass @ pairs


def _row_norms(points: Floats) -> Floats:
    norms: Floats = np.einsum("ij,ij->i", points, points)
    return norms


def project_simplex(rows: Array) -> Array:
    """Euclidean projection of every row onto the probability simplex, by sorting.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.dictionary._engine import project_simplex
    >>> project_simplex(np.array([[2.0, 0.0], [0.5, 0.1]]))
    array([[1. , 0. ],
           [0.7, 0.3]])
    """
    u = -np.sort(-rows, axis=1)
    excess = (np.cumsum(u, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (u > excess).sum(axis=1) - 1
    projected: Array = np.maximum(rows - excess[np.arange(len(rows)), last][:, None], 0.0)
    return projected


def minimize_on_simplex(quadratic: Array, linear: Array) -> Array:
    """Minimize ``λᵀAλ - 2hᵀλ`` over the simplex, A positive definite.

    Non-negative least squares on the Cholesky factor of A, with the sum as one heavy equation.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.dictionary._engine import minimize_on_simplex
    >>> minimize_on_simplex(np.eye(2), np.array([0.5, 0.1])).round(6)
    array([0.7, 0.3])
    """
    from scipy.linalg import solve_triangular
    from scipy.optimize import nnls

    factor = np.linalg.cholesky(quadratic)
    heavy = 1e4 * np.sqrt(np.trace(quadratic))
    system = np.vstack([factor.T, np.full((1, len(linear)), heavy)])
    right = np.append(solve_triangular(factor, linear, lower=True), heavy)
    solution, _ = nnls(system, right)
    minimizer: Array = solution / solution.sum()
    return minimizer


def solve_damped(hessian: Floats, damping: float, right: Floats) -> Floats:
    """Solve ``(H + μI) X = right`` with μ = damping × mean(diag H); zero if H is.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.dictionary._engine import solve_damped
    >>> solve_damped(np.diag([1.0, 3.0]), 0.5, np.array([[4.0], [4.0]]))
    array([[2.],
           [1.]])
    """
    mean = float(np.trace(hessian)) / len(hessian)
    if mean == 0.0:
        return np.zeros_like(right)
    damped = hessian + damping * mean * np.eye(len(hessian), dtype=hessian.dtype)
    solution: Floats = _inverse(damped) @ right
    return solution


def _inverse(matrix: Floats) -> Any:
    """Inverse of a positive definite matrix; sparse if its connected blocks are small.

    Aligned atoms make blocks of at most C components. Otherwise, with far more right-hand sides
    than rows, one product with the dense inverse beats two triangular solves.
    """
    n_blocks, block = sparse.csgraph.connected_components(sparse.csr_matrix(matrix))
    sizes = np.bincount(block, minlength=n_blocks)
    if sizes.max() > _SMALL_BLOCK:
        from scipy.linalg import get_lapack_funcs

        potrf, potri = get_lapack_funcs(("potrf", "potri"), (matrix,))
        lower = np.tril(potri(potrf(matrix, lower=1)[0], lower=1)[0])
        return lower + np.tril(lower, -1).T
    members = np.split(np.argsort(block, kind="stable"), np.cumsum(sizes)[:-1])
    rows, columns, values = [], [], []
    for size in np.unique(sizes):
        group = np.stack([one for one in members if len(one) == size])
        rows.append(np.repeat(group, size, axis=1).ravel())
        columns.append(np.tile(group, (1, size)).ravel())
        values.append(np.linalg.inv(matrix[group[:, :, None], group[:, None, :]]).ravel())
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_matrix(entries, shape=matrix.shape)
