"""Accuracy on a target without labels, from left-out sources with labels.

Ingredients: the mean confidence of calibrated probabilities (AC), and the share of rows above a
threshold of confidence that reproduces the accuracy on left-out sources (ATC) [1]_. Their
disagreement, the spread between left-out sources and few target rows widen the interval.

References
----------
.. [1] S. Garg et al., "Leveraging unlabeled data to predict out-of-distribution performance",
   ICLR 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.stats import beta, norm

from mixda._core.validation import Array
from mixda.selection._pool import Fold, combine, fit_weights
from mixda.selection._shares import smooth_shares

_SPREAD = 0.12  # of the error, in units of the standard deviation of one answer
_ALWAYS = 0.01  # added to p (1 - p), so that no estimate is without doubt
_DISAGREEMENT = 0.35  # of AC and ATC, that counts as a standard deviation
_DISTANCE = 0.2  # of the estimate to the left-out accuracy, that counts as one
_FOLD_SPREAD = 0.35  # of the standard deviation between left-out sources
_SHARE_DIFFERENCE = 0.25  # of the difference of class shares
_FULL_SKILL = 0.2  # of the entropy explained, from which on ATC has its full weight
_ATC_WEIGHT = 0.5
_LABELED_ROWS = 30  # that the estimate counts for beside labeled target rows


@dataclass(frozen=True)
class LeftOut:
    """What a pool says about left-out sources when its weights were learned on the others."""

    logs: list[Array]  # of each fold, (n, nc), calibrated
    truth: list[NDArray[np.intp]]
    rows: list[Array]  # share of each row in its fold
    power: float  # that calibrates them

    @property
    def accuracies(self) -> list[float]:
        """Accuracy on each left-out source."""
        return [
            min(1.0, float(rows @ (logs.argmax(axis=1) == truth)))
            for logs, truth, rows in zip(self.logs, self.truth, self.rows, strict=True)
        ]

    @property
    def accuracy(self) -> float:
        """Mean accuracy over left-out sources."""
        return float(np.mean(self.accuracies))

    @property
    def skill(self) -> float:
        """Share explained of the log-loss that other sources' class shares have; 0 is chance."""
        n_classes = self.logs[0].shape[1]
        folds = list(zip(self.logs, self.truth, self.rows, strict=True))
        shares = [np.bincount(known, rows, n_classes) for _, known, rows in folds]
        losses, chances = [], []
        for k, (logs, known, rows) in enumerate(folds):
            others = [share for j, share in enumerate(shares) if j != k] or [shares[k]]
            prior = smooth_shares(np.mean(others, axis=0))
            losses.append(-rows @ logs[np.arange(len(known)), known])
            chances.append(-rows @ np.log(prior[known]))
        return 1.0 - float(np.mean(losses) / np.mean(chances))


@dataclass(frozen=True)
class Estimate:
    """An estimated accuracy, its interval, and the ingredients."""

    accuracy: float
    low: float
    high: float
    confidence: float
    threshold: float


def left_out_logs(folds: Sequence[Fold]) -> list[Array]:
    """Return what a pool says about each fold with weights from the others."""
    logs = []
    for k, fold in enumerate(folds):
        others = [other for j, other in enumerate(folds) if j != k] or [fold]
        logs.append(combine(fit_weights(others), fold.logs))
    return logs


def calibrate(folds: Sequence[Fold], logs: Sequence[Array]) -> LeftOut:
    """Calibrate log-probabilities on left-out sources by one power."""
    truth, rows = [fold.truth for fold in folds], [fold.rows for fold in folds]
    power = fit_power(logs, truth, rows)
    return LeftOut([temper(part, power) for part in logs], truth, rows, power)


def temper(logs: Array, power: float) -> Array:
    """Return log-probabilities taken to a power and normalized again."""
    tempered: Array = log_softmax(power * logs, axis=1)
    return tempered


def fit_power(
    logs: Sequence[Array], truth: Sequence[NDArray[np.intp]], rows: Sequence[Array]
) -> float:
    r"""Power that makes probabilities right on average where the truth is known.

    .. math:: \min_a \; - \sum_\ell \sum_{i \in \ell} r_i \log
              \frac{p(y_i \mid x_i)^a}{\sum_y p(y \mid x_i)^a}

    The shares :math:`r_i` of the rows of a fold sum to one, so every fold has the same say.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._estimate import fit_power, temper
    >>> logs = np.log(np.tile([0.99, 0.01], (10, 1)))
    >>> truth = np.repeat([0, 1], [8, 2])  # says 99 %, is right on 80 %
    >>> power = fit_power([logs], [truth], [np.full(10, 0.1)])
    >>> round(float(np.exp(temper(logs, power))[0, 0]), 2)
    0.8
    """

    def loss(log_power: float) -> float:
        losses = [
            -share @ temper(part, np.exp(log_power))[np.arange(len(known)), known]
            for part, known, share in zip(logs, truth, rows, strict=True)
        ]
        return float(np.mean(losses))

    return float(np.exp(minimize_scalar(loss, bounds=(-4.0, 2.0), method="bounded").x))


def estimate_accuracy(
    left_out: LeftOut, target: Array, level: float, difference: float = 0.0
) -> Estimate:
    r"""Estimate the accuracy on a target from its calibrated log-probabilities.

    .. math:: \hat p = (1 - w) \, \mathrm{AC} + w \, \mathrm{ATC}, \qquad
              \operatorname{var} = c^2 (p(1-p) + e) + (0.35 \, (\mathrm{AC} - \mathrm{ATC}))^2
              + (0.2 \, (\bar p - \hat p))^2 + (0.35 \, s)^2 + (\tfrac14 \delta)^2
              + \frac{p(1-p) + e}{n}

    where :math:`\bar p` and :math:`s` are mean and standard deviation of the accuracies on
    left-out sources, and :math:`\delta` is the `difference` of class shares. ATC counts less where
    the pool explains little of the left-out labels, and nothing where it explains none.
    """
    proba = np.exp(target)
    confidence = float(proba.max(axis=1).mean())
    accuracy = left_out.accuracy
    limit = _threshold(left_out)
    above = float((proba.max(axis=1) > limit).mean()) if accuracy < 1.0 else 1.0
    weight = _ATC_WEIGHT * float(np.clip(left_out.skill / _FULL_SKILL, 0.0, 1.0))
    p = (1.0 - weight) * confidence + weight * above
    noise = p * (1.0 - p) + _ALWAYS
    variance = (
        _SPREAD**2 * noise
        + (_DISAGREEMENT * (confidence - above)) ** 2
        + (_DISTANCE * (accuracy - p)) ** 2
        + (_FOLD_SPREAD * np.std(left_out.accuracies)) ** 2
        + (_SHARE_DIFFERENCE * difference) ** 2
        + noise / len(target)
    )
    half = norm.ppf(0.5 + level / 2.0) * np.sqrt(variance)
    return Estimate(p, max(0.0, p - half), min(1.0, p + half), confidence, above)


def _threshold(left_out: LeftOut) -> float:
    """Confidence above which as many left-out rows lie as are classified correctly."""
    held = np.concatenate([np.exp(part).max(axis=1) for part in left_out.logs])
    order = np.argsort(held, kind="stable")
    below = np.cumsum(np.concatenate(left_out.rows)[order]) / len(left_out.rows)
    place = np.searchsorted(below, 1.0 - left_out.accuracy + 1e-12)
    return float(held[order[min(int(place), len(held) - 1)]])


def add_labels(
    estimate: Estimate, confidences: Array, hits: NDArray[np.bool_], level: float
) -> Estimate:
    r"""Update an estimate by labeled target rows.

    .. math:: \hat p' = \hat p + \frac{m}{m + m_0} \; \frac1m \sum_{i=1}^m
              \bigl(\mathbf 1[\hat y_i = y_i] - (c_i + \hat p - \bar c)\bigr)

    The confidences :math:`c_i`, shifted from their mean :math:`\bar c` on the target to the
    estimate, already explain part of which rows are right, so a few labels go a long way.

    Parameters
    ----------
    estimate : Estimate
    confidences : ndarray of shape (m,)
        Of the labeled rows.
    hits : ndarray of shape (m,)
        Whether they are classified correctly.
    level : float
    """
    m = len(hits)
    expected = np.clip(confidences + estimate.accuracy - estimate.confidence, 0.0, 1.0)
    p = estimate.accuracy + m / (m + _LABELED_ROWS) * float((hits - expected).mean())
    p = float(np.clip(p, 0.0, 1.0))
    noise = p * (1.0 - p) + _ALWAYS
    before = (estimate.high - estimate.low) / 2.0
    half = min(before, norm.ppf(0.5 + level / 2.0) * np.sqrt(noise / (_LABELED_ROWS + m)))
    low, high = max(0.0, p - half), min(1.0, p + half)
    return replace(estimate, accuracy=p, low=low, high=high)


def estimate_from_labels(hits: NDArray[np.bool_], level: float) -> Estimate:
    """Estimate the accuracy from labeled target rows alone, by the posterior of a proportion.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._estimate import estimate_from_labels
    >>> estimate = estimate_from_labels(np.arange(20) < 15, 0.8)
    >>> round(estimate.accuracy, 2), round(estimate.low, 2), round(estimate.high, 2)
    (0.73, 0.6, 0.84)
    """
    right, wrong = float(hits.sum()) + 1.0, float((~hits).sum()) + 1.0
    low, high = beta.ppf([0.5 - level / 2.0, 0.5 + level / 2.0], right, wrong)
    p = right / (right + wrong)
    return Estimate(p, float(low), float(high), p, p)
