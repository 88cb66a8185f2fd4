"""Passes over a source of chunks: moments, a sample for seeding, and expectation steps.

Each is a pure function of one part that runs wherever the part can be read, and statistics that
add up. One pass serves all mixtures, those of every class and every domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixda._core.validation import Array
from mixda.chunks import Executor, Key
from mixda.em._steps import CHUNK_VALUES, Parameters, SuffStats, e_step

M = TypeVar("M")


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, weight, mean and sum of squares around it, range, and a few distinct rows."""

    n: int
    weight: float
    mean: Array
    squares: Array  # sum of weight times squared distance from the mean
    low: Array
    high: Array
    distinct: frozenset[bytes]  # of each part no more than asked for
    counts: tuple[tuple[int, int], ...]  # rows per part: (part, rows)

    @property
    def spread(self) -> Array:
        """Standard deviation of each feature."""
        return np.asarray(np.sqrt(self.squares / self.weight))

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of samples; exact where both are constant and equal."""
        weight = self.weight + other.weight
        apart = other.mean - self.mean
        return Moments(
            self.n + other.n,
            weight,
            self.mean + apart * (other.weight / weight),
            self.squares + other.squares + apart**2 * (self.weight * other.weight / weight),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.distinct | other.distinct,
            self.counts + other.counts,
        )


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows and their weights."""

    x: Array
    weight: Array

    def merge(self, other: Sample) -> Sample:
        """Return both, in order."""
        return Sample(np.vstack([self.x, other.x]), np.concatenate([self.weight, other.weight]))


@dataclass(frozen=True, eq=False)
class Passes:
    """The passes over a source by an executor; rows are told apart by class, by domain, or not."""

    executor: Executor
    n_parts: int
    by_label: bool
    by_domain: bool

    def moments(self, enough: int) -> dict[Key, Moments]:
        """Return the moments of the rows of every domain and class, `enough` distinct rows each."""
        task = partial(_moments, by=(self.by_label, self.by_domain), enough=enough)
        return self.executor.fold(task, merged, range(self.n_parts))

    def rows(self, moments: Mapping[Key, Moments], wanted: Mapping[Key, Any]) -> dict[Key, Sample]:
        """Return the rows of each mixture whose numbers, in the order of reading, are wanted."""
        numbers: dict[int, dict[Key, Any]] = {}
        for key, chosen in wanted.items():
            first = 0
            for part, count in moments[key].counts:
                start, stop = np.searchsorted(chosen, (first, first + count))
                if stop > start:
                    numbers.setdefault(part, {})[key] = chosen[start:stop] - first
                first += count
        task = partial(_rows, by=(self.by_label, self.by_domain), numbers=numbers)
        return self.executor.fold(task, merged, sorted(numbers))

    def expectation(
        self, moments: Mapping[Key, Moments], parameters: Mapping[Key, Parameters]
    ) -> dict[Key, SuffStats]:
        """Return the statistics of each mixture under its parameters; others are not read."""
        concerned = sorted({part for key in parameters for part, _ in moments[key].counts})
        return self.expectation_of(concerned, moments, parameters)

    def expectation_of(
        self,
        parts: Sequence[int],
        moments: Mapping[Key, Moments],
        parameters: Mapping[Key, Parameters],
    ) -> dict[Key, SuffStats]:
        """Return the statistics of some parts only."""
        work = {
            key: (moments[key].mean, moments[key].n / moments[key].weight, parameters[key])
            for key in parameters
        }
        for _, _, prepared in work.values():
            _ = prepared.kernel  # once, rather than in every part
        task = partial(_expectation, by=(self.by_label, self.by_domain), work=work)
        return self.executor.fold(task, merged, parts)


def merged(some: dict[Key, M], others: dict[Key, M]) -> dict[Key, M]:
    """Merge what both have, mixture by mixture."""
    both = {k: some[k].merge(v) for k, v in others.items() if k in some}  # type: ignore[attr-defined]
    return {**some, **others, **both}


def _moments(index: int, part: Any, by: tuple[bool, bool], enough: int) -> dict[Key, Moments]:
    found: dict[Key, Moments] = {}
    for block in part.blocks():
        for key, x, weight in block.groups(*by):
            if not len(x):
                continue
            known = found[key].distinct if key in found else frozenset()
            here = {key: moments_of(x, weight, index, enough if len(known) < enough else 0)}
            found = merged(found, here)
    return {key: Moments(**{**m.__dict__, "counts": ((index, m.n),)}) for key, m in found.items()}


def moments_of(x: Array, weight: Array | None, index: int = 0, enough: int = 0) -> Moments:
    """Return the moments of samples in memory."""
    first = x[0]
    w = np.ones(len(x)) if weight is None else weight
    step = max(1, CHUNK_VALUES // x.shape[1])
    cuts = [slice(k, k + step) for k in range(0, len(x), step)]
    total = float(w.sum())
    mean = first + sum(w[cut] @ (x[cut] - first) for cut in cuts) / total
    squares = sum(w[cut] @ np.square(x[cut] - mean) for cut in cuts)
    low, high = x.min(axis=0), x.max(axis=0)
    distinct = distinct_rows(x, enough)
    return Moments(len(x), total, mean, squares, low, high, distinct, ((index, len(x)),))


def distinct_rows(x: Array, enough: int) -> frozenset[bytes]:
    """Return distinct rows, but no more than `enough`."""
    seen: set[bytes] = set()
    for row in x if enough else ():
        seen.add((row + 0.0).tobytes())
        if len(seen) >= enough:
            break
    return frozenset(seen)


def _rows(
    index: int, part: Any, by: tuple[bool, bool], numbers: Mapping[int, Mapping[Key, NDArray[Any]]]
) -> dict[Key, Sample]:
    wanted = numbers[index]
    found: dict[Key, Sample] = {}
    seen = dict.fromkeys(wanted, 0)
    for block in part.blocks():
        for key, x, weight in block.groups(*by):
            if key not in wanted:
                continue
            start, stop = np.searchsorted(wanted[key], (seen[key], seen[key] + len(x)))
            rows = wanted[key][start:stop] - seen[key]
            seen[key] += len(x)
            w = np.ones(len(rows)) if weight is None else weight[rows]
            found = merged(found, {key: Sample(np.array(x[rows], order="C"), w)})
    return found


def _expectation(
    index: int,
    part: Any,
    by: tuple[bool, bool],
    work: Mapping[Key, tuple[Array, float, Parameters]],
) -> dict[Key, SuffStats]:
    found: dict[Key, SuffStats] = {}
    kept: dict[Key, _Memory] = {}
    for block in part.blocks():
        for key, x, weight in block.groups(*by):
            if key not in work:
                continue
            center, scale, parameters = work[key]
            memory = kept.setdefault(key, _Memory(*parameters.means.shape))
            for start in range(0, len(x), memory.rows):
                cut = slice(start, start + memory.rows)
                w = None if weight is None else weight[cut] * scale
                centered, *rest = memory.views(len(x[cut]))
                np.subtract(x[cut], center, out=centered)
                stats = e_step((centered, w), parameters, (rest[0], rest[1]))
                found[key] = found[key].merge(stats) if key in found else stats
    return found


class _Memory:
    """Room for the arrays of an expectation step, used again and again.

    Workers of Dask give freed memory back at once, and getting it again takes as long as the step.
    """

    def __init__(self, n_components: int, n_features: int) -> None:
        self.rows = max(1, CHUNK_VALUES // 2 // max(n_components, n_features))
        self._samples = np.empty((2, n_features * self.rows))
        self._posteriors = np.empty(2 * n_components * self.rows)
        self._n_components, self._n_features = n_components, n_features

    def views(self, n: int) -> tuple[Array, Array, Array]:
        """Return arrays (n, d), (n, d) and (2, K, n), all columns contiguous."""
        size = n * self._n_features
        x, squares = (part[:size].reshape(self._n_features, n).T for part in self._samples)
        shape = (2, self._n_components, n)
        return x, squares, self._posteriors[: 2 * self._n_components * n].reshape(shape)
