"""The rule of a committee: views of the rows, members on these views, a log-linear pool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.namespace import as_like, namespace, safe_log
from mixda._core.typing import Array
from mixda._core.validation import check_array, check_number
from mixda.rules._base import Rule, check_rules, set_fields

_ROWS_AT_A_TIME = 2048  # so that what members compute of these rows stays in the cache


@dataclass(frozen=True, eq=False)
class Pool(Rule):
    r"""Log-linear pool of several members, each of which works on one of a few views.

    .. math:: p(y \mid x) \propto e^{b_y} \prod_e
              \Bigl((1 - \epsilon) \, p_e(y \mid \phi_{v(e)}(x)) + \epsilon / n_c\Bigr)^{a_e}

    A view that several members share is computed once.

    Parameters
    ----------
    views : tuple of Rule
    members : tuple of Rule
        From a view to probabilities.
    view : ndarray of shape (n_members,)
        Position of each member's view.
    weights : ndarray of shape (n_members,)
        The powers :math:`a_e \ge 0`.
    log_odds : ndarray of shape (nc,)
        The shifts :math:`b_y`.
    smoothing : float
        The share :math:`\epsilon` of the uniform distribution, so that no member has a veto.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Chain, Pool, Softmax
    >>> pool = Pool((Chain(()),), (Softmax(), Softmax()), [0, 0], [0.5, 0.5], [0.0, 0.0], 0.0)
    >>> pool(np.log([[0.2, 0.8]])).round(3)
    array([[0.2, 0.8]])
    """

    views: tuple[Rule, ...]
    members: tuple[Rule, ...]
    view: NDArray[Any]
    weights: Array
    log_odds: Array
    smoothing: float

    def __post_init__(self) -> None:
        set_fields(
            self,
            views=check_rules(self.views),
            members=check_rules(self.members),
            view=np.asarray(self.view),
            weights=check_array(self.weights, "weights", 1),
            log_odds=check_array(self.log_odds, "log_odds", 1),
        )
        check_number(self.smoothing, "smoothing", most=1)
        n = len(self.members)
        known = self.view.dtype.kind in "iu" and self.view.shape == (n,) and n > 0
        if not known or not ((self.view >= 0) & (self.view < len(self.views))).all():
            raise MixdaError("view of a pool must name a view for each member.")
        if self.weights.shape != (n,) or (self.weights < 0).any():
            raise MixdaError(f"weights of a pool must be {n} non-negative numbers, one per member.")

    def __call__(self, X: Array) -> Array:
        xp = namespace(X)
        logs = xp.tile(as_like(self.log_odds, X), (len(X), 1))
        step = _ROWS_AT_A_TIME if xp is np else len(X)
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            for weight, answer in self.answers(X[rows]):
                logs[rows] += weight * answer
        logs = logs - xp.amax(logs, axis=1)[:, None]
        proba: Array = xp.exp(logs - xp.log(xp.exp(logs).sum(axis=1))[:, None])
        return proba

    def answers(self, X: Array) -> Iterator[tuple[float, Array]]:
        """Yield the weight of each member and its smoothed log-probabilities, shape (n, nc)."""
        for place, view in enumerate(self.views):
            own = np.flatnonzero((self.view == place) & (self.weights > 0))
            Z = view(X) if len(own) else X
            for k in own:
                yield float(self.weights[k]), smooth_logs(self.members[k](Z), self.smoothing)


def smooth_logs(proba: Array, smoothing: float) -> Array:
    """Logarithms of probabilities with a share of the uniform distribution, shape (n, nc)."""
    mixed = (1.0 - smoothing) * proba + smoothing / proba.shape[-1]
    smoothed: Array = safe_log(mixed, np.finfo(float).tiny)
    return smoothed
