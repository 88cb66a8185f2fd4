"""Mixtures that were fitted elsewhere: several as one, and constant features as they were.

What `fit` takes from the samples of the domains, `fit_mixtures` has to take from these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixda._core.validation import Array
from mixda.mixture._mixture import Mixture

SHARES = "class_shares"  # entry of `info`, in the order of the classes

_NARROW = 1e-2  # of the mean deviation: a floor is 1e-3, but class masses may have changed since


def pool_mixtures(mixtures: list[Mixture]) -> Mixture:
    """Return all mixtures as one, by their numbers of samples if all are known, else evenly."""
    if len(mixtures) == 1:
        return mixtures[0]
    sizes = [count_samples(p) for p in mixtures]
    shares = np.array([1.0 if None in sizes else size for size in sizes], dtype=np.float64)
    weights = np.concatenate(
        [share * p.weights for share, p in zip(shares / shares.sum(), mixtures, strict=True)]
    )
    labels = [p.labels for p in mixtures]
    info: dict[str, Any] = {} if None in sizes else {"n_samples": int(shares.sum())}
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
    """Return how many samples a mixture was fitted to, if it says so."""
    n = mixture.info.get("n_samples")
    return n if isinstance(n, int) and n > 0 else None


def class_shares(mixture: Mixture) -> Array:
    """Return the share of each class among the samples of a labeled mixture, shape (nc,).

    That is the mass of the class, unless the mixture notes the shares of before it was balanced.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from mixda import Mixture
    >>> from mixda.mixture._pool import class_shares
    >>> labels = [[1.0, 0.0], [0.0, 1.0]]
    >>> p = Mixture([0.5, 0.5], [[0.0], [1.0]], [[1.0], [1.0]], labels, ["ok", "fault"])
    >>> class_shares(p)
    array([0.5, 0.5])
    >>> class_shares(replace(p, info={"class_shares": [0.9, 0.1]}))
    array([0.9, 0.1])
    """
    shares = mixture.class_proportions
    try:
        noted = np.array(mixture.info.get(SHARES), dtype=np.float64)
    except (TypeError, ValueError):  # whoever wrote the file meant something else
        return shares
    known = noted.shape == shares.shape and bool(np.all(noted >= 0) and np.isclose(noted.sum(), 1))
    return noted if known else shares


def without_floor(mixture: Mixture) -> Mixture:
    """Return the mixture without spread where its samples had none, which a fit lifts to a floor.

    Such a feature is narrow and the same in all components. One that is only narrow may be one in
    a larger unit: a single component cannot tell.
    """
    if mixture.n_components == 1:
        return mixture
    mean, std = mixture.moments()
    rounding = 1e-6 * std + 1e-12 * np.abs(mean)
    constant = (std <= _NARROW * std.mean()) & (np.ptp(mixture.means, axis=0) <= rounding)
    constant &= np.ptp(mixture.stds, axis=0) <= rounding
    return replace(mixture, stds=np.where(constant, 0.0, mixture.stds))
