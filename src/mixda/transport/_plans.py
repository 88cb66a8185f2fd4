"""Optimal transport between mixtures: the MW2 and SMW2 distances, their plans and their maps.

Component *i* is the point ``[m_i, s_i]`` with label ``v_i``; a mixture is a weighted point cloud
and MW2/SMW2 is discrete transport between clouds. Every cost and every plan is made here.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import Array, Floats, check_array, check_number
from mixda.mixture import Mixture

Beta = float | str
_MAX_PIVOTS = 1_000_000_000  # of the network simplex: never the reason to stop
_MAX_SINKHORN = 10_000


@dataclass(frozen=True, eq=False)
class TransportResult:
    """What `transport_plan` returns.

    Attributes
    ----------
    plan : ndarray of shape (K_P, K_Q)
        Mass sent from each component of `p` to each component of `q`.
    cost : ndarray of shape (K_P, K_Q)
        Squared ground cost, labels included.
    value : float
        ``(plan * cost).sum()``, a squared distance (without entropy or penalty terms).
    potentials : tuple of ndarray
        Dual variables (K_P,) and (K_Q,); feed them to a similar problem as a warm start.
    beta : float
        The label weight that was used.
    n_iter : int
        Iterations of the entropic or unbalanced solver; 0 for the exact one.
    """

    plan: Array
    cost: Array
    value: float
    potentials: tuple[Array, Array]
    beta: float
    n_iter: int


def transport_plan(
    p: Mixture,
    q: Mixture,
    *,
    beta: Beta = 0.0,
    reg: float = 0.0,
    reg_m: float | None = None,
    warm_start: tuple[Array, Array] | None = None,
) -> TransportResult:
    r"""Optimal plan between the components of two mixtures (GMMOT; with labels, SMW2).

    .. math:: \min_{\omega \in \Gamma(p, q)} \sum_{ij} \omega_{ij}
              \bigl(\lVert m_i - m_j\rVert^2 + \lVert s_i - s_j\rVert^2
              + \beta \lVert v_i - v_j\rVert^2\bigr)

    Parameters
    ----------
    p, q : Mixture
        With K_P and K_Q components; their weights are the marginals.
    beta : float or "max"
        Weight of the labels: 0 ignores them; "max" is the largest feature cost between the two,
        so that changing from one pure class to another costs more than any displacement.
    reg : float
        0 (default) is exact. Above 0: weight of the entropy, relative to the largest cost.
    reg_m : float, optional
        Relax the marginals with a Kullback-Leibler penalty of this weight, relative to the
        largest cost (unbalanced transport; needs ``reg > 0``).
    warm_start : pair of ndarray, optional
        Potentials of a similar problem (exact solver only).

    Returns
    -------
    TransportResult

    Examples
    --------
    >>> from mixda import Mixture, transport_plan
    >>> p = Mixture([0.5, 0.5], [[0.0], [1.0]], [[1.0], [1.0]])
    >>> q = Mixture([0.5, 0.5], [[1.0], [2.0]], [[1.0], [1.0]])
    >>> transport_plan(p, q).plan
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    cost, beta_used = cost_matrix(p, q, beta)
    reg = check_number(reg, "reg")
    if reg_m is not None:
        reg_m = check_number(reg_m, "reg_m", above=True)
        if reg == 0:
            raise MixdaError(f"reg_m needs reg > 0 too, got reg_m={reg_m!r} and reg=0.")
    if reg == 0:
        if warm_start is not None:
            warm_start = _check_potentials(warm_start, cost.shape)
        sparse = solve_exact(p.weights, q.weights, cost, warm_start)
        value, potentials = sparse.value(cost), sparse.duals(cost)
        return TransportResult(sparse.toarray(), cost, value, potentials, beta_used, 0)
    plan, potentials, n_iter = _sinkhorn(p.weights, q.weights, cost, reg, reg_m)
    return TransportResult(plan, cost, float((plan * cost).sum()), potentials, beta_used, n_iter)


def mw2(p: Mixture, q: Mixture, *, squared: bool = False) -> float:
    r"""Mixture-Wasserstein distance :math:`\mathcal{MW}_2(p, q)` [1]_; labels are ignored.

    Parameters
    ----------
    p, q : Mixture
    squared : bool
        Return :math:`\mathcal{MW}_2^2` instead.

    References
    ----------
    .. [1] J. Delon and A. Desolneux, "A Wasserstein-type distance in the space of Gaussian
       mixture models", SIAM Journal on Imaging Sciences, 2020.

    Examples
    --------
    >>> from mixda import Mixture, mw2
    >>> mw2(Mixture([1.0], [[0.0]], [[1.0]]), Mixture([1.0], [[3.0]], [[5.0]]))
    5.0
    """
    return smw2(p, q, beta=0.0, squared=squared)


def smw2(p: Mixture, q: Mixture, *, beta: Beta = "max", squared: bool = False) -> float:
    r"""Supervised mixture-Wasserstein distance :math:`\mathcal{SMW}_2(p, q)` (section 3.2).

    Parameters
    ----------
    p, q : Mixture
        Labeled, unless `beta` is 0. Classes are matched by name.
    beta : float or "max"
        Weight of the squared distance between labels; see `transport_plan`. With "max" the
        value is not a metric, because the weight depends on the pair.
    squared : bool
        Return :math:`\mathcal{SMW}_2^2` instead.

    Examples
    --------
    >>> from mixda import Mixture, smw2
    >>> p = Mixture([1.0], [[0.0]], [[1.0]], [[1, 0]])
    >>> q = Mixture([1.0], [[0.0]], [[1.0]], [[0, 1]])
    >>> smw2(p, q, beta=8.0)
    4.0
    """
    cost, _ = cost_matrix(p, q, beta)
    value = solve_exact(p.weights, q.weights, cost).value(cost)
    return value if squared else float(np.sqrt(value))


def barycentric_map(p: Mixture, q: Mixture, plan: Array) -> Mixture:
    r"""Move the components of `p` onto `q` along a plan (Theorems 1 and 2).

    .. math:: \hat m_i = \sum_j \frac{\omega_{ij}}{p_i} m_j, \quad
              \hat s_i = \sum_j \frac{\omega_{ij}}{p_i} s_j, \quad
              \hat v_i = \sum_j \frac{\omega_{ij}}{p_i} v_j

    :math:`p_i` is the plan's own row mass, so unbalanced plans work too; a component that sends
    nothing stays where it is. If `q` has no labels, `p` keeps its own.

    Parameters
    ----------
    p, q : Mixture
    plan : ndarray of shape (K_P, K_Q)

    Returns
    -------
    Mixture
        With the weights of `p`.

    Examples
    --------
    >>> from mixda import Mixture, transport_plan
    >>> from mixda.transport import barycentric_map
    >>> p = Mixture([1.0], [[0.0]], [[1.0]], [[1.0, 0.0]], ["a", "b"])
    >>> q = Mixture([0.5, 0.5], [[1.0], [3.0]], [[1.0], [2.0]])
    >>> moved = barycentric_map(p, q, transport_plan(p, q).plan)
    >>> moved.means, moved.stds, moved.predict([[0.0]])
    (array([[2.]]), array([[1.5]]), array(['a'], dtype='<U1'))
    """
    names = check_same_features([p, q])
    mass = plan.sum(axis=1)
    sends = mass > 0
    rows = plan[sends] / mass[sends, None]
    means, stds = p.means.copy(), p.stds.copy()
    means[sends], stds[sends] = rows @ q.means, rows @ q.stds
    if q.labels is None:
        return Mixture(p.weights, means, stds, p.labels, p.classes, names)
    (before, after), classes = align_labels([p, q])
    labels = np.full((p.n_components, len(classes)), 1.0 / len(classes))
    if before is not None:
        labels = before.copy()
    labels[sends] = rows @ after
    return Mixture(p.weights, means, stds, labels, classes, names)


def cost_matrix(p: Mixture, q: Mixture, beta: Beta) -> tuple[Array, float]:
    """Squared ground cost between the components of two mixtures, and the beta it used."""
    check_same_features([p, q])
    cost = squared_distances(features(p), features(q))
    beta_used = resolve_beta(beta, cost)
    if beta_used > 0:
        (labels_p, labels_q), _ = align_labels([p, q])
        if labels_p is None or labels_q is None:
            raise MixdaError(
                "beta weighs labels, but at least one mixture has none; fit it with "
                "fit_labeled_mixture or use beta=0."
            )
        cost += beta_used * squared_distances(labels_p, labels_q)
    return cost, beta_used


def features(p: Mixture) -> Array:
    """Points ``[m_i, s_i]`` whose squared distance is W2² between components: shape (K, 2d)."""
    return np.hstack([p.means, p.stds])


def squared_distances(a: Array, b: Array) -> Array:
    """Squared Euclidean distances (n, m) by one product, exact where two points nearly coincide."""
    center = 0.5 * (a.mean(axis=0) + b.mean(axis=0))
    a, b = a - center, b - center
    norms_a, norms_b = (a**2).sum(axis=1), (b**2).sum(axis=1)
    scale = norms_a[:, None] + norms_b
    distances: Array = np.maximum(scale - 2.0 * (a @ b.T), 0.0)
    i, j = np.nonzero(distances <= 1e-7 * scale)
    for start in range(0, len(i), 4096):
        near = slice(start, start + 4096)
        distances[i[near], j[near]] = ((a[i[near]] - b[j[near]]) ** 2).sum(axis=1)
    return distances


def resolve_beta(beta: Beta, cost: Floats) -> float:
    """Return the number behind `beta` for a problem with this feature cost."""
    if isinstance(beta, str):
        if beta != "max":
            raise MixdaError(f"beta must be a non-negative number or 'max', got {beta!r}.")
        return float(cost.max())
    return check_number(beta, "beta", also=" or 'max'")


def align_labels(mixtures: Sequence[Mixture]) -> tuple[list[Array | None], NDArray[Any]]:
    """Labels of all mixtures as columns of the union of their classes (None stays None)."""
    named = [m.classes for m in mixtures if m.classes is not None]
    if not named:
        return [None] * len(mixtures), np.empty(0)
    classes = named[0]
    if any(not np.array_equal(classes, other) for other in named[1:]):
        if len({other.dtype.kind == "U" for other in named}) > 1:
            raise MixdaError(
                "some mixtures have numbers as classes and others strings; convert one of them."
            )
        classes = np.unique(np.concatenate(named))
    aligned: list[Array | None] = []
    for m in mixtures:
        if m.labels is None or m.classes is None or np.array_equal(m.classes, classes):
            aligned.append(m.labels)
            continue
        labels = np.zeros((m.n_components, len(classes)))
        labels[:, np.searchsorted(classes, m.classes)] = m.labels
        aligned.append(labels)
    return aligned, classes


def check_same_features(
    mixtures: Sequence[Mixture], *, by_name: bool = True
) -> tuple[str, ...] | None:
    """Return the feature names, None if no mixture has any, or say who has other features.

    Mixtures with names must have the same ones in the same order, unless `by_name` is False.
    """
    strangers = [type(m).__name__ for m in mixtures if not isinstance(m, Mixture)]
    if strangers:
        raise MixdaError(f"a Mixture is needed, got {strangers[0]}; fit_mixture makes one.")
    sizes = {m.n_features for m in mixtures}
    if len(sizes) != 1:
        raise MixdaError(
            f"the mixtures have different numbers of features ({sorted(sizes)}); "
            "fit them all on the same columns."
        )
    names = [m.feature_names for m in mixtures if m.feature_names is not None]
    for other in names[1:] if by_name else []:
        if other != names[0]:
            a, b = next((a, b) for a, b in zip(names[0], other, strict=True) if a != b)
            raise MixdaError(
                f"the mixtures have other features or another order of them ({a!r} in one where "
                f"{b!r} is in another); order them by Mixture.marginal."
            )
    return names[0] if names else None


@dataclass(frozen=True, eq=False)
class SparsePlan:
    """An exact plan as coordinates: at most K_P + K_Q - 1 entries, sorted by row.

    `is_assignment` tells that row *i* sends all its mass to ``columns[i]`` alone.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    mass: Array
    shape: tuple[int, int]
    is_assignment: bool
    potentials: tuple[Array, Array] | None = None

    def value(self, cost: Floats) -> float:
        """Transport cost ``Σ ω_ij c_ij``."""
        return float(self.mass @ cost[self.rows, self.columns])

    def duals(self, cost: Floats) -> tuple[Array, Array]:
        """Potentials of the plan for this cost; those of an assignment are computed here."""
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
    a: Array, b: Array, cost: Floats, warm_start: tuple[Array, Array] | None = None
) -> SparsePlan:
    """Exact plan with marginals `a` and `b`: an assignment where possible, else a linear program.

    The potentials of an assignment are not computed (they are None).
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


def _check_potentials(warm_start: Any, shape: tuple[int, int]) -> tuple[Array, Array]:
    if not isinstance(warm_start, (tuple, list)) or len(warm_start) != 2:
        raise MixdaError(f"warm_start must be a pair of potentials, got {warm_start!r}.")
    u, v = (check_array(side, "warm_start", ndim=1) for side in warm_start)
    if (len(u), len(v)) != shape:
        raise MixdaError(
            f"warm_start has potentials of lengths {len(u)} and {len(v)}, but the mixtures have "
            f"{shape[0]} and {shape[1]} components."
        )
    return u, v


def _is_uniform(weights: Array) -> bool:
    return bool(np.ptp(weights) <= 1e-12 / len(weights))


def _assignment_potentials(cost: Array, columns: NDArray[np.intp]) -> tuple[Array, Array]:
    """Dual variables of an optimal assignment: shortest paths in its residual graph."""
    matched = cost[:, columns]  # row i against the partner of row j
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


def _sinkhorn(
    a: Array, b: Array, cost: Array, reg: float, reg_m: float | None
) -> tuple[Array, tuple[Array, Array], int]:
    """Entropic plan by Sinkhorn's algorithm on the dual, in logarithms.

    The plan is ``a_i b_j exp((f_i + g_j - c_ij) / eps)``; relaxed marginals damp every update.
    """
    from scipy.special import logsumexp

    scale = float(cost.max()) or 1.0
    eps = reg * scale
    damping = 1.0 if reg_m is None else reg_m / (reg_m + reg)
    with np.errstate(divide="ignore"):
        log_a, log_b = np.log(a)[:, None], np.log(b)
    f, g = np.zeros((len(a), 1)), np.zeros(len(b))
    n_iter, change, tol = 0, np.inf, 1e-10 * max(scale, eps)
    while change > tol and n_iter < _MAX_SINKHORN:
        n_iter, previous = n_iter + 1, f
        f = -damping * eps * logsumexp(log_b + (g - cost) / eps, axis=1, keepdims=True)
        g = -damping * eps * logsumexp(log_a + (f - cost) / eps, axis=0)
        change = float(np.abs(f - previous).max())
    plan = np.exp(log_a + log_b + (f + g - cost) / eps)
    missed = 0.0 if reg_m is not None else float(np.abs(plan.sum(axis=1) - a).max())
    if change > tol or missed > 1e-6:
        warnings.warn(
            f"the entropic plan did not converge in {n_iter} iterations; use a larger reg.",
            stacklevel=3,
        )
    return plan, (f[:, 0], g), n_iter
