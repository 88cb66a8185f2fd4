"""Whether a target differs from the sources by nothing but the proportions of its classes.

Then there is nothing to adapt, and transport between domains of unequal proportions does harm: it
carries the surplus of one class to another. Left-out sources cannot show this where their own
proportions are alike, so the target is looked at, without labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from mixda._validation import Array
from mixda.em import fit_labeled_mixture
from mixda.estimators._base import Source, pool, std_floor
from mixda.estimators._mixtures import train_rough
from mixda.mixture import Mixture, log_gaussians

_SKEWED = 0.25  # total variation between the classes' shares; among balanced sources it is 0.1
_TYPICAL = 0.2  # mean rank; 0.5 without any shift, fewer samples than features make it 0.3
_SURE = 0.9  # mean confidence of the sources' classifier; a shift mostly makes it unsure


class Likeness(NamedTuple):
    """How much a target looks like the sources.

    Attributes
    ----------
    skew : float
        Total variation between the shares of the classes in the sources and those that the
        sources' classifier sees in the target.
    typicality : float
        Mean rank of the target's samples among held-out source samples of the same apparent
        class, by the sources' density of that class: about 0.5 if they are the same, 0 if the
        target is elsewhere.
    confidence : float
        Mean confidence of the sources' classifier on the target.
    """

    skew: float
    typicality: float
    confidence: float

    @property
    def only_proportions(self) -> bool:
        """Whether proportions differ and nothing else does."""
        return self.skew > _SKEWED and self.typicality > _TYPICAL and self.confidence > _SURE


def compare_to_sources(
    sources: Sequence[Source], target: Array, n_classes: int, rng: np.random.Generator
) -> Likeness:
    """Look at a target in one space with its sources, without labels of the target.

    Parameters
    ----------
    sources : sequence of (samples, classes as integers)
    target : ndarray of shape (n, d)
    n_classes : int
    rng : numpy generator

    Returns
    -------
    Likeness

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection.proportions import compare_to_sources
    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat([0, 1], 100)
    >>> draw = lambda codes: rng.normal(size=(len(codes), 2)) + 6 * codes[:, None]
    >>> sources = [(draw(codes), codes), (draw(codes), codes)]
    >>> healthy = draw(np.zeros(100, dtype=int))
    >>> compare_to_sources(sources, healthy, 2, rng).only_proportions
    True
    >>> compare_to_sources(sources, healthy + 3, 2, rng).only_proportions
    False
    """
    head = train_rough(*pool(list(sources)))
    proba = head.predict_proba(target)
    seen = np.zeros(n_classes)
    seen[head.classes_] = proba.mean(axis=0)
    shares = np.mean([np.bincount(c, minlength=n_classes) / len(c) for _, c in sources], axis=0)
    return Likeness(
        skew=float(0.5 * np.abs(seen - shares).sum()),
        typicality=_typicality(sources, target, n_classes, rng),
        confidence=float(proba.max(axis=1).mean()),
    )


def _typicality(
    sources: Sequence[Source], target: Array, n_classes: int, rng: np.random.Generator
) -> float:
    fitted, held = [], []
    samples = [Z for Z, _ in sources]
    floor = std_floor([Z.var(axis=0) for Z in samples], max(np.abs(Z).max() for Z in samples))
    for Z, codes in sources:
        first, second = np.array_split(rng.permutation(len(Z)), 2)
        fitted.append(
            fit_labeled_mixture(
                Z[first],
                codes[first],
                classes=np.arange(n_classes),
                min_std=floor,
                random_state=rng,
            )
        )
        held.append(Z[second])
    known, unknown = _densities(fitted, np.vstack(held)), _densities(fitted, target)
    own, theirs = known.argmax(axis=1), unknown.argmax(axis=1)
    ranks = np.zeros(len(target))
    for k in np.unique(theirs):
        scale = np.sort(known[own == k, k])
        if len(scale):
            ranks[theirs == k] = np.searchsorted(scale, unknown[theirs == k, k]) / len(scale)
    return float(ranks.mean())


def _densities(mixtures: Sequence[Mixture], Z: Array) -> Array:
    """Log-density of every class, in the source where it is largest, shape (n, nc)."""
    labels = [np.asarray(mixture.labels) for mixture in mixtures]
    largest = np.full((len(Z), labels[0].shape[1]), -np.inf)
    for mixture, given in zip(mixtures, labels, strict=True):
        joint = log_gaussians(Z, mixture.means, mixture.stds) + np.log(mixture.weights)
        classes = given.argmax(axis=1)
        for k in np.unique(classes):
            own = classes == k
            density = logsumexp(joint[:, own], axis=1) - np.log(mixture.weights[own].sum())
            largest[:, k] = np.maximum(largest[:, k], density)
    return largest
