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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from scipy.stats import norm

from mixda._core.validation import Array
from mixda.selection._pool import Fold, combine, fit_weights

_SPREAD = 0.17  # of the error, in units of the standard deviation of one answer
_ALWAYS = 0.01  # added to p (1 - p), so that no estimate is without doubt
_DISAGREEMENT = 0.5  # of AC and ATC, that counts as a standard deviation
_DISTANCE = 0.3  # of the estimate to the left-out accuracy, that counts as one
_FOLD_SPREAD = 0.5  # of the standard deviation between left-out sources
_SHARE_DIFFERENCE = 0.25  # of the difference of class shares
_FULL_SKILL = 0.2  # of the entropy explained, from which on ATC has its full weight
_ATC_WEIGHT = 0.5
_LABELED_ROWS = 15  # that the estimate counts for beside labeled target rows


@dataclass(frozen=True)
class LeftOut:
    """What a pool says about left-out sources when its weights were learned on the others."""

    logs: list[Array]  # of each fold, (n, nc), calibrated
    truth: list[NDArray[np.intp]]
    power: float  # that calibrates them

    @property
    def accuracies(self) -> list[float]:
        """Accuracy on each left-out source."""
        return [
            float((logs.argmax(axis=1) == truth).mean())
            for logs, truth in zip(self.logs, self.truth, strict=True)
        ]

    @property
    def accuracy(self) -> float:
        """Mean accuracy over left-out sources."""
        return float(np.mean(self.accuracies))

    @property
    def skill(self) -> float:
        """Share explained of the log-loss that other sources' class shares have; 0 is chance."""
        n_classes = self.logs[0].shape[1]
        shares = [np.bincount(known, minlength=n_classes) / len(known) for known in self.truth]
        losses, chances = [], []
        for k, (logs, known) in enumerate(zip(self.logs, self.truth, strict=True)):
            others = [share for j, share in enumerate(shares) if j != k] or [shares[k]]
            prior = (np.mean(others, axis=0) + 0.01) / (1.0 + 0.01 * n_classes)
            losses.append(-logs[np.arange(len(known)), known].mean())
            chances.append(-np.log(prior[known]).mean())
        return 1.0 - float(np.mean(losses) / np.mean(chances))


@dataclass(frozen=True)
class Estimate:
    """An estimated accuracy, its interval, and the ingredients."""

    accuracy: float
    low: float
    high: float
    confidence: float
    threshold: float


def cross_fit(folds: Sequence[Fold]) -> LeftOut:
    """Judge a pool on each fold with weights from the others; calibrate it by one power."""
    logs = []
    for k, fold in enumerate(folds):
        others = [other for j, other in enumerate(folds) if j != k] or [fold]
        logs.append(combine(fit_weights(others), fold.logs))
    truth = [fold.truth for fold in folds]
    power = fit_power(logs, truth)
    return LeftOut([temper(part, power) for part in logs], truth, power)


def temper(logs: Array, power: float) -> Array:
    """Return log-probabilities taken to a power and normalized again."""
    tempered: Array = log_softmax(power * logs, axis=1)
    return tempered


def fit_power(logs: Sequence[Array], truth: Sequence[NDArray[np.intp]]) -> float:
    r"""Power that makes probabilities right on average where the truth is known.

    .. math:: \min_a \; - \sum_\ell \frac{1}{n_\ell} \sum_i \log
              \frac{p(y_i \mid x_i)^a}{\sum_y p(y \mid x_i)^a}

    Every fold has the same say, however many samples it has.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._estimate import fit_power, temper
    >>> logs = np.log(np.tile([0.99, 0.01], (10, 1)))
    >>> truth = np.repeat([0, 1], [8, 2])  # says 99 %, is right on 80 %
    >>> round(float(np.exp(temper(logs, fit_power([logs], [truth])))[0, 0]), 2)
    0.8
    """
    from scipy.optimize import minimize_scalar

    def loss(log_power: float) -> float:
        losses = [
            -temper(part, np.exp(log_power))[np.arange(len(known)), known].mean()
            for part, known in zip(logs, truth, strict=True)
        ]
        return float(np.mean(losses))

    return float(np.exp(minimize_scalar(loss, bounds=(-4.0, 2.0), method="bounded").x))


def estimate_accuracy(
    left_out: LeftOut, target: Array, level: float, difference: float = 0.0
) -> Estimate:
    r"""Estimate the accuracy on a target from its calibrated log-probabilities.

    .. math:: \hat p = (1 - w) \, \mathrm{AC} + w \, \mathrm{ATC}, \qquad
              \operatorname{var} = c^2 (p(1-p) + e) + (\tfrac12 (\mathrm{AC} - \mathrm{ATC}))^2
              + (0.3 \, (\bar p - \hat p))^2 + (\tfrac12 s)^2 + (\tfrac14 \delta)^2
              + \frac{p(1-p) + e}{n}

    where :math:`\bar p` and :math:`s` are mean and standard deviation of the accuracies on
    left-out sources, and :math:`\delta` is the `difference` of class shares. ATC counts less where
    the pool explains little of the left-out labels, and nothing where it explains none.
    """
    proba = np.exp(target)
    confidence = float(proba.max(axis=1).mean())
    held = np.concatenate([np.exp(part).max(axis=1) for part in left_out.logs])
    accuracy = left_out.accuracy
    limit = np.quantile(held, 1.0 - accuracy, method="lower")
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


def add_labels(estimate: Estimate, hits: int, n: int, level: float) -> Estimate:
    """Update an estimate by labeled target rows, of which `hits` of `n` were right."""
    p = (_LABELED_ROWS * estimate.accuracy + hits) / (_LABELED_ROWS + n)
    noise = p * (1.0 - p) + _ALWAYS
    before = (estimate.high - estimate.low) / 2.0
    half = min(before, norm.ppf(0.5 + level / 2.0) * np.sqrt(noise / (_LABELED_ROWS + n)))
    low, high = max(0.0, p - half), min(1.0, p + half)
    return Estimate(p, low, high, estimate.confidence, estimate.threshold)
