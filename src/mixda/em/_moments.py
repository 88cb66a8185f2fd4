"""Moments of samples, which add up: count, mean, spread, range and a few distinct rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixda._core.namespace import as_like, namespace, to_float64, to_numpy
from mixda._core.typing import Array
from mixda.mixture import VALUES_PER_STEP, has_gaps, rows_at_once

_ROWS_AT_ONCE = 256  # copied from a device, where most searches for distinct rows end


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, weight, mean and sum of squares around it, range, and a few distinct rows."""

    n: int
    weight: float
    observed: Array  # weight of the rows in which each feature has a value
    mean: Array
    squares: Array  # sum of weight times squared distance from the mean
    low: Array
    high: Array
    distinct: frozenset[bytes]  # at most as many per partition as were requested
    partition_counts: tuple[tuple[int, int], ...]  # (index of the partition, number of rows)
    heaviest: float = 1.0  # weight of a sample

    @property
    def spread(self) -> Array:
        """Standard deviation of each feature."""
        return np.asarray(np.sqrt(self.squares / np.where(self.observed > 0, self.observed, 1.0)))

    def completed(self, domain: Moments) -> Moments:
        """Return the moments with the domain's means of features that have no value here."""
        return replace(self, mean=np.where(self.observed > 0, self.mean, domain.mean))

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of samples; exact where both are constant and equal."""
        observed = self.observed + other.observed
        divisor = np.where(observed > 0, observed, 1.0)
        difference = other.mean - self.mean
        return Moments(
            self.n + other.n,
            self.weight + other.weight,
            observed,
            self.mean + difference * (other.observed / divisor),
            self.squares
            + other.squares
            + difference**2 * (self.observed * other.observed / divisor),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.distinct | other.distinct,
            self.partition_counts + other.partition_counts,
            max(self.heaviest, other.heaviest),
        )


def array_moments(
    x: Array, weight: Array | None, partition: int = 0, max_distinct: int = 0
) -> Moments:
    """Return the moments of samples in memory; those of torch and CuPy are read on their device.

    Weights are a numpy array.
    """
    xp, w = namespace(x), np.ones(len(x)) if weight is None else weight
    if has_gaps(x):
        return _moments_of_observed(to_float64(x), w, partition, max_distinct)
    first, own = x[0], as_like(w, x)
    step = max(1, VALUES_PER_STEP // x.shape[1]) if xp is np else rows_at_once(x, 1)
    slices = [slice(k, k + step) for k in range(0, len(x), step)]
    total = float(w.sum())
    mean = first + sum(own[rows] @ (x[rows] - first) for rows in slices) / total
    squares = sum(own[rows] @ xp.square(x[rows] - mean) for rows in slices)
    return Moments(
        len(x),
        total,
        np.full(x.shape[1], total),
        to_float64(mean),
        to_float64(squares),
        to_float64(xp.amin(x, axis=0)),
        to_float64(xp.amax(x, axis=0)),
        _distinct_rows(x, max_distinct),
        ((partition, len(x)),),
        float(w.max()),
    )


def _moments_of_observed(x: Array, w: Array, partition: int, max_distinct: int) -> Moments:
    """Return the moments of samples with missing values; without any value, a mean is zero."""
    missing = np.isnan(x)
    observed = w @ ~missing
    divisor = np.where(observed > 0, observed, 1.0)
    first = np.nan_to_num(x[(~missing).argmax(axis=0), np.arange(x.shape[1])])
    mean = first + w @ np.where(missing, 0.0, x - first) / divisor
    return Moments(
        len(x),
        float(w.sum()),
        observed,
        mean,
        w @ np.square(np.where(missing, 0.0, x - mean)),
        np.fmin.reduce(np.where(missing, np.inf, x), axis=0),
        np.fmax.reduce(np.where(missing, -np.inf, x), axis=0),
        _distinct_rows(x, max_distinct),
        ((partition, len(x)),),
        float(w.max()),
    )


def _distinct_rows(x: Array, max_distinct: int) -> frozenset[bytes]:
    distinct: set[bytes] = set()
    for start in range(0, len(x) if max_distinct else 0, _ROWS_AT_ONCE):
        for row in to_numpy(x[start : start + _ROWS_AT_ONCE]):
            distinct.add((row + 0.0).tobytes())  # adding zero makes -0.0 equal to 0.0
            if len(distinct) >= max_distinct:
                return frozenset(distinct)
    return frozenset(distinct)
