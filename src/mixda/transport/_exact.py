"""Exact plans: an assignment where possible, otherwise the network simplex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixda._core.typing import Array, Codes, Floats

Potentials = tuple[Array, Array]

_MAX_PIVOTS = 1_000_000_000  # of the network simplex: never the reason to stop


@dataclass(frozen=True, eq=False)
class SparsePlan:
    """An exact plan as coordinates: at most K_P + K_Q - 1 entries, sorted by row.

    `is_assignment` means that row *i* sends all its mass to ``columns[i]``.
    """

    rows: Codes
    columns: Codes
    mass: Array
    shape: tuple[int, int]
    is_assignment: bool
    potentials: Potentials | None = None

    def value(self, cost: Floats) -> float:
        """Transport cost ``Σ ω_ij c_ij``."""
        return float(self.mass @ cost[self.rows, self.columns])

    def duals(self, cost: Floats) -> Potentials:
        """Potentials of the plan for this cost; those of an assignment are computed on demand."""
        if self.potentials is not None:
            return self.potentials
        return _assignment_potentials(np.asarray(cost, dtype=np.float64), self.columns)

    def same_as(self, other: SparsePlan | None) -> bool:
        """Whether the other plan moves the same mass along the same pairs."""
        return (
            other is not None
            and np.array_equal(self.columns, other.columns)
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.mass, other.mass)
        )

    def toarray(self) -> Array:
        """Return the plan as a dense matrix."""
        dense = np.zeros(self.shape)
        dense[self.rows, self.columns] = self.mass
        return dense


def solve_exact(
    a: Array, b: Array, cost: Floats, warm_start: Potentials | None = None
) -> SparsePlan:
    """Exact plan with marginals `a` and `b` (eq. 7): an assignment or a linear program.

    With uniform weights and equal sizes an optimal plan is a permutation, up to 1/K (DESIGN §4).
    Its potentials are not computed here (they are None).
    """
    if len(a) == len(b) and _is_uniform(a) and _is_uniform(b):
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(cost)
        return SparsePlan(rows, columns, np.asarray(a), cost.shape, True)
    import ot

    a = np.asarray(a, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    # POT's tolerances are absolute: scale costs to about one, by a power of two to lose no digit
    scale = 2.0 ** np.frexp(cost.max(initial=0.0))[1]
    if warm_start is not None:
        warm_start = warm_start[0] / scale, warm_start[1] / scale
    dense, log = ot.emd(
        a / a.sum(),
        b / b.sum(),
        cost / cost.dtype.type(scale),
        numItermax=_MAX_PIVOTS,
        log=True,
        potentials_init=warm_start,
        check_marginals=False,
    )
    if log["warning"] is not None:
        raise RuntimeError(f"the exact transport problem was not solved: {log['warning']}")
    rows, columns = np.nonzero(dense)
    potentials = scale * log["u"], scale * log["v"]
    return SparsePlan(rows, columns, dense[rows, columns], cost.shape, False, potentials)


def _is_uniform(weights: Array) -> bool:
    return bool(np.ptp(weights) <= 1e-12 / len(weights))


def _assignment_potentials(cost: Array, columns: Codes) -> Potentials:
    """Dual variables of an optimal assignment: shortest paths in its residual graph.

    Dual feasibility ``u_i + v_σ(j) ≤ c_iσ(j)`` with equality on the assignment σ says
    ``v_σ(j) ≤ v_σ(i) + c_iσ(j) - c_iσ(i)``; Bellman-Ford solves it.
    """
    matched = cost[:, columns]  # c_iσ(j): row i against the partner of row j
    lengths = matched - matched.diagonal()[:, None]
    v = np.zeros(len(columns))
    for _ in range(len(columns)):
        shorter = (v[:, None] + lengths).min(axis=0)
        if not (shorter < v - 1e-14 * np.abs(matched).max(initial=0.0)).any():
            break
        v = np.minimum(v, shorter)
    potentials = np.empty_like(v)
    potentials[columns] = v
    return matched.diagonal() - v, potentials
