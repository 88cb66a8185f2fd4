"""Facts about mixtures that were fitted elsewhere: pooling, sample counts, class proportions.

`fit` takes these facts from samples; `fit_mixtures` has to take them from the mixtures.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixda._core.typing import Array
from mixda.mixture._exposure import SMALLEST_COMPONENT, smallest_component
from mixda.mixture._mixture import Mixture

SHARES = "class_shares"  # key in `info`: class proportions in the order of the classes

_MAX_FLOOR_RATIO = (
    1e-2  # to the mean deviation; a floor is 1e-3, but class weights may change later
)


def pool_mixtures(mixtures: list[Mixture]) -> Mixture:
    """Return one mixture of all, weighted by their numbers of samples if all are known."""
    if len(mixtures) == 1:
        return mixtures[0]
    sizes = [count_samples(p) for p in mixtures]
    shares = np.array([1.0 if None in sizes else size for size in sizes], dtype=np.float64)
    weights = np.concatenate(
        [share * p.weights for share, p in zip(shares / shares.sum(), mixtures, strict=True)]
    )
    labels = [p.labels for p in mixtures]
    info: dict[str, Any] = {} if None in sizes else {"n_samples": int(shares.sum())}
    counts = [smallest_component(p) for p in mixtures]
    if None not in counts:
        info[SMALLEST_COMPONENT] = min(counts)  # type: ignore[type-var]
    if any(SHARES in p.info for p in mixtures):
        info[SHARES] = (shares / shares.sum() @ [class_shares(p) for p in mixtures]).tolist()
    return Mixture(
        weights / weights.sum(),
        np.vstack([p.means for p in mixtures]),
        np.vstack([p.stds for p in mixtures]),
        None if any(v is None for v in labels) else np.vstack(labels),  # type: ignore[arg-type]
        mixtures[0].classes,
        mixtures[0].feature_names,
        info,
    )


def count_samples(mixture: Mixture) -> int | None:
    """Return the number of samples that a mixture was fitted to, or None if unknown."""
    n = mixture.info.get("n_samples")
    return n if isinstance(n, int) and n > 0 else None


def class_shares(mixture: Mixture) -> Array:
    """Return the proportion of each class among the samples of a labeled mixture, shape (nc,).

    This is the weight of the class, unless `info` records the proportions before balancing.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from mixda import Mixture
    >>> from mixda.mixture import class_shares
    >>> labels = [[1.0, 0.0], [0.0, 1.0]]
    >>> p = Mixture([0.5, 0.5], [[0.0], [1.0]], [[1.0], [1.0]], labels, ["ok", "fault"])
    >>> class_shares(p)
    array([0.5, 0.5])
    >>> class_shares(replace(p, info={"class_shares": [0.9, 0.1]}))
    array([0.9, 0.1])
    """
    weights = mixture.class_proportions
    try:
        recorded = np.array(mixture.info.get(SHARES), dtype=np.float64)
    except (TypeError, ValueError):  # the key has another meaning in this file
        return weights
    valid = recorded.shape == weights.shape and bool(
        np.all(recorded >= 0) and np.isclose(recorded.sum(), 1)
    )
    return recorded if valid else weights


def without_floor(mixture: Mixture) -> Mixture:
    """Return the mixture with zero deviations for constant features, undoing the floor of the fit.

    A constant feature is narrow and identical in all components. A feature that is only narrow may
    have a larger unit, so a single component cannot tell.
    """
    if mixture.n_components == 1:
        return mixture
    mean, std = mixture.moments()
    rounding = 1e-6 * std + 1e-12 * np.abs(mean)
    constant = (std <= _MAX_FLOOR_RATIO * std.mean()) & (np.ptp(mixture.means, axis=0) <= rounding)
    constant &= np.ptp(mixture.stds, axis=0) <= rounding
    return replace(mixture, stds=np.where(constant, 0.0, mixture.stds))
