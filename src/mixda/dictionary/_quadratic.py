"""The quadratic problems that remain of Algorithm 2 once all plans are fixed.

The loss is then quadratic in each domain's coordinates on the simplex, and quadratic in the atoms
without constraints (DESIGN §4, "Fewer steps").
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mixda._core.typing import Array, Floats

_MAX_BLOCK_SIZE = 16  # components: larger connected blocks are inverted together
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


def solve_damped(hessian: Floats, damping: float, right: Floats) -> Floats:
    """Solve ``(H + μI) X = right`` with μ = damping × mean(diag H); zero if H is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.dictionary._quadratic import solve_damped
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

    H couples two components if some domain averages them. If all domains align the atoms in the
    same way, the blocks have C components. Otherwise the inverse is dense: with far more right-hand
    sides than rows, one product with it beats two triangular solves.
    """
    n_blocks, block = sparse.csgraph.connected_components(sparse.csr_matrix(matrix))
    sizes = np.bincount(block, minlength=n_blocks)
    if sizes.max() > _MAX_BLOCK_SIZE:
        from scipy.linalg import get_lapack_funcs

        potrf, potri = get_lapack_funcs(("potrf", "potri"), (matrix,))
        lower = np.tril(potri(potrf(matrix, lower=1)[0], lower=1)[0])
        return lower + np.tril(lower, -1).T
    members = np.split(np.argsort(block, kind="stable"), np.cumsum(sizes)[:-1])
    rows, columns, values = [], [], []
    for size in np.unique(sizes):  # all blocks of one size at once
        group = np.stack([one for one in members if len(one) == size])
        rows.append(np.repeat(group, size, axis=1).ravel())
        columns.append(np.tile(group, (1, size)).ravel())
        values.append(np.linalg.inv(matrix[group[:, :, None], group[:, None, :]]).ravel())
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_matrix(entries, shape=matrix.shape)
