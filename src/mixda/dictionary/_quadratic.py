"""The quadratic problems that remain of Algorithm 2 once all plans are fixed.

The loss is then quadratic in each domain's coordinates on the simplex, and quadratic in the atoms
without constraints (DESIGN §4, "Fewer steps").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mixda._core.namespace import as_index, as_like, multiply, namespace
from mixda._core.typing import Array, Codes, Floats

_SUM_WEIGHT = 1e4  # of the equation Σλ = 1, relative to the size of the quadratic form


def minimize_on_simplex(quadratic: Array, linear: Array) -> Array:
    """Minimize ``λᵀAλ - 2hᵀλ`` over the simplex, A positive definite.

    With ``A = RᵀR`` the objective is ``‖Rλ - R⁻ᵀh‖²`` up to a constant: non-negative least squares,
    to which ``Σλ = 1`` is added as one equation of large weight.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.dictionary._quadratic import minimize_on_simplex
    >>> minimize_on_simplex(np.eye(2), np.array([0.5, 0.1])).round(6)
    array([0.7, 0.3])
    """
    from scipy.optimize import nnls

    factor = np.linalg.cholesky(quadratic)  # Rᵀ
    sum_weight = _SUM_WEIGHT * np.sqrt(np.trace(quadratic))
    system = np.vstack([factor.T, np.full((1, len(linear)), sum_weight)])
    right = np.append(np.linalg.solve(factor, linear), sum_weight)
    solution, _ = nnls(system, right)
    minimizer: Array = solution / solution.sum()
    return minimizer


def project_simplex(rows: Array) -> Array:
    """Euclidean projection of every row onto the probability simplex, by sorting.

    The projection of x is ``max(x - τ, 0)``. With u the sorted x, τ is the largest
    ``(u_1 + … + u_k - 1) / k`` that is still below ``u_k``.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.dictionary import project_simplex
    >>> project_simplex(np.array([[2.0, 0.0], [0.5, 0.1]]))
    array([[1. , 0. ],
           [0.7, 0.3]])
    """
    u = -np.sort(-rows, axis=1)
    thresholds = (np.cumsum(u, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (u > thresholds).sum(axis=1) - 1
    projected: Array = np.maximum(rows - thresholds[np.arange(len(rows)), last][:, None], 0.0)
    return projected


@dataclass(frozen=True, eq=False)
class BlockDiagonal:
    """A symmetric matrix whose rows and columns, reordered, form dense blocks on the diagonal.

    Attributes
    ----------
    groups : list of (ndarray of shape (g, b), ndarray of shape (g, b, b))
        For every size b, the rows of the g blocks of that size and the blocks themselves.
    """

    groups: list[tuple[Codes, Floats]]

    def __matmul__(self, right: Floats) -> Floats:
        """Product with a dense matrix, block by block."""
        product: Floats = namespace(right).empty_like(right)
        for rows, blocks in self.groups:
            own = as_index(rows, right)
            product[own] = as_like(blocks, right) @ right[own]
        return product

    @property
    def n_entries(self) -> int:
        """Number of entries inside the blocks."""
        return sum(blocks.size for _, blocks in self.groups)


@dataclass(frozen=True, eq=False)
class DampedStep:
    """The damped minimizer in the atoms as a linear map ``Z ↦ T (Z + S Q)`` of atoms and domains.

    With fixed plans the half-gradient of the loss is ``HZ - PQ``. Adding ``μ‖Z - Z_old‖²`` gives
    ``(H + μI) Z = μ Z_old + PQ``, so ``T = (I + H/μ)⁻¹`` and ``S = P/μ``. Rows that no domain
    determines (H = P = 0) do not move at all.

    Attributes
    ----------
    contraction : BlockDiagonal of shape (C·K, C·K)
        T. H couples two components if some domain averages them; its connected components are the
        blocks.
    pull : sparse matrix of shape (C·K, Σ K_l)
        S.
    """

    contraction: BlockDiagonal
    pull: sparse.csr_matrix

    def __call__(self, atoms: Floats, domains: Floats) -> Floats:
        """Apply the map to points or labels: (C·K, D) and (Σ K_l, D) to (C·K, D)."""
        pulled: Floats = multiply(self.pull, domains)
        pulled += atoms
        return self.contraction @ pulled

    def products(self, own: Floats, cross: Floats, domains: Floats) -> tuple[Floats, Floats]:
        """Inner products after the step from those before it, whatever the dimension is.

        With ``Y = Z + SQ`` the new atoms are ``V = TY``, so ``VVᵀ = T YYᵀ T`` and ``VQᵀ = T YQᵀ``.

        Parameters
        ----------
        own : ndarray of shape (C·K, C·K)
            ``ZZᵀ``.
        cross : ndarray of shape (C·K, Σ K_l)
            ``ZQᵀ``.
        domains : ndarray of shape (Σ K_l, Σ K_l)
            ``QQᵀ``.

        Returns
        -------
        own, cross : ndarray
        """
        with_atoms = own + self.pull @ cross.T  # YZᵀ
        with_domains = cross + self.pull @ domains  # YQᵀ
        pulled = with_atoms + (self.pull @ with_domains.T).T  # YYᵀ
        half = self.contraction @ pulled
        new = self.contraction @ np.ascontiguousarray(half.T)
        return 0.5 * (new + new.T), self.contraction @ with_domains


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """The loss with fixed plans as a quadratic in the atoms: its half-gradient is ``HZ - PQ``.

    Component *j* of all reconstructions, stacked, is ``B_j = Σ_c λ_jc Z[columns_jc]``. It adds
    ``b_j λ_j λ_jᵀ`` to H in the rows and columns that it averages, and ``ω_ji λ_j`` to column *i*
    of P.

    Attributes
    ----------
    columns, lam : ndarray of shape (J, C)
    weights : ndarray of shape (J,)
        b.
    plan : (rows, columns, mass)
        The entries of the plans ω between the J components and those of all domains.
    shape : (int, int)
        Of P: components of all atoms, components of all domains.
    """

    columns: Codes
    lam: Array
    weights: Array
    plan: tuple[Codes, Codes, Array]
    shape: tuple[int, int]

    def hessian(self, factors: Array) -> Array:
        """Return the terms ``factor_j b_j λ_j λ_jᵀ`` of H, of shape (J, C, C)."""
        entries: Array = self.lam[:, :, None] * self.lam[:, None, :]
        entries *= (factors * self.weights)[:, None, None]
        return entries

    def right(self, dtype: str) -> sparse.csr_matrix:
        """Return P as a sparse matrix."""
        j, i, mass = self.plan
        values, rows = mass[:, None] * self.lam[j], self.columns[j]
        entries = values.ravel().astype(dtype), (rows.ravel(), np.repeat(i, rows.shape[1]))
        return sparse.csr_matrix(entries, shape=self.shape)

    def solve(
        self, damping: float, factors: Sequence[Array], dtype: str = "float64"
    ) -> list[DampedStep]:
        """Solve with μ = damping × mean(diag H), once for each vector of factors (J,).

        Factors multiply the terms of H only: multiply the rows of Q by the same numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from mixda.dictionary._quadratic import NormalEquations
        >>> own = np.arange(2)[:, None]  # each of two components is one of an atom: H = P = diag(b)
        >>> b = np.array([1.0, 3.0])
        >>> equations = NormalEquations(own, np.ones((2, 1)), b, (own[:, 0], own[:, 0], b), (2, 2))
        >>> (step,) = equations.solve(0.5, [np.ones(2)])
        >>> step(np.zeros((2, 1)), np.array([[4.0], [4.0]]))  # (H + I)⁻¹ P Q
        array([[2.],
               [3.]])
        """
        blocks, right = self._connected_blocks(), self.right(dtype)
        steps = []
        for factor in factors:
            entries = self.hessian(factor)
            mean = float(np.einsum("jcc->", entries)) / self.shape[0]
            scale = 0.0 if mean == 0.0 else 1.0 / (damping * mean)
            inverse = blocks.inverse(self.columns, scale * entries, dtype)
            steps.append(DampedStep(inverse, right * right.dtype.type(scale)))
        return steps

    def _connected_blocks(self) -> _Blocks:
        """Group the components of the atoms by which ones some domain averages."""
        used = self.lam > 0  # a coordinate of zero couples nothing
        first = self.columns[np.arange(len(self.lam)), self.lam.argmax(axis=1)]
        pairs = np.broadcast_to(first[:, None], used.shape)[used], self.columns[used]
        graph = sparse.csr_matrix((np.ones(len(pairs[0])), pairs), shape=(self.shape[0],) * 2)
        return _Blocks(*sparse.csgraph.connected_components(graph, directed=False))


class _Blocks:
    """A partition of rows into blocks; blocks stand in order of their sizes.

    Entry (i, j) of a block lies at ``offset + i × size + j`` of one vector that holds all blocks.
    """

    def __init__(self, n_blocks: int, block: Codes) -> None:
        sizes = np.bincount(block, minlength=n_blocks)
        by_size = np.argsort(sizes, kind="stable")
        rank = np.argsort(by_size)[block]  # of every row's block
        self.order = np.argsort(rank, kind="stable")
        self.groups = np.unique(sizes, return_counts=True)
        sizes = sizes[by_size]
        place = np.empty(len(block), dtype=np.int64)  # of a row inside its block
        place[self.order] = np.arange(len(block)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.place, self.size = place, sizes[rank]
        self.offset = (np.cumsum(sizes**2) - sizes**2)[rank]

    def inverse(self, columns: Codes, entries: Array, dtype: str) -> BlockDiagonal:
        """Inverse of I plus the entries (J, C, C), which are summed by their rows and columns."""
        used = entries > 0
        i = np.broadcast_to(columns[:, :, None], entries.shape)[used]
        j = np.broadcast_to(columns[:, None, :], entries.shape)[used]
        at = self.offset[i] + self.place[i] * self.size[i] + self.place[j]
        total = int(self.size.sum())  # b rows of a block have b² entries
        summed = np.bincount(at, entries[used], minlength=total).astype(dtype)
        groups, row, start = [], 0, 0
        for size, count in zip(*(one.tolist() for one in self.groups), strict=True):
            blocks = summed[start : start + count * size**2].reshape(count, size, size)
            rows = self.order[row : row + count * size].reshape(count, size)
            groups.append((rows, np.linalg.inv(blocks + np.eye(size, dtype=dtype))))
            row, start = row + count * size, start + count * size**2
        return BlockDiagonal(groups)
