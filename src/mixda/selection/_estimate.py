"""Accuracy on a target without labels, from held-out sources with labels.

Ingredients: the mean confidence of calibrated probabilities (AC), the share of rows above a
threshold of confidence that reproduces the accuracy on held-out sources (ATC) [1]_, and how much
less the members agree than on held-out sources [2]_. Their differences, the spread between held-out
sources and few target rows widen the interval.

References
----------
.. [1] S. Garg et al., "Leveraging unlabeled data to predict out-of-distribution performance",
   ICLR 2022.
.. [2] Y. Jiang et al., "Assessing generalization of SGD via disagreement", ICLR 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.stats import beta, norm

from mixda._core.typing import Array
from mixda.selection._pool import Fold, combine, fit_weights
from mixda.selection._shares import smooth_shares

_SPREAD = 0.12  # of the error, in units of the standard deviation of one answer
_ALWAYS = 0.01  # added to p (1 - p), so that no estimate is without doubt
_DIFFERENCE = 0.35  # of two ingredients, that counts as a standard deviation
_DISTANCE = 0.2  # of the estimate to the held-out accuracy, that counts as one
_FOLD_SPREAD = 0.35  # of the standard deviation between held-out sources
_SHARE_DIFFERENCE = 0.25  # of the difference of class proportions
_FULL_SKILL = 0.2  # of the entropy explained, from which on all ingredients have full weight
_ATC_WEIGHT = 0.5  # beside AC
_AGREEMENT_WEIGHT = 0.25  # beside AC and ATC
_LABELED_ROWS = 30  # that the estimate counts for beside labeled target rows


@dataclass(frozen=True)
class LeftOut:
    """What a pool says about held-out sources when its weights were learned on the others."""

    logs: list[Array]  # of each fold, (n, nc), calibrated
    truth: list[NDArray[np.intp]]
    rows: list[Array]  # share of each row in its fold
    power: float  # that calibrates them
    agreement: float  # mean share of rows on which a member answers as the pool does

    @property
    def accuracies(self) -> list[float]:
        """Accuracy on each held-out source, NaN where no row counts."""
        return [
            min(1.0, float(rows @ (logs.argmax(axis=1) == truth))) if rows.any() else np.nan
            for logs, truth, rows in zip(self.logs, self.truth, self.rows, strict=True)
        ]

    @property
    def accuracy(self) -> float:
        """Mean accuracy over held-out sources."""
        return float(np.nanmean(self.accuracies))

    @property
    def skill(self) -> float:
        """Share explained of the log-loss of other sources' class proportions; 0 is chance."""
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
    """An estimated accuracy and its interval."""

    accuracy: float
    low: float
    high: float


def left_out_logs(
    folds: Sequence[Fold], fit: Callable[[Sequence[Fold]], Array] = fit_weights
) -> list[Array]:
    """Return what a pool says about each fold with weights fitted to the others."""
    logs = []
    for k, fold in enumerate(folds):
        others = [other for j, other in enumerate(folds) if j != k] or [fold]
        logs.append(combine(fit(others), fold.logs))
    return logs


def calibrate(folds: Sequence[Fold], logs: Sequence[Array]) -> LeftOut:
    """Calibrate log-probabilities on held-out sources by one power."""
    truth, rows = [fold.truth for fold in folds], [fold.rows for fold in folds]
    power = fit_power(logs, truth, rows)
    agreements = [agreement(f.logs, part, f.rows) for f, part in zip(folds, logs, strict=True)]
    calibrated = [temper(part, power) for part in logs]
    return LeftOut(calibrated, truth, rows, power, float(np.mean(agreements)))


def agreement(members: Array, pool: Array, rows: Array | None = None) -> float:
    """Return the mean share of rows on which a member answers as the pool does.

    Parameters
    ----------
    members : ndarray of shape (n_members, n, nc)
    pool : ndarray of shape (n, nc)
    rows : ndarray of shape (n,), optional
        Share of each row; equal if None.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._estimate import agreement
    >>> pool = np.log([[0.9, 0.1], [0.4, 0.6]])
    >>> agreement(np.array([pool, np.log([[0.8, 0.2], [0.7, 0.3]])]), pool)
    0.75
    """
    same = (members.argmax(axis=2) == pool.argmax(axis=1)).mean(axis=0)
    return float(np.average(same, weights=rows))


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
    left_out: LeftOut, target: Array, agreed: float, level: float, difference: float = 0.0
) -> Estimate:
    r"""Estimate the accuracy on a target from its calibrated log-probabilities.

    .. math:: \hat p_0 = (1 - w) \, \mathrm{AC} + w \, \mathrm{ATC}, \qquad
              \hat p = (1 - v) \, \hat p_0 + v \, \mathrm{GDE}, \qquad
              \mathrm{GDE} = \bar p - \bar g + g

    .. math:: \operatorname{var} = c^2 (p(1-p) + e) + (0.35 \, (\mathrm{AC} - \mathrm{ATC}))^2
              + (0.35 \, (\hat p_0 - \mathrm{GDE}))^2
              + (0.2 \, (\bar p - \hat p))^2 + (0.35 \, s)^2 + (\tfrac14 \delta)^2
              + \frac{p(1-p) + e}{n}

    where :math:`\bar p` and :math:`s` are mean and standard deviation of the accuracies on
    held-out sources, :math:`\bar g` is the members' agreement there, and :math:`\delta` is the
    `difference` of class proportions. ATC and GDE count less where the pool explains little of the
    held-out labels, and nothing where it explains none.

    Parameters
    ----------
    left_out : LeftOut
    target : ndarray of shape (n, nc)
    agreed : float
        Agreement :math:`g` of the members on the target.
    level : float
        Of the interval.
    difference : float
    """
    proba = np.exp(target)
    confidence = float(proba.max(axis=1).mean())
    accuracy = left_out.accuracy
    limit = _threshold(left_out)
    above = float((proba.max(axis=1) > limit).mean()) if accuracy < 1.0 else 1.0
    by_agreement = float(np.clip(accuracy - left_out.agreement + agreed, 0.0, 1.0))
    evidence = float(np.clip(left_out.skill / _FULL_SKILL, 0.0, 1.0))
    by_confidence = confidence + evidence * _ATC_WEIGHT * (above - confidence)
    p = by_confidence + evidence * _AGREEMENT_WEIGHT * (by_agreement - by_confidence)
    noise = p * (1.0 - p) + _ALWAYS
    variance = (
        _SPREAD**2 * noise
        + (_DIFFERENCE * (confidence - above)) ** 2
        + (_DIFFERENCE * (by_confidence - by_agreement)) ** 2
        + (_DISTANCE * (accuracy - p)) ** 2
        + (_FOLD_SPREAD * np.nanstd(left_out.accuracies)) ** 2
        + (_SHARE_DIFFERENCE * difference) ** 2
        + noise / len(target)
    )
    half = norm.ppf(0.5 + level / 2.0) * np.sqrt(variance)
    return Estimate(p, max(0.0, p - half), min(1.0, p + half))


def _threshold(left_out: LeftOut) -> float:
    """Confidence above which as many held-out rows lie as are classified correctly.

    It is at most the held-out accuracy: where nearly all rows are classified correctly, that
    confidence is nearly one, and differences between such confidences mean nothing.
    """
    held = np.concatenate([np.exp(part).max(axis=1) for part in left_out.logs])
    order = np.argsort(held, kind="stable")
    rows = np.concatenate(left_out.rows)
    below = np.cumsum(rows[order]) / rows.sum()
    place = np.searchsorted(below, 1.0 - left_out.accuracy + 1e-12)
    return min(float(held[order[min(int(place), len(held) - 1)]]), left_out.accuracy)


def add_labels(
    estimate: Estimate, known: Array, unknown: Array, hits: NDArray[np.bool_], level: float
) -> Estimate:
    r"""Update an estimate by labeled target rows.

    .. math:: \hat p' = \hat p + \frac{m}{m + m_0} \; \frac1m \sum_{i=1}^m
              \bigl(\mathbf 1[\hat y_i = y_i] - (c_i + \hat p - \bar c)\bigr)

    The confidences :math:`c_i`, compared with their mean :math:`\bar c` on rows without a label,
    already explain part of which rows are right, so a few labels go a long way, and it does not
    matter whether they are of easy or of hard rows.

    Parameters
    ----------
    estimate : Estimate
    known, unknown : ndarray of shape (m,) and (n,)
        Confidences of a committee on labeled rows that it was not taught, and on rows without a
        label.
    hits : ndarray of shape (m,)
        Whether the labeled rows are classified correctly.
    level : float
    """
    m = len(hits)
    usual = float(unknown.mean()) if len(unknown) else float(known.mean())
    expected = np.clip(known + estimate.accuracy - usual, 0.0, 1.0)
    p = estimate.accuracy + m / (m + _LABELED_ROWS) * float((hits - expected).mean())
    p = float(np.clip(p, 0.0, 1.0))
    noise = p * (1.0 - p) + _ALWAYS
    before = (estimate.high - estimate.low) / 2.0
    half = min(before, norm.ppf(0.5 + level / 2.0) * np.sqrt(noise / (_LABELED_ROWS + m)))
    return Estimate(p, max(0.0, p - half), min(1.0, p + half))


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
    return Estimate(p, float(low), float(high))
