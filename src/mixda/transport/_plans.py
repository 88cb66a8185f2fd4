"""Optimal transport between mixtures: the MW2 and SMW2 distances, their plans and their maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_array, check_choice, check_number
from mixda.mixture import Mixture
from mixda.transport._costs import Beta, align_labels, check_same_features, cost_matrix
from mixda.transport._exact import Potentials, solve_exact
from mixda.transport._sinkhorn import solve_sinkhorn


@dataclass(frozen=True, eq=False)
class TransportResult:
    """The result of `transport_plan`.

    Attributes
    ----------
    plan : ndarray of shape (K_P, K_Q)
        Mass sent from each component of `p` to each component of `q`.
    cost : ndarray of shape (K_P, K_Q)
        Squared ground cost, labels included.
    value : float
        ``(plan * cost).sum()``, a squared distance (without entropy or penalty terms).
    potentials : tuple of ndarray
        Dual variables (K_P,) and (K_Q,), a warm start for a similar problem.
    beta : float
        The label weight that was used.
    n_iter : int
        Iterations of the entropic or unbalanced solver; 0 for the exact one.
    """

    plan: Array
    cost: Array
    value: float
    potentials: Potentials
    beta: float
    n_iter: int


def transport_plan(
    p: Mixture,
    q: Mixture,
    *,
    beta: Beta = 0.0,
    reg: float = 0.0,
    reg_m: float | None = None,
    warm_start: Potentials | None = None,
    like: Any = None,
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
        Weight of the labels. 0 ignores them. "max" is the largest feature cost between the two
        mixtures, so that changing from one pure class to another costs more than any displacement.
    reg : float
        Weight of the entropy, relative to the largest cost; 0 (default) solves exactly.
    reg_m : float, optional
        Relax the marginals with a Kullback-Leibler penalty of this weight, relative to the
        largest cost (unbalanced transport; needs ``reg > 0``).
    warm_start : pair of ndarray, optional
        Potentials of a similar problem (exact solver only).
    like : torch tensor or CuPy array, optional
        The costs of the features are computed with its library, on its device and in its
        precision; the plan is computed on the CPU. Requires scikit-learn's array dispatch.

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
    cost, beta_used = cost_matrix(p, q, beta, like)
    reg = check_number(reg, "reg")
    if reg_m is not None:
        reg_m = check_number(reg_m, "reg_m", above=True)
        if reg == 0:
            raise MixdaError(f"reg_m={reg_m!r} requires reg > 0, got reg=0; set reg as well.")
    if reg == 0:
        if warm_start is not None:
            warm_start = _check_potentials(warm_start, cost.shape)
        sparse = solve_exact(p.weights, q.weights, cost, warm_start)
        value, potentials = sparse.value(cost), sparse.duals(cost)
        return TransportResult(sparse.toarray(), cost, value, potentials, beta_used, 0)
    plan, potentials, n_iter = solve_sinkhorn(p.weights, q.weights, cost, reg, reg_m)
    return TransportResult(plan, cost, float((plan * cost).sum()), potentials, beta_used, n_iter)


def mw2(p: Mixture, q: Mixture, *, squared: bool = False, like: Any = None) -> float:
    r"""Mixture-Wasserstein distance :math:`\mathcal{MW}_2(p, q)` [1]_ (eq. 8); ignores labels.

    Parameters
    ----------
    p, q : Mixture
    squared : bool
        Return :math:`\mathcal{MW}_2^2` instead.
    like : torch tensor or CuPy array, optional
        As in `transport_plan`.

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
    return smw2(p, q, beta=0.0, squared=squared, like=like)


def smw2(
    p: Mixture, q: Mixture, *, beta: Beta = "max", squared: bool = False, like: Any = None
) -> float:
    r"""Supervised mixture-Wasserstein distance :math:`\mathcal{SMW}_2(p, q)` (eq. 12).

    Parameters
    ----------
    p, q : Mixture
        Labeled, unless `beta` is 0. Classes are matched by name.
    beta : float or "max"
        Weight of the squared distance between labels; see `transport_plan`. With "max" the
        value is not a metric, because the weight depends on the pair of mixtures.
    squared : bool
        Return :math:`\mathcal{SMW}_2^2` instead.
    like : torch tensor or CuPy array, optional
        As in `transport_plan`.

    Examples
    --------
    >>> from mixda import Mixture, smw2
    >>> p = Mixture([1.0], [[0.0]], [[1.0]], [[1, 0]])
    >>> q = Mixture([1.0], [[0.0]], [[1.0]], [[0, 1]])
    >>> smw2(p, q, beta=8.0)
    4.0
    """
    cost, _ = cost_matrix(p, q, beta, like)
    value = solve_exact(p.weights, q.weights, cost).value(cost)
    return value if squared else float(np.sqrt(value))


def barycentric_map(p: Mixture, q: Mixture, plan: Array, *, weights: str = "source") -> Mixture:
    r"""Move the components of `p` onto `q` along a plan (Theorems 1 and 2).

    .. math:: \hat m_i = \sum_j \frac{\omega_{ij}}{p_i} m_j, \quad
              \hat s_i = \sum_j \frac{\omega_{ij}}{p_i} s_j, \quad
              \hat v_i = \sum_j \frac{\omega_{ij}}{p_i} v_j

    :math:`p_i` is the mass of the plan's row, so unbalanced plans work too. A component that sends
    no mass stays in place. If `q` has no labels, `p` keeps its own.

    Parameters
    ----------
    p, q : Mixture
    plan : ndarray of shape (K_P, K_Q)
    weights : {"source", "plan"}
        Weights of the image: those of `p`, or the mass of the plan's rows, which differs from them
        if the plan is unbalanced (`reg_m` of `transport_plan`). A class that finds little mass
        nearby then loses weight.

    Returns
    -------
    Mixture
        The image of `p`.

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
    check_choice(weights, "weights", ("source", "plan"))
    mass = plan.sum(axis=1)
    sends = mass > 0
    kept = mass / mass.sum() if weights == "plan" else p.weights
    rows = plan[sends] / mass[sends, None]
    means, stds = p.means.copy(), p.stds.copy()
    means[sends], stds[sends] = rows @ q.means, rows @ q.stds
    if q.labels is None:
        return Mixture(kept, means, stds, p.labels, p.classes, names)
    (before, after), classes = align_labels([p, q])
    labels = np.full((p.n_components, len(classes)), 1.0 / len(classes))
    if before is not None:
        labels = before.copy()
    labels[sends] = rows @ after
    return Mixture(kept, means, stds, labels, classes, names)


def _check_potentials(warm_start: Any, shape: tuple[int, int]) -> Potentials:
    if not isinstance(warm_start, (tuple, list)) or len(warm_start) != 2:
        raise MixdaError(f"warm_start must be a pair of potentials, got {warm_start!r}.")
    u, v = (check_array(side, "warm_start", ndim=1) for side in warm_start)
    if (len(u), len(v)) != shape:
        raise MixdaError(
            f"warm_start has potentials of lengths {len(u)} and {len(v)}, but the mixtures have "
            f"{shape[0]} and {shape[1]} components."
        )
    return u, v
