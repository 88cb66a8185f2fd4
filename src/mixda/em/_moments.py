"""Moments of samples, which add up: count, mean, spread, range and a few distinct rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixda._core.validation import Array
from mixda.em._steps import VALUES_PER_STEP


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, weight, mean and sum of squares around it, range, and a few distinct rows."""

    n: int
    weight: float
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
        return np.asarray(np.sqrt(self.squares / self.weight))

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of samples; exact where both are constant and equal."""
        weight = self.weight + other.weight
        difference = other.mean - self.mean
        return Moments(
            self.n + other.n,
            weight,
            self.mean + difference * (other.weight / weight),
            self.squares + other.squares + difference**2 * (self.weight * other.weight / weight),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.distinct | other.distinct,
            self.partition_counts + other.partition_counts,
            max(self.heaviest, other.heaviest),
        )


def array_moments(
    x: Array, weight: Array | None, partition: int = 0, max_distinct: int = 0
) -> Moments:
    """Return the moments of samples in memory."""
    first = x[0]
    w = np.ones(len(x)) if weight is None else weight
    step = max(1, VALUES_PER_STEP // x.shape[1])
    slices = [slice(k, k + step) for k in range(0, len(x), step)]
    total = float(w.sum())
    mean = first + sum(w[rows] @ (x[rows] - first) for rows in slices) / total
    squares = sum(w[rows] @ np.square(x[rows] - mean) for rows in slices)
    return Moments(
        len(x),
        total,
        mean,
        squares,
        x.min(axis=0),
        x.max(axis=0),
        _distinct_rows(x, max_distinct),
        ((partition, len(x)),),
        float(w.max()),
    )


def _distinct_rows(x: Array, max_distinct: int) -> frozenset[bytes]:
    distinct: set[bytes] = set()
    for row in x if max_distinct else ():
        distinct.add((row + 0.0).tobytes())  # adding zero makes -0.0 equal to 0.0
        if len(distinct) >= max_distinct:
            break
    return frozenset(distinct)
