r"""Weights of a log-linear pool, learned from members' answers where the truth is known.

.. math:: p(y \mid x) \propto \prod_e p_e(y \mid x)^{a_e}, \qquad
          \min_{a \ge 0} \; -\sum_\ell w_\ell \sum_{i \in \ell} r_i
          \log p(y_i \mid x_i) + s \, \|a - a^0\|^2

Rows of one domain are one piece of evidence however many they are, so every fold has the same say.
The center :math:`a^0` gives equal weights to members that were made comparable by one power each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from mixda._core.typing import Array

SMOOTHING = 0.01  # uniform share in every member's answer

_STRENGTH = 0.1  # of the pull toward equal weights
_POWER_STRENGTH = 0.1  # of the pull of a member's power toward one
_SCARCE_ROWS = 60  # per fold, at which both pulls have doubled
_POWER_BOUNDS = (0.02, 8.0)
_NEWTON_STEPS = 25


@dataclass(frozen=True)
class Fold:
    """Answers of the members on rows whose classes are known.

    Attributes
    ----------
    logs : ndarray of shape (n_members, n, nc)
        Logarithms of smoothed probabilities.
    truth : ndarray of shape (n,)
    weight : float
        Of the fold among all folds.
    importance : ndarray of shape (n,), optional
        Of each row within the fold; equal if None.
    Z : ndarray of shape (n, k), optional
        The rows on their own scale, for self-training.
    n_seen : int, optional
        Rows that the members saw of a held-out source, if these were only some.
    """

    logs: Array
    truth: NDArray[np.intp]
    weight: float = 1.0
    importance: Array | None = None
    Z: Array | None = None
    n_seen: int | None = None

    def take(self, members: Sequence[int]) -> Fold:
        """Return the answers of some members only."""
        return replace(self, logs=self.logs[list(members)])

    @property
    def silent(self) -> NDArray[np.bool_]:
        """Whether each member says nothing because it could not be fitted, shape (n_members,)."""
        same: NDArray[np.bool_] = (self.logs == self.logs[..., :1]).all(axis=(1, 2))
        return same

    @property
    def rows(self) -> Array:
        """Share of each row in the fold; they sum to one."""
        share = np.ones(len(self.truth)) if self.importance is None else self.importance
        return share / max(float(share.sum()), np.finfo(float).tiny)


def fit_weights(folds: Sequence[Fold], strength: float = _STRENGTH) -> Array:
    """Return the weights of the members, shape (n_members,).

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._pool import Fold, fit_weights
    >>> truth = np.array([0, 1] * 50)
    >>> good = np.log(np.where(np.eye(2)[truth] > 0, 0.9, 0.1))
    >>> useless = np.log(np.full((100, 2), 0.5))
    >>> a = fit_weights([Fold(np.array([good, useless]), truth)])
    >>> bool(a[0] > a[1])
    True
    """
    logs = np.concatenate([fold.logs for fold in folds], axis=1)
    truth = np.concatenate([fold.truth for fold in folds])
    total = sum(fold.weight for fold in folds)
    rows = np.concatenate([fold.weight / total * fold.rows for fold in folds])
    effective = [1.0 / (fold.rows**2).sum() for fold in folds]
    scarcity = 1.0 + _SCARCE_ROWS / np.mean(effective)
    powers = _fit_powers(logs, truth, rows, _POWER_STRENGTH * scarcity)
    logs = powers[:, None, None] * logs
    mean = logs.mean(axis=0, keepdims=True)
    common = _fit_powers(mean, truth, rows, 0.002)[0]
    center = np.full(len(logs), common / len(logs))
    if np.isinf(strength):
        return center * powers
    return _minimize(logs, truth, rows, center, strength * scarcity) * powers


def combine(weights: Array, logs: Array) -> Array:
    """Return normalized log-probabilities of the pool, shape (n, nc)."""
    pooled: Array = log_softmax(np.tensordot(weights, logs, 1), axis=1)
    return pooled


def _fit_powers(logs: Array, truth: NDArray[np.intp], rows: Array, strength: float) -> Array:
    r"""One power per member, by Newton steps on :math:`\log t`, for all members at once.

    A member that knows nothing about other domains gets a power near zero and falls silent.
    """
    own = logs[:, np.arange(len(truth)), truth]
    log_powers = np.zeros(len(logs))
    for _ in range(_NEWTON_STEPS):
        t = np.exp(log_powers)
        proba = softmax(t[:, None, None] * logs, axis=2)
        mean = (proba * logs).sum(axis=2)
        variance = (proba * logs**2).sum(axis=2) - mean**2
        slope = ((mean - own) @ rows) * t
        gradient = slope + 2.0 * strength * log_powers
        curvature = (variance @ rows) * t**2 + np.maximum(slope, 0.0) + 2.0 * strength
        step = np.clip(-gradient / curvature, -1.0, 1.0)
        log_powers = np.clip(log_powers + step, *np.log(_POWER_BOUNDS))
        if np.abs(step).max() < 1e-3:
            break
    return np.exp(log_powers)


def _minimize(
    logs: Array, truth: NDArray[np.intp], rows: Array, center: Array, strength: float
) -> Array:
    n_members, n, n_classes = logs.shape
    flat = logs.reshape(n_members, -1)
    index = np.arange(n)

    def objective(a: Array) -> tuple[float, Array]:
        pooled = log_softmax((a @ flat).reshape(n, n_classes), axis=1)
        loss = -(rows * pooled[index, truth]).sum()
        residual = np.exp(pooled)
        residual[index, truth] -= 1.0
        gradient = flat @ (residual * rows[:, None]).ravel()
        pull = a - center
        return loss + strength * (pull**2).sum(), gradient + 2.0 * strength * pull

    found = minimize(
        objective,
        center,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * n_members,
        options={"maxiter": 80},
    )
    weights: Array = found.x
    return weights
