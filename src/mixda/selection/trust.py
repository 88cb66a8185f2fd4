"""How far to trust an adapted classifier whose target has no labels.

Everything here is learned from the sources in the role of the target, where the truth is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixda._core.validation import Array
from mixda.model import Trust as Trust

SOURCE_ONLY = "source only"  # the candidate that does not adapt

_POWERS = (-4.0, 4.0)  # logarithms between which the power of the probabilities is sought
_LEAST = 1e-12  # of a probability whose logarithm is taken
_SPREAD = 0.18  # of the estimate's error, in units of sqrt(p (1 - p)) ...
_SURE = 0.004  # ... with this added to p (1 - p), so that no estimate is without doubt
_OTHER_SHARES = 0.25  # of the samples would have to change their class


class Fold(NamedTuple):
    """What a committee says about some samples, and the truth where it is known.

    Attributes
    ----------
    proba : ndarray of shape (n, nc)
    votes : ndarray of shape (n_experts, n)
        Position of the class that each expert alone would choose.
    truth : ndarray of shape (n,) or None
    """

    proba: Array
    votes: NDArray[np.intp]
    truth: NDArray[np.int64] | None = None

    @property
    def accuracy(self) -> float:
        """Share of the samples that the committee has right."""
        return float(np.mean(self.proba.argmax(axis=1) == self.truth))

    @property
    def agreement(self) -> float:
        """Share of the experts that say what the committee says, on average over samples."""
        return float(np.mean(self.votes == self.proba.argmax(axis=1)))

    @property
    def confidence(self) -> Array:
        """Probability of the committee's answer, shape (n,)."""
        largest: Array = self.proba.max(axis=1)
        return largest

    def to_the(self, power: float) -> Fold:
        """Return the same with probabilities taken to a power and normalized again."""
        return self._replace(proba=_tempered(self.proba, power))


def fit_power(folds: Sequence[Fold]) -> float:
    r"""Power that makes probabilities right on average where the truth is known.

    .. math:: \min_a \; - \sum_\ell \frac{1}{n_\ell} \sum_i \log
              \frac{p(y_i \mid x_i)^a}{\sum_y p(y \mid x_i)^a}

    Every fold has the same say, however many samples it has.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection.trust import Fold, fit_power
    >>> says = np.tile([0.99, 0.01], (10, 1))
    >>> truth = np.repeat([0, 1], [8, 2])
    >>> fold = Fold(says, truth[None], truth)  # says 99 %, is right on 80 %
    >>> round(float(fold.to_the(fit_power([fold])).confidence[0]), 2)
    0.8
    """
    from scipy.optimize import minimize_scalar

    def loss(log_power: float) -> float:
        losses = []
        for fold in folds:
            proba = _tempered(fold.proba, np.exp(log_power))
            right = proba[np.arange(len(proba)), fold.truth]
            losses.append(-np.log(np.maximum(right, _LEAST)).mean())
        return float(np.mean(losses))

    return float(np.exp(minimize_scalar(loss, bounds=_POWERS, method="bounded").x))


def estimate_accuracy(folds: Sequence[Fold], target: Fold) -> float:
    r"""Estimate the accuracy on a target without labels from folds with labels.

    The mean of three estimates: the share of the target that is more confident than a threshold,
    set so that on the folds this share is the accuracy [1]_; the mean accuracy of the folds,
    moved by the difference of mean confidence [2]_; and, if there are several experts, how much
    they agree.

    Parameters
    ----------
    folds : sequence of Fold
        With truth, and with tempered probabilities.
    target : Fold

    Returns
    -------
    float

    References
    ----------
    .. [1] S. Garg et al., "Leveraging unlabeled data to predict out-of-distribution
       performance", ICLR 2022.
    .. [2] D. Guillory et al., "Predicting with confidence on unseen distributions", ICCV 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection.trust import Fold, estimate_accuracy
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> fold = Fold(proba, proba.argmax(axis=1)[None], np.array([0, 0, 1, 1]))  # 75 % right
    >>> round(estimate_accuracy([fold], fold), 3)
    0.75
    """
    accuracy = float(np.mean([fold.accuracy for fold in folds]))
    confident = np.concatenate([fold.confidence for fold in folds])
    threshold = np.quantile(confident, 1.0 - accuracy, method="lower")
    above = float(np.mean(target.confidence > threshold)) if accuracy < 1 else 1.0
    shift = target.confidence.mean() - np.mean([fold.confidence.mean() for fold in folds])
    estimates = [above, accuracy + shift]
    if len(target.votes) > 1:  # one alone always agrees with itself
        estimates.append(target.agreement)
    return float(np.mean(np.clip(estimates, 0.0, 1.0)))


def interval(accuracy: float, level: float, n_samples: int) -> tuple[float, float]:
    r"""Interval around an accuracy :math:`p` that was estimated for a target of n samples.

    .. math:: \pm z \, \sqrt{(c^2 + 1/n) \, (p(1-p) + e)}

    The constants are from leave-one-domain-out experiments; ``benchmarks/selection.py`` checks
    how often the truth lies inside.

    Examples
    --------
    >>> from mixda.selection.trust import interval
    >>> low, high = interval(0.9, 0.8, 1000)
    >>> round(low, 2), round(high, 2)
    (0.83, 0.97)
    >>> round(interval(0.9, 0.8, 5)[0], 2)
    0.71
    """
    from scipy.stats import norm

    variance = (_SPREAD**2 + 1.0 / n_samples) * (accuracy * (1.0 - accuracy) + _SURE)
    half = norm.ppf(0.5 + level / 2.0) * np.sqrt(variance)
    return max(0.0, float(accuracy - half)), min(1.0, float(accuracy + half))


def explain_choice(
    scores: Mapping[str, float], choice: str, left_out: bool, only_proportions: bool
) -> str:
    """Say in a sentence which candidate was taken and why.

    Parameters
    ----------
    scores : mapping of str to float
        Mean accuracy of each candidate, the sources' own classifier among them.
    choice : str
    left_out : bool
        Whether scores are from left-out sources, else from the way back to the sources.
    only_proportions : bool
        Whether adaptation was declined because only the classes' proportions differ.

    Examples
    --------
    >>> from mixda.selection.trust import explain_choice
    >>> explain_choice({"a": 0.9, "source only": 0.8}, "a", True, False)
    "Adapted (a): on left-out sources it was right on 90.0%, the sources' own classifier on 80.0%."
    """
    where = "on left-out sources" if left_out else "on the way back to the sources"
    alone = scores[SOURCE_ONLY]
    if only_proportions:
        return (
            "Adaptation was declined: the target looks like the sources, only with other "
            f"proportions of the classes; {where} the sources' own classifier was right on "
            f"{alone:.1%}."
        )
    if choice == SOURCE_ONLY:
        rival = max(score for name, score in scores.items() if name != SOURCE_ONLY)
        return (
            f"Adaptation was declined: {where} the sources' own classifier was right on "
            f"{alone:.1%}, the best adapted one on {rival:.1%}."
        )
    return (
        f"Adapted ({choice}): {where} it was right on {scores[choice]:.1%}, the sources' own "
        f"classifier on {alone:.1%}."
    )


def explain_shares(
    classes: Sequence[Any], adapted: NDArray[np.intp], alone: NDArray[np.intp]
) -> str:
    """Say where the adapted classifier and the sources' own see quite other shares of classes.

    Parameters
    ----------
    classes : sequence of nc names
    adapted, alone : ndarrays of shape (n,) and (m,)
        Positions of the classes that each of them gives to samples of the target.

    Returns
    -------
    str
        Empty if the shares differ by no more than a quarter of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection.trust import explain_shares
    >>> print(explain_shares(["ok", "worn"], np.array([0, 1]), np.array([0, 0])))
    But it finds 50% 'ok' in the target where the sources' own classifier finds 100%: if the truth
    is nearer to the latter, adaptation does harm.
    """
    here, there = (np.bincount(a, minlength=len(classes)) / len(a) for a in (adapted, alone))
    if np.abs(here - there).sum() / 2.0 <= _OTHER_SHARES:
        return ""
    k = int(np.abs(here - there).argmax())
    return (
        f"But it finds {here[k]:.0%} {str(classes[k])!r} in the target where the sources' own "
        f"classifier finds {there[k]:.0%}: if the truth is nearer to the latter, adaptation does "
        "harm."
    )


def _tempered(proba: Array, power: float) -> Array:
    logs = power * np.log(np.maximum(proba, _LEAST))
    scaled = np.exp(logs - logs.max(axis=1, keepdims=True))
    tempered: Array = scaled / scaled.sum(axis=1, keepdims=True)
    return tempered
