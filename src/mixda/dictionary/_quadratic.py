"""The quadratic problems that remain of Algorithm 2 once all plans are fixed.

The loss is then quadratic in each domain's coordinates on the simplex, and quadratic in the atoms
without constraints (DESIGN §4, "Fewer steps").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

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
    from scipy.linalg import solve_triangular
    from scipy.optimize import nnls

    factor = np.linalg.cholesky(quadratic)  # Rᵀ
    sum_weight = _SUM_WEIGHT * np.sqrt(np.trace(quadratic))
    system = np.vstack([factor.T, np.full((1, len(linear)), sum_weight)])
    right = np.append(solve_triangular(factor, linear, lower=True), sum_weight)
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
        product = np.empty_like(right)
        for rows, blocks in self.groups:
            product[rows] = blocks @ right[rows]
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

    @classmethod
    def solve(
        cls, hessian: sparse.csr_matrix, right: sparse.csr_matrix, damping: float
    ) -> DampedStep:
        """Solve the damped problem with μ = damping × mean(diag H); nothing moves if H is zero.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy import sparse
        >>> from mixda.dictionary._quadratic import DampedStep
        >>> step = DampedStep.solve(sparse.diags_array([1.0, 3.0]), sparse.eye_array(2), 0.5)
        >>> step(np.zeros((2, 1)), np.array([[4.0], [4.0]]))  # (H + I)⁻¹ Q
        array([[2.],
               [1.]])
        """
        mean = float(hessian.trace()) / hessian.shape[0]
        scale = right.dtype.type(0.0 if mean == 0.0 else 1.0 / (damping * mean))
        return cls(_inverse(sparse.csr_matrix(hessian) * scale), right * scale)

    def __call__(self, atoms: Floats, domains: Floats) -> Floats:
        """Apply the map to points or labels: (C·K, D) and (Σ K_l, D) to (C·K, D)."""
        pulled: Floats = self.pull @ domains
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


def _inverse(matrix: sparse.csr_matrix) -> BlockDiagonal:
    """Inverse of ``I + matrix``, one dense block for each connected component."""
    n_blocks, block = sparse.csgraph.connected_components(matrix, directed=False)
    sizes = np.bincount(block, minlength=n_blocks)
    order = np.argsort(block, kind="stable")
    place = np.empty_like(order)  # of a row inside its block
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    entries = matrix.tocoo()
    groups: list[tuple[Codes, Floats]] = []
    for size in np.unique(sizes):  # all blocks of one size at once
        number = np.cumsum(sizes == size) - 1  # of a block among those of this size
        blocks = np.zeros((int(number[-1]) + 1, size, size), dtype=matrix.dtype)
        blocks[:, np.arange(size), np.arange(size)] = 1.0
        mine = sizes[block[entries.row]] == size
        i, j = entries.row[mine], entries.col[mine]
        blocks[number[block[i]], place[i], place[j]] += entries.data[mine]
        rows = order[sizes[block[order]] == size].reshape(-1, size)
        groups.append((rows, np.linalg.inv(blocks)))
    return BlockDiagonal(groups)
