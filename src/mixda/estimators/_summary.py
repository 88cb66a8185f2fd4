"""One Gaussian per class: what a model remembers of a domain if its method fits no mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.typing import Array, Codes, Source
from mixda.em import fit_labeled_mixture
from mixda.estimators.utils import std_floor
from mixda.mixture import MIN_COMPONENT_ROWS, Mixture


def summarize_domains(
    sources: Sequence[Source], target: Source, classes: NDArray[Any]
) -> tuple[list[Mixture], Mixture]:
    """Return a labeled mixture of each source, and the mixture of the target without its labels.

    The codes of `target` are predicted.
    """
    domains = [Z for Z, _ in (*sources, target)]
    largest = max(np.abs(Z).max() for Z in domains)
    floor = std_floor([Z.var(axis=0) for Z in domains], largest)
    *mixtures, last = [class_gaussians(Z, codes, classes, floor) for Z, codes in (*sources, target)]
    return mixtures, replace(last, labels=None, classes=None)


def class_gaussians(Z: Array, codes: Codes, classes: NDArray[Any], floor: Array) -> Mixture:
    """Return one Gaussian per class; classes of too few rows share one with the nearest class.

    A shared component has the proportions of its classes as its label. So no mean of the mixture
    averages fewer than five rows, unless the domain has fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.estimators._summary import class_gaussians
    >>> Z, codes = np.arange(12.0)[:, None], np.repeat([0, 1, 2], [5, 6, 1])
    >>> class_gaussians(Z, codes, np.array(["a", "b", "c"]), np.array([0.1])).labels.round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.86, 0.14]])
    """
    group_of = _group_rare_classes(Z, codes, len(classes))
    mixture = fit_labeled_mixture(
        Z,
        group_of[codes],
        1,
        class_prior="empirical",
        classes=np.arange(len(classes)),
        min_std=floor,
        random_state=0,
    )
    groups = np.asarray(mixture.labels).argmax(axis=1)
    counts = np.bincount(codes, minlength=len(classes)) * (group_of == groups[:, None])
    labels = counts / counts.sum(axis=1, keepdims=True)
    return replace(mixture, labels=labels, classes=classes)


def _group_rare_classes(Z: Array, codes: Codes, n_classes: int) -> Codes:
    """Return the group of each class: its own, or that of the nearest class if it is too small."""
    group_of = np.arange(n_classes)
    while True:
        groups = group_of[codes]
        present, counts = np.unique(groups, return_counts=True)
        equal = [np.ptp(Z[groups == k], axis=0).max() == 0.0 for k in present]
        sizes = np.where(equal, np.minimum(counts, 1), counts)
        if len(present) == 1 or sizes.min() >= MIN_COMPONENT_ROWS:
            return group_of
        means = np.array([Z[groups == k].mean(axis=0) for k in present])
        rarest = int(sizes.argmin())
        distances = ((means - means[rarest]) ** 2).sum(axis=1)
        distances[rarest] = np.inf
        group_of[group_of == present[rarest]] = present[distances.argmin()]
