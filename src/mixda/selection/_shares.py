"""Class shares of a target without labels: whether they differ, and what to do about it.

A view that standardizes each domain by itself takes other class shares for a shift, and moving
components onto a target of other shares carries the surplus of one class into another. The common
scale does not suffer from this, so where it sees clearly other shares, it decides alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from mixda._core.errors import MixdaError
from mixda._core.validation import Array
from mixda.selection._pool import Fold, combine

_MIN_DIFFERENCE = 0.2  # total variation; smaller ones are within what left-out sources show
_MIN_SHARE = 1e-4

Ranges = tuple[Array, Array]


def hard_shares(logs: Array) -> Array:
    """Return the shares of the most probable classes, shape (nc,)."""
    n_classes = logs.shape[1]
    shares: Array = np.bincount(logs.argmax(axis=1), minlength=n_classes) / len(logs)
    return shares


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


def unexplained_difference(
    weights: Array, folds: Sequence[Fold], target: Array, usual: Array
) -> float:
    """Total variation between usual shares and those a pool sees, 0 if its errors explain it.

    Parameters
    ----------
    weights : ndarray of shape (n_members,)
        Of the members on the common scale.
    folds : sequence of Fold
        Left-out sources: how wrong the shares are that this pool sees.
    target : ndarray of shape (n_members, n, nc)
    usual : ndarray of shape (nc,)
        Shares of the sources.
    """
    errors = [
        total_variation(
            hard_shares(combine(weights, fold.logs)),
            np.bincount(fold.truth, minlength=len(usual)) / len(fold.truth),
        )
        for fold in folds
    ]
    seen = total_variation(hard_shares(combine(weights, target)), usual)
    return seen if seen > max(_MIN_DIFFERENCE, *errors) else 0.0


def resample(truth: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return rows of a left-out source with other class shares: some classes become rare."""
    classes, counts = np.unique(truth, return_counts=True)
    kept = np.exp(rng.normal(0.0, 1.5, len(classes)))
    kept = np.ceil(kept / kept.max() * counts).astype(int)
    rows = [
        rng.choice(np.flatnonzero(truth == k), n, replace=False)
        for k, n in zip(classes, kept, strict=True)
    ]
    return np.sort(np.concatenate(rows))


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
    if target_shares is None:
        return None
    if not isinstance(target_shares, Mapping):
        raise MixdaError(
            "target_shares must be a mapping from classes to shares or (low, high) ranges, such as "
            f"{{'healthy': 0.95}}, got {target_shares!r}."
        )
    low, high = np.zeros(len(classes)), np.ones(len(classes))
    names = {str(name): k for k, name in enumerate(classes.tolist())}
    for name, value in target_shares.items():
        if str(name) not in names:
            raise MixdaError(
                f"target_shares names the class {name!r}, but the sources have "
                f"{', '.join(map(repr, names))}."
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
        low[names[str(name)]], high[names[str(name)]] = span
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
    log_odds = np.zeros(logs.shape[1])
    for _ in range(n_iter):
        seen = softmax(logs + log_odds, axis=1).mean(axis=0)
        goal = np.maximum(np.clip(seen, *ranges), _MIN_SHARE)
        step = np.log(goal / goal.sum()) - np.log(np.maximum(seen, 1e-12))
        log_odds += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-4:
            break
    centered: Array = log_odds - log_odds.mean()
    return centered


def reweight(logs: Array, log_odds: Array) -> Array:
    """Return normalized log-probabilities with shifted odds."""
    shifted: Array = log_softmax(logs + log_odds, axis=1)
    return shifted
