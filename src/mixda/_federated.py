"""Mixtures that were fitted elsewhere: several as one, and constant features as they were.

What `fit` takes from the samples of the domains, `fit_mixtures` has to take from these.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixda.mixture import Mixture

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
    return Mixture(
        weights / weights.sum(),
        np.vstack([p.means for p in mixtures]),
        np.vstack([p.stds for p in mixtures]),
        None if any(v is None for v in labels) else np.vstack(labels),  # type: ignore[arg-type]
        mixtures[0].classes,
        mixtures[0].feature_names,
        {} if None in sizes else {"n_samples": int(shares.sum())},
    )


def count_samples(mixture: Mixture) -> int | None:
    """Return how many samples a mixture was fitted to, if it says so."""
    n = mixture.info.get("n_samples")
    return n if isinstance(n, int) and n > 0 else None


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
