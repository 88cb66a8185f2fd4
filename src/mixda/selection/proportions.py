"""Whether a target differs from the sources by nothing but the proportions of its classes.

Then there is nothing to adapt, and transport between domains of unequal proportions does harm: it
carries the surplus of one class to another. Held-out sources cannot show this where their own
proportions are alike, so the target is looked at, without labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from mixda._core.typing import Array, Codes, Source
from mixda.em import fit_labeled_mixture
from mixda.estimators import train_rough
from mixda.estimators.utils import head_proba, pool, std_floor
from mixda.mixture import Mixture, log_gaussians

_SKEWED = 0.25  # total variation between the classes' shares; among balanced sources it is 0.1
_TYPICAL = 0.35  # mean rank; 0.5 without any shift, few samples of many features make it 0.4
_UNSURE = 0.025  # less confident than on the sources: a shift mostly costs 0.03 to 0.15


class ShiftDiagnosis(NamedTuple):
    """How much a target looks like the sources.

    Attributes
    ----------
    skew : float
        Total variation between the shares of the classes in the sources and those that the
        sources' classifier sees in the target.
    typicality : float
        Mean rank of the target's samples among held-out source samples of the same apparent
        source and class, by the density of that class there: about 0.5 if they are the same, 0 if
        the target is elsewhere.
    confidence : float
        Mean confidence of the sources' classifier on the target.
    usual : float
        Its mean confidence on held-out source samples of the same apparent classes. Where classes
        overlap it is low on both.
    """

    skew: float
    typicality: float
    confidence: float
    usual: float

    @property
    def only_proportions(self) -> bool:
        """Whether proportions differ and nothing else does."""
        return (
            self.skew > _SKEWED
            and self.typicality > _TYPICAL
            and self.confidence > self.usual - _UNSURE
        )


def diagnose_shift(
    sources: Sequence[Source], target: Array, n_classes: int, rng: np.random.Generator
) -> ShiftDiagnosis:
    """Look at a target in one space with its sources, without labels of the target.

    Parameters
    ----------
    sources : sequence of (samples, classes as integers)
    target : ndarray of shape (n, d)
    n_classes : int
    rng : numpy generator

    Returns
    -------
    ShiftDiagnosis

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection.proportions import diagnose_shift
    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat([0, 1], 100)
    >>> draw = lambda codes: rng.normal(size=(len(codes), 2)) + 6 * codes[:, None]
    >>> sources = [(draw(codes), codes), (draw(codes), codes)]
    >>> healthy = draw(np.zeros(100, dtype=int))
    >>> diagnose_shift(sources, healthy, 2, rng).only_proportions
    True
    >>> diagnose_shift(sources, healthy + 3, 2, rng).only_proportions
    False
    """
    seen = head_proba(train_rough(*pool(list(sources))), target, n_classes).mean(axis=0)
    shares = np.mean([np.bincount(c, minlength=n_classes) / len(c) for _, c in sources], axis=0)
    skew = float(0.5 * np.abs(seen - shares).sum())
    divisible = [source for source in sources if len(source[0]) > 1]
    if not divisible:
        return ShiftDiagnosis(skew, typicality=0.0, confidence=0.0, usual=1.0)
    samples = [Z for Z, _ in divisible]
    floor = std_floor([Z.var(axis=0) for Z in samples], max(np.abs(Z).max() for Z in samples))
    one, other = zip(*(_halves(*source, rng) for source in divisible), strict=True)
    looks = []
    for known, held in ((one, other), (other, one)):
        mixtures = [
            fit_labeled_mixture(
                *source, classes=np.arange(n_classes), min_std=floor, random_state=rng
            )
            for source in known
        ]
        rows = np.vstack([Z for Z, _ in held])
        head = train_rough(*pool(list(known)))
        typicality = _typicality(_densities(mixtures, rows), _densities(mixtures, target))
        looks.append(
            (typicality, *_confidence(head.predict_proba(rows), head.predict_proba(target)))
        )
    return ShiftDiagnosis(skew, *(float(value) for value in np.mean(looks, axis=0)))


def _halves(Z: Array, codes: Codes, rng: np.random.Generator) -> list[Source]:
    return [(Z[rows], codes[rows]) for rows in np.array_split(rng.permutation(len(Z)), 2)]


def _typicality(held: Array, target: Array) -> float:
    """Mean rank of the target's largest density among those of held-out rows in that column."""
    own, theirs = held.argmax(axis=1), target.argmax(axis=1)
    ranks = np.zeros(len(target))
    for k in np.unique(theirs):
        scale = np.sort(held[own == k, k])
        if len(scale):
            ranks[theirs == k] = np.searchsorted(scale, target[theirs == k, k]) / len(scale)
    return float(ranks.mean())


def _confidence(held: Array, target: Array) -> tuple[float, float]:
    """Mean confidence on the target, and on held-out rows in the target's apparent proportions.

    An answer that no held-out row got counts as one to be sure of.
    """
    own, theirs = held.argmax(axis=1), target.argmax(axis=1)
    usual = np.ones(held.shape[1])
    for k in np.unique(own):
        usual[k] = held[own == k, k].mean()
    return float(target.max(axis=1).mean()), float(usual[theirs].mean())


def _densities(mixtures: Sequence[Mixture], Z: Array) -> Array:
    """Log-density of every class of every source, -inf where it has none, shape (n, N nc)."""
    blocks = []
    for mixture in mixtures:
        labels = np.asarray(mixture.labels)
        joint = log_gaussians(Z, mixture.means, mixture.stds) + np.log(mixture.weights)
        block = np.full((len(Z), labels.shape[1]), -np.inf)
        classes = labels.argmax(axis=1)
        for k in np.unique(classes):
            own = classes == k
            block[:, k] = logsumexp(joint[:, own], axis=1) - np.log(mixture.weights[own].sum())
        blocks.append(block)
    return np.hstack(blocks)
