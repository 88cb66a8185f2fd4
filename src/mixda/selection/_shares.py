"""Class proportions of a target without labels: whether they differ, and what to do about it.

A view that standardizes each domain by itself takes other class proportions for a shift, and moving
components onto a target of other proportions carries the surplus of one class into another. The
more clearly the target's proportions differ from those of the sources, the more do ordinary
classifiers decide, in views that are matched to these proportions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from scipy.stats import binom

from mixda._core.errors import MixdaError
from mixda._core.text import class_name, did_you_mean
from mixda._core.typing import Array
from mixda.selection._pool import Fold

_MIN_DIFFERENCE = 0.1  # total variation from which on shares differ
_MIN_CHANGE = 0.01  # total variation of shrunk shares from which on they are worth matching
_MIN_COVERED = 0.5  # of the target's rows, by the classes of a source that is compared with it
_MATCHING_ROUNDS = 12
_CHANGE = 0.003  # total variation of shares that have converged
_PRIOR_STRENGTH = 0.1  # of the rows, that the sources' shares count for
_EM_STEPS = 30
_MIN_SHARE = 1e-4

Ranges = tuple[Array, Array]


def total_variation(p: Array, q: Array) -> float:
    """Return half the summed absolute difference of two distributions.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._shares import total_variation
    >>> round(total_variation(np.array([0.9, 0.1]), np.array([0.5, 0.5])), 2)
    0.4
    """
    return float(0.5 * np.abs(p - q).sum())


def estimate_difference(
    start: Array, usual: Array, error: float, revise: Callable[[Array], Array]
) -> tuple[Array, float]:
    r"""Return the class proportions of a target, and how strongly they are believed to differ.

    A shift makes any classifier see wrong shares. The common scale sees a difference
    :math:`\delta`, unless all scales together see less of it when own scales are matched to what
    they see, again and again. It may be wrong by :math:`\varepsilon`, as it is on held-out sources
    and as proportions of a few rows are. The shares are shrunk toward the usual ones by the part
    that may be an error:

    .. math:: \pi = \pi^S + s \, (\hat\pi - \pi^S), \qquad
              s = \max\bigl(0, \, 1 - (\varepsilon / \delta)^2\bigr).

    Parameters
    ----------
    start : ndarray of shape (nc,)
        Shares that the common scale sees.
    usual : ndarray of shape (nc,)
        Shares of the sources.
    error : float
        Total variation between such shares and the true ones.
    revise : callable
        Returns the shares that all scales see if they are matched to given shares.

    Returns
    -------
    shares : ndarray of shape (nc,)
    strength : float
        The factor :math:`s`, zero if they are not believed to differ.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._shares import estimate_difference
    >>> usual, start = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    >>> shares, strength = estimate_difference(start, usual, 0.2, lambda shares: shares)
    >>> shares.round(3), round(strength, 3)
    (array([0.8, 0.2]), 0.75)
    >>> estimate_difference(start, usual, 0.2, lambda shares: usual)
    (array([0.5, 0.5]), 0.0)
    """
    least = max(error, _MIN_DIFFERENCE)
    difference, shares = total_variation(start, usual), start
    if difference > least:
        for _ in range(_MATCHING_ROUNDS):
            shares, last = revise(shares), shares
            if total_variation(shares, last) < _CHANGE:
                break
        difference = min(difference, total_variation(shares, usual))
    if difference <= least:
        return usual, 0.0
    strength = 1.0 - (error / difference) ** 2
    shares = usual + strength * (shares - usual)
    if total_variation(shares, usual) < _MIN_CHANGE:
        return usual, 0.0
    return shares, strength


def sampling_error(shares: Array, n: int) -> float:
    r"""Return how far proportions of n rows are from those they are drawn from, on average.

    .. math:: \operatorname{E} \frac12 \sum_y \Bigl|\frac{X_y}{n} - \pi_y\Bigr|, \qquad
              X_y \sim \mathrm{Bin}(n, \pi_y), \qquad
              \operatorname{E} |X - n \pi| = 2 (k + 1) (1 - \pi) \Pr(X = k + 1), \quad
              k = \lfloor n \pi \rfloor

    The closed form is de Moivre's.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._shares import sampling_error
    >>> round(sampling_error(np.array([0.5, 0.5]), 2), 3)
    0.25
    """
    k = np.floor(n * shares)
    deviation = 2.0 * (k + 1.0) * (1.0 - shares) * binom.pmf(k + 1.0, n, shares)
    return float(0.5 * deviation.sum() / n)


def estimate_shares(logs: Array, usual: Array, rows: Array | None = None) -> Array:
    r"""Class proportions of a domain from posteriors learned under other shares [1]_.

    .. math:: \pi_y \leftarrow \frac{1}{1 + c} \Bigl(\sum_i w_i
              \frac{p(y \mid x_i) \, \pi_y / \pi^S_y}{\sum_{y'} p(y' \mid x_i) \, \pi_{y'} /
              \pi^S_{y'}} + c \, \pi^S_y\Bigr)

    Parameters
    ----------
    logs : ndarray of shape (n, nc)
        Calibrated log-probabilities.
    usual : ndarray of shape (nc,)
        Shares :math:`\pi^S` under which they were learned.
    rows : ndarray of shape (n,), optional
        Share :math:`w_i` of each row; equal if None.

    References
    ----------
    .. [1] M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to
       new a priori probabilities", Neural Computation 14, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._shares import estimate_shares
    >>> logs = np.log(np.repeat([[0.95, 0.05], [0.05, 0.95]], [90, 10], axis=0))
    >>> estimate_shares(logs, np.array([0.5, 0.5])).round(2)
    array([0.88, 0.12])
    """
    usual = smooth_shares(usual)
    rows = np.full(len(logs), 1.0 / len(logs)) if rows is None else rows
    shares = usual
    for _ in range(_EM_STEPS):
        seen = rows @ softmax(logs + np.log(shares / usual), axis=1)
        shares = (seen + _PRIOR_STRENGTH * usual) / (1.0 + _PRIOR_STRENGTH)
    return shares


def smooth_shares(shares: Array) -> Array:
    """Return shares of which none is zero."""
    smoothed: Array = (shares + 0.01) / (1.0 + 0.01 * len(shares))
    return smoothed


def given_shares(logs: Array, ranges: Ranges, usual: Array) -> tuple[Array, float]:
    """Return the shares that the user's ranges allow, and one if they clearly differ, else zero."""
    shares: Array = np.exp(reweight(logs, fit_log_odds(logs, ranges))).mean(axis=0)
    return shares, float(total_variation(shares, usual) > _MIN_DIFFERENCE)


def restrict(shares: Array, ranges: Ranges | None) -> Array:
    """Return the shares, moved into the user's ranges if there are any."""
    if ranges is None:
        return shares
    logs = np.log(np.maximum(shares, _MIN_SHARE))[None]
    moved: Array = np.exp(reweight(logs, fit_log_odds(logs, ranges)))[0]
    return moved


def allows(ranges: Ranges | None, shares: Array) -> bool:
    """Whether the user's ranges allow these shares.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._shares import allows
    >>> vague = np.array([0.2, 0.0]), np.array([0.8, 0.8])
    >>> allows(vague, np.array([0.5, 0.5])), allows(vague, np.array([0.1, 0.9]))
    (True, False)
    """
    if ranges is None:
        return True
    low, high = ranges
    return bool((low <= shares + 1e-9).all() and (shares <= high + 1e-9).all())


def match_shares(fold: Fold, shares: Array) -> Fold:
    """Weight the rows of a held-out source to the given class proportions.

    If it lacks the classes of more than half of the target, no row counts.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._pool import Fold
    >>> from mixda.selection._shares import match_shares
    >>> fold = Fold(np.zeros((1, 4, 2)), np.array([0, 0, 0, 1]))
    >>> match_shares(fold, np.array([0.5, 0.5])).rows.round(3)
    array([0.167, 0.167, 0.167, 0.5  ])
    """
    counts = np.bincount(fold.truth, minlength=len(shares))
    enough = shares[counts > 0].sum() >= _MIN_COVERED
    return replace(fold, importance=enough * (shares / np.maximum(counts, 1))[fold.truth])


def check_shares(target_shares: Any, classes: NDArray[Any]) -> Ranges | None:
    """Return the lowest and highest share of each class that the user allows.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._shares import check_shares
    >>> low, high = check_shares({"ok": 0.95}, np.array(["ok", "worn"]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.95, 0.0], [0.95, 0.05])
    """
    if target_shares is None or target_shares == {}:
        return None
    if not isinstance(target_shares, Mapping):
        raise MixdaError(
            "target_shares must be a mapping from classes to shares or (low, high) ranges, such as "
            f"{{'healthy': 0.95}}, got {target_shares!r}."
        )
    low, high = np.zeros(len(classes)), np.ones(len(classes))
    names = {class_name(name): k for k, name in enumerate(classes.tolist())}
    given = [class_name(name) for name in target_shares]
    twice = [name for k, name in enumerate(given) if name in given[:k]]
    if twice:
        raise MixdaError(f"target_shares names the class {twice[0]!r} twice; give one share.")
    for name, value in target_shares.items():
        if class_name(name) not in names:
            raise MixdaError(
                f"target_shares names the class {name!r};{did_you_mean(str(name), names)} the "
                f"sources have {', '.join(map(repr, names))}."
            )
        try:
            span = np.broadcast_to(np.asarray(value, dtype=np.float64), 2)
        except (TypeError, ValueError):
            span = np.array([1.0, 0.0])
        if not (0.0 <= span[0] <= span[1] <= 1.0):
            raise MixdaError(
                f"target_shares[{name!r}] must be a share from 0 to 1 or a (low, high) range, got "
                f"{value!r}."
            )
        low[names[class_name(name)]], high[names[class_name(name)]] = span
    if low.sum() > 1.0 + 1e-9 or high.sum() < 1.0 - 1e-9:
        raise MixdaError(
            f"target_shares cannot sum to one: the classes have at least {low.sum():.3g} and at "
            f"most {high.sum():.3g} together."
        )
    rest = 1.0 - low.sum()
    return low, np.minimum(high, low + rest)


def fit_log_odds(logs: Array, ranges: Ranges, n_iter: int = 200) -> Array:
    r"""Shifts :math:`b_y` under which the mean posterior respects the given shares.

    .. math:: \frac{1}{n} \sum_i \operatorname{softmax}(\log p(\cdot \mid x_i) + b)_y
              \in [\pi_y^{\text{low}}, \pi_y^{\text{high}}]

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._shares import fit_log_odds
    >>> logs = np.log(np.array([[0.6, 0.4], [0.4, 0.6]]))
    >>> b = fit_log_odds(logs, (np.array([0.8, 0.2]), np.array([0.8, 0.2])))
    >>> bool(b[0] > b[1])
    True
    """
    log_odds, last = np.zeros((2, logs.shape[1]))
    gain = np.ones(logs.shape[1])
    for _ in range(n_iter):
        seen = softmax(logs + log_odds, axis=1).mean(axis=0)
        goal = np.maximum(np.clip(seen, *ranges), _MIN_SHARE)
        step = np.log(goal / goal.sum()) - np.log(np.maximum(seen, 1e-12))
        if np.abs(step).max() < 1e-4:
            break
        gain = np.where(step * last > 0, 1.5 * gain, 0.5)  # longer steps where answers are sure
        last = step
        log_odds = log_odds + np.clip(gain * step, -2.0, 2.0)
    centered: Array = log_odds - log_odds.mean()
    return centered


def reweight(logs: Array, log_odds: Array) -> Array:
    """Return normalized log-probabilities with shifted odds."""
    shifted: Array = log_softmax(logs + log_odds, axis=1)
    return shifted
