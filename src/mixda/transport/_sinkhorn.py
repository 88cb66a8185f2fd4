"""Entropic and unbalanced plans by Sinkhorn's algorithm."""

from __future__ import annotations

import warnings

import numpy as np

from mixda._core.typing import Array
from mixda.transport._exact import Potentials

_MAX_ITERATIONS = 10_000
_POTENTIAL_TOL = 1e-10  # largest change of a potential at convergence, relative to the costs
_MARGINAL_TOL = 1e-6  # largest error of a marginal at convergence


def solve_sinkhorn(
    a: Array, b: Array, cost: Array, reg: float, reg_m: float | None
) -> tuple[Array, Potentials, int]:
    """Entropic plan, its potentials and the number of iterations, computed in the log domain.

    The plan is ``a_i b_j exp((f_i + g_j - c_ij) / eps)``. The potentials f and g are updated in
    turn; relaxed marginals (`reg_m`) damp every update.
    """
    from scipy.special import logsumexp

    scale = float(cost.max()) or 1.0
    eps = reg * scale
    damping = 1.0 if reg_m is None else reg_m / (reg_m + reg)
    with np.errstate(divide="ignore"):
        log_a, log_b = np.log(a)[:, None], np.log(b)
    f, g = np.zeros((len(a), 1)), np.zeros(len(b))
    n_iter, change, tol = 0, np.inf, _POTENTIAL_TOL * max(scale, eps)
    while change > tol and n_iter < _MAX_ITERATIONS:
        n_iter, previous = n_iter + 1, f
        f = -damping * eps * logsumexp(log_b + (g - cost) / eps, axis=1, keepdims=True)
        g = -damping * eps * logsumexp(log_a + (f - cost) / eps, axis=0)
        change = float(np.abs(f - previous).max())
    plan = np.exp(log_a + log_b + (f + g - cost) / eps)
    marginal_error = 0.0 if reg_m is not None else float(np.abs(plan.sum(axis=1) - a).max())
    if change > tol or marginal_error > _MARGINAL_TOL:
        warnings.warn(
            f"the entropic plan did not converge in {n_iter} iterations; increase reg={reg:g}.",
            stacklevel=3,
        )
    return plan, (f[:, 0], g), n_iter
