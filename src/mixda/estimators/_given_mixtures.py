"""The mixtures that `fit_mixtures` is given: their features, their classes, their masses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda.mixture import SHARES, Mixture, class_shares
from mixda.transport import align_labels


def common_names(mixtures: list[Mixture]) -> tuple[str, ...] | None:
    """Return the feature names of the mixtures in the order of the first; None without names."""
    names = [p.feature_names for p in mixtures]
    if all(name is None for name in names):
        return None
    if any(name is None for name in names):
        without = _name(mixtures, [name is None for name in names].index(True))
        raise MixdaError(
            f"{without} has no feature names, but other mixtures have; name the features of all "
            "(dataclasses.replace(mixture, feature_names=...)) or of none."
        )
    for i, other in enumerate(names):
        different = set(names[0] or ()) ^ set(other or ())
        if different:
            raise MixdaError(
                f"{_name(mixtures, i)} has other features than {_name(mixtures, 0)} (one of them "
                f"lacks {sorted(different)[0]!r}); fit all mixtures to the same columns."
            )
    return names[0]


def unite_classes(sources: list[Mixture]) -> tuple[NDArray[Any], list[Mixture]]:
    """Return the sorted classes of all sources, and the sources with labels over these."""
    for i, p in enumerate(sources):
        if not p.is_labeled:
            raise MixdaError(
                f"{_name([*sources, p], i)} has no labels; fit it with fit_labeled_mixture."
            )
    if not sources:
        raise MixdaError("fit_mixtures needs at least one source mixture, got none.")
    labels, classes = align_labels(sources)
    order = np.argsort(classes)
    if len(classes) < 2:
        raise MixdaError(
            f"the sources have one class only ({classes.tolist()[0]!r}); a classifier needs at "
            "least two classes."
        )
    united = [
        replace(
            p, labels=np.asarray(v)[:, order], classes=classes[order], info=_info(p, classes[order])
        )
        for p, v in zip(sources, labels, strict=True)
    ]
    return classes[order], united


def _info(mixture: Mixture, classes: NDArray[Any]) -> dict[str, Any]:
    """Return `info` of a mixture with its class proportions in the order of `classes`."""
    if SHARES not in mixture.info:
        return mixture.info
    shares = dict(zip(np.asarray(mixture.classes).tolist(), class_shares(mixture), strict=True))
    return {**mixture.info, SHARES: [float(shares.get(k, 0.0)) for k in classes.tolist()]}


def balanced(mixture: Mixture) -> Mixture:
    """Give all classes that occur the same mass: those of the target may differ."""
    labels, shares = np.asarray(mixture.labels), mixture.class_proportions
    if np.ptp(shares[shares > 0]) < 1e-12:  # unchanged to the bit
        return mixture
    weights = mixture.weights * (labels[:, shares > 0] @ (1.0 / shares[shares > 0]))
    info = {**mixture.info, SHARES: shares.tolist()}  # for the report
    return replace(mixture, weights=weights / weights.sum(), info=info)


def _name(mixtures: list[Mixture], i: int) -> str:
    """Return the name of a mixture for error messages; the last is the target."""
    role = "the target" if i == len(mixtures) - 1 else f"source {i}"
    given = mixtures[i].info.get("name")
    return f"{role} ({given})" if given else role
