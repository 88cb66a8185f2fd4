"""Loss and closed-form gradients of Algorithm 2 for labelled point clouds.

An atom component is a point (for mixtures ``[m, s]``) with a label; all atoms have K components. The
reconstruction of domain *l* is ``B_l = Σ_c λ_lc P_lc Z_c`` with permutations ``P_lc``, so every
inner problem works on inner products, and only a few products per step touch the dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mixda._validation import Array, Floats
from mixda.barycenters import Gram, fixed_point, image_distances, split_costs, stack_maps
from mixda.transport import SparsePlan, resolve_beta, solve_exact

_MAX_ROUNDS = 10  # of Algorithm 1 within one step; with warm plans one or two are used


@dataclass
class State:
    """What is learned: atoms stacked along rows, and the coordinates of every domain.

    Attributes
    ----------
    points : (C·K, D)
        Components of the atoms, around the engine's centre.
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
    """One domain at one step: which atom components make its barycentre, and how it is matched.

    `columns[j, c]` is the row of ``State.points`` that atom *c* gives to component *j*.
    """

    maps: list[SparsePlan]
    columns: NDArray[np.intp]
    weights: Array
    plan: SparsePlan
    loss: float
    beta: float
    quadratic: Array
    linear: Array


@dataclass(frozen=True)
class Gradient:
    """Half-gradients and half-Hessians of the loss with all plans fixed.

    For features ``½∂L/∂Z = H Z - Σ_l R_l Q_l`` with sparse `H`; likewise for labels, sources only.
    """

    points: Floats
    labels: Floats
    points_hessian: sparse.csr_matrix
    labels_hessian: sparse.csr_matrix


class Engine:
    """The domains of one dictionary-learning problem, ready to be compared with atoms.

    Parameters
    ----------
    clouds : L arrays of shape (K_l, D)
        Components of the domains' mixtures as points.
    labels : L arrays of shape (K_l, nc), or None for an unlabelled domain
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
        self.center = np.vstack(clouds).mean(axis=0)
        self.clouds: list[Floats] = [(c - self.center).astype(dtype) for c in clouds]
        self.labels: list[Floats | None] = [None if v is None else v.astype(dtype) for v in labels]
        self.norms = [_row_norms(cloud) for cloud in self.clouds]
        self.label_norms = [None if v is None else _row_norms(v) for v in self.labels]
        self.weights = list(weights)
        self.n_atoms, self.n_components = n_atoms, n_components
        self.beta = beta
        self.dtype = dtype

    def evaluate(
        self, state: State, previous: Sequence[Reconstruction] | None = None
    ) -> list[Reconstruction]:
        """Reconstruct every domain and match it; plans start from those of the `previous` step."""
        gram = Gram.of(state.points, state.labels)
        return [
            self._reconstruct(l, state, gram, None if previous is None else previous[l])
            for l in range(len(self.clouds))
        ]

    def _reconstruct(
        self, l: int, state: State, gram: Gram, previous: Reconstruction | None
    ) -> Reconstruction:
        lam = state.coordinates[l]
        maps = self.align(gram, lam, None if previous is None else previous.maps)
        offsets = np.arange(self.n_atoms) * self.n_components
        columns = np.stack([plan.columns for plan in maps], axis=1) + offsets
        weights: Array = state.masses.ravel()[columns] @ lam
        weights = weights / weights.sum()

        products = _Products.of(gram.features, columns, state.points @ self.clouds[l].T)
        cost = products.cost(lam, self.norms[l])
        labels, label_norms = self.labels[l], self.label_norms[l]
        beta = 0.0
        if labels is not None and label_norms is not None and gram.labels is not None:
            label_products = _Products.of(gram.labels, columns, state.labels @ labels.T)
            beta = resolve_beta(self.beta, cost)
            cost += beta * label_products.cost(lam, label_norms)
        warm = None if previous is None else previous.plan.potentials
        plan = solve_exact(weights, self.weights[l], cost, warm)
        quadratic, linear = products.in_coordinates(weights, plan)
        if beta > 0:
            more = label_products.in_coordinates(weights, plan)
            quadratic, linear = quadratic + beta * more[0], linear + beta * more[1]
        return Reconstruction(
            maps, columns, weights, plan, plan.value(cost), beta, quadratic, linear
        )

    def align(self, gram: Gram, lam: Array, plans: Sequence[SparsePlan] | None) -> list[SparsePlan]:
        """Algorithm 1 on the atoms: permutations between the barycentre and each of them."""
        K = self.n_components
        if plans is None:  # start at the atom with the largest coordinate
            first = int(np.argmax(lam)) * K
            image = sparse.csr_matrix(
                (np.ones(K), np.arange(first, first + K), np.arange(K + 1)),
                shape=(K, self.n_atoms * K),
            )
        else:
            image = stack_maps(plans, lam)
        costs = split_costs(
            image_distances(image, gram.features),
            None if gram.labels is None else image_distances(image, gram.labels),
            [K] * self.n_atoms,
            self.beta,
        )
        uniform = np.full(K, 1.0 / K)
        return fixed_point(
            gram, [uniform] * self.n_atoms, uniform, lam, costs, self.beta, _MAX_ROUNDS, 0.0, plans
        ).plans

    def gradient(
        self, state: State, found: Sequence[Reconstruction], coordinates: Array
    ) -> Gradient:
        """Half-gradient of the loss in the atoms, at the given coordinates and fixed plans.

        With plan ω between the reconstruction B (weights b) and the domain Q,
        ``½∂L/∂B_j = b_j B_j - Σ_i ω_ji Q_i``, and B is linear in the atoms.
        """
        size = self.n_atoms * self.n_components
        points_hessian = sparse.csr_matrix((size, size), dtype=self.dtype)
        labels_hessian = sparse.csr_matrix((size, size), dtype=self.dtype)
        points_pull = np.zeros_like(state.points)
        labels_pull = np.zeros_like(state.labels)
        for l, r in enumerate(found):
            image = self._image(r, coordinates[l])
            hessian = image.T @ sparse.diags_array(r.weights.astype(self.dtype)) @ image
            matched = image.T @ sparse.csr_matrix(
                (r.plan.mass.astype(self.dtype), (r.plan.rows, r.plan.columns)), shape=r.plan.shape
            )
            points_hessian += hessian
            points_pull += matched @ self.clouds[l]
            labels = self.labels[l]
            if labels is not None:
                labels_hessian += r.beta * hessian
                labels_pull += r.beta * (matched @ labels)
        return Gradient(
            points_hessian @ state.points - points_pull,
            labels_hessian @ state.labels - labels_pull,
            points_hessian,
            labels_hessian,
        )

    def _image(self, r: Reconstruction, lam: Array) -> sparse.csr_matrix:
        K, C = r.columns.shape
        values = np.broadcast_to(lam.astype(self.dtype), (K, C)).ravel()
        return sparse.csr_matrix(
            (values, r.columns.ravel(), np.arange(0, K * C + 1, C)), shape=(K, K * C)
        )

    def mass_gradient(self, state: State, found: Sequence[Reconstruction]) -> Array:
        """Gradient in the atoms' component weights: the plans' potentials, pulled back."""
        gradient = np.zeros(state.masses.size)
        for lam, r in zip(state.coordinates, found, strict=True):
            if r.plan.potentials is not None:
                u = r.plan.potentials[0]
                np.add.at(gradient, r.columns, (u - u @ r.weights)[:, None] * lam)
        return gradient.reshape(state.masses.shape)


@dataclass(frozen=True)
class _Products:
    """Inner products that describe ``B(λ) = Σ_c λ_c Z_c[columns_c]`` for any λ."""

    own: Floats  # (K, C, C): between the atoms' contributions to component j
    cross: Floats  # (C·K, K_l): between atoms and the domain
    columns: NDArray[np.intp]

    @classmethod
    def of(cls, gram: Floats, columns: NDArray[np.intp], cross: Floats) -> _Products:
        return cls(gram[columns[:, :, None], columns[:, None, :]], cross, columns)

    def cost(self, lam: Array, norms: Floats) -> Floats:
        """Squared distances between the K components of B and the domain's."""
        cost = sum(-2.0 * x * self.cross[c] for x, c in zip(lam, self.columns.T, strict=True))
        cost = cost + (self.own @ lam @ lam)[:, None]
        cost += norms
        return np.maximum(cost, 0.0, out=cost)

    def in_coordinates(self, weights: Array, plan: SparsePlan) -> tuple[Array, Array]:
        """``A`` and ``h`` such that the loss is ``λᵀAλ - 2hᵀλ + constant`` for fixed plans."""
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
    >>> from mixda._engine import project_simplex
    >>> project_simplex(np.array([[2.0, 0.0], [0.5, 0.1]]))
    array([[1. , 0. ],
           [0.7, 0.3]])
    """
    u = -np.sort(-rows, axis=1)
    excess = (np.cumsum(u, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (u > excess).sum(axis=1) - 1
    projected: Array = np.maximum(rows - excess[np.arange(len(rows)), last][:, None], 0.0)
    return projected


def minimize_on_simplex(quadratic: Array, linear: Array, start: Array) -> Array:
    """Minimise ``λᵀAλ - 2hᵀλ`` over the simplex for L problems at once (projected FISTA)."""
    lipschitz = np.abs(quadratic).sum(axis=2).max(axis=1)[:, None]
    lipschitz = np.maximum(lipschitz, np.finfo(float).tiny)
    x = y = start
    t = 1.0
    for _ in range(500):
        gradient = (quadratic @ y[:, :, None])[:, :, 0] - linear
        new = project_simplex(y - gradient / lipschitz)
        if np.abs(new - x).max() < 1e-10:
            return new
        t_new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        y = new + (t - 1.0) / t_new * (new - x)
        x, t = new, t_new
    return x


def solve_damped(hessian: sparse.csr_matrix, damping: float, right: Floats) -> Floats:
    """Solve ``(H + μI) X = right`` with μ = damping × mean(diag H), block by connected block."""
    mean = float(hessian.diagonal().mean())
    if mean == 0.0:
        return np.zeros_like(right)
    inverse = _inverse(hessian + damping * mean * sparse.identity(len(right), hessian.dtype))
    solution: Floats = inverse @ right
    return solution


def _inverse(matrix: Any) -> Any:
    """Inverse of a sparse, positive definite matrix: sparse if its blocks are small."""
    n_blocks, block = sparse.csgraph.connected_components(matrix, directed=False)
    sizes = np.bincount(block, minlength=n_blocks)
    if (sizes**2.0).sum() > 0.02 * float(matrix.shape[0]) ** 2:
        return np.linalg.inv(matrix.toarray())
    order = np.argsort(block, kind="stable")
    starts = np.cumsum(sizes) - sizes
    rows, columns, values = [], [], []
    for size in np.unique(sizes):
        members = order[starts[sizes == size][:, None] + np.arange(size)]
        local = np.empty(matrix.shape[0], dtype=np.intp)
        group = np.full(matrix.shape[0], -1, dtype=np.intp)
        local[members] = np.arange(size)
        group[members] = np.arange(len(members))[:, None]
        dense = np.zeros((len(members), size, size))
        coo = matrix.tocoo()
        mine = group[coo.row] >= 0
        dense[group[coo.row[mine]], local[coo.row[mine]], local[coo.col[mine]]] = coo.data[mine]
        rows.append(np.repeat(members, size, axis=1).ravel())
        columns.append(np.tile(members, (1, size)).ravel())
        values.append(np.linalg.inv(dense).ravel())
    return sparse.csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=matrix.shape,
    ).astype(matrix.dtype)
