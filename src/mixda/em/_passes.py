"""Passes over the data: rows for the initialization, and expectation steps, for all groups at once.

`SourcePasses` reads a `RowSource` in every pass, wherever its executor runs. `ArrayPasses` holds
arrays in memory. The loop in `mixda.em._loop` is the same for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixda._core.namespace import as_like, namespace, take, to_float64
from mixda._core.parallel import Map
from mixda._core.typing import Array
from mixda.chunks import Executor, Grouping, GroupKey, RowBlock
from mixda.em._moments import Moments, array_moments
from mixda.em._steps import Parameters, SuffStats, e_step
from mixda.mixture import rows_at_once, rows_per_step

M = TypeVar("M")


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Centered samples (n, d) and their weights (n,), of mean one in the whole group."""

    x: Array
    weight: Array

    def merge(self, other: WeightedRows) -> WeightedRows:
        """Return the rows of both, in order."""
        return WeightedRows(
            np.vstack([self.x, other.x]), np.concatenate([self.weight, other.weight])
        )


class Passes(Protocol):
    """What the EM loop needs of the data."""

    def rows(self, wanted: Mapping[GroupKey, NDArray[np.intp]]) -> dict[GroupKey, WeightedRows]:
        """Return the rows with the wanted, sorted numbers of each group."""
        ...  # pragma: no cover

    def expectation(self, parameters: Mapping[GroupKey, Parameters]) -> dict[GroupKey, SuffStats]:
        """Return the statistics of the groups that have parameters."""
        ...  # pragma: no cover


class ArrayPasses:
    """Passes over arrays in memory, grouped and centered once and split into blocks for the cache.

    Arrays of torch and CuPy stay on their device. Statistics and rows for the initialization are
    numpy arrays.

    A `RowSource` groups, centers and splits its rows again in every pass, because it must not hold
    them. That is why arrays have passes of their own. Time of an EM iteration of
    ``fit_mixture(X)`` against ``fit_mixture(from_arrays(X))``, one thread, best of several
    alternating runs on a loaded two-core machine: n=20000, d=128, K=10:
    25 against 57 ms; n=2000, d=2048, K=5: 30 against 75 ms; n=500000, d=16, K=8: 114 against
    169 ms. Time of ``fit_labeled_mixture``, 3 components per class: n=200, d=5, 3 classes: 25
    against 40 ms; n=5000, d=64, 10 classes: 308 against 573 ms.
    """

    def __init__(
        self,
        rows: RowBlock,
        grouping: Grouping,
        run: Map,
        chunk_size: int | None = None,
        max_distinct: int = 0,
    ) -> None:
        self.moments: dict[GroupKey, Moments] = {}
        self._groups: dict[GroupKey, tuple[Array, Array | None]] = {}
        self._run, self._chunk_size = run, chunk_size
        for key, x, weight in rows.groups(grouping):
            total = float(len(x)) if weight is None else float(weight.sum())
            if weight is not None and len(x) < len(rows.X):
                weight = weight / weight.mean()
            moments = array_moments(x, weight, max_distinct=max_distinct)
            centered = x - as_like(moments.mean, x)
            self._groups[key] = (centered, None if weight is None else as_like(weight, x))
            scale = total / moments.weight
            self.moments[key] = replace(
                moments,
                weight=total,
                observed=moments.observed * scale,
                heaviest=moments.heaviest * scale,
                squares=moments.squares * scale,
            )

    def rows(self, wanted: Mapping[GroupKey, NDArray[np.intp]]) -> dict[GroupKey, WeightedRows]:
        """Return the rows with the wanted, sorted numbers of each group."""
        chosen = {}
        for key, numbers in wanted.items():
            x, weight = self._groups[key]
            w = np.ones(len(numbers)) if weight is None else to_float64(take(weight, numbers))
            some = x if len(numbers) == len(x) else take(x, numbers)
            chosen[key] = WeightedRows(to_float64(some), w)
        return chosen

    def expectation(self, parameters: Mapping[GroupKey, Parameters]) -> dict[GroupKey, SuffStats]:
        """Return the statistics of the groups that have parameters."""
        return {key: self._group_expectation(key, p) for key, p in parameters.items()}

    def _group_expectation(self, key: GroupKey, parameters: Parameters) -> SuffStats:
        x, weight = self._groups[key]
        _ = parameters.kernel  # prepared once rather than in every thread
        step = self._chunk_size or rows_at_once(x, len(parameters.means))
        slices = [slice(start, start + step) for start in range(0, len(x), step)]
        weights = [None if weight is None else weight[rows] for rows in slices]
        task = partial(e_step, parameters=parameters)
        stats: Iterable[SuffStats] = self._run(task, [x[rows] for rows in slices], weights)
        if namespace(x) is not np:
            stats = (block.on_cpu() for block in stats)
        return reduce(SuffStats.merge, stats)


def source_moments(
    executor: Executor, n_partitions: int, grouping: Grouping, max_distinct: int
) -> dict[GroupKey, Moments]:
    """Read a source once; return the moments of every group, with some of its distinct rows."""
    task = partial(_partition_moments, grouping=grouping, max_distinct=max_distinct)
    return executor.fold(task, _merge_groups, range(n_partitions))


@dataclass(frozen=True, eq=False)
class SourcePasses:
    """Passes over a `RowSource`, run by an executor.

    Each pass is a pure function of one partition, which runs wherever the partition can be read.
    """

    executor: Executor
    n_partitions: int
    grouping: Grouping
    moments: Mapping[GroupKey, Moments]

    def rows(self, wanted: Mapping[GroupKey, NDArray[np.intp]]) -> dict[GroupKey, WeightedRows]:
        """Return the rows with the wanted, sorted numbers of each group."""
        numbers: dict[int, dict[GroupKey, Any]] = {}
        for key, chosen in wanted.items():
            first = 0
            for index, count in self.moments[key].partition_counts:
                start, stop = np.searchsorted(chosen, (first, first + count))
                if stop > start:
                    numbers.setdefault(index, {})[key] = chosen[start:stop] - first
                first += count
        task = partial(_partition_rows, grouping=self.grouping, numbers=numbers)
        rows = self.executor.fold(task, _merge_groups, sorted(numbers))
        return {key: self._normalized(rows[key], self.moments[key]) for key in wanted}

    def expectation(self, parameters: Mapping[GroupKey, Parameters]) -> dict[GroupKey, SuffStats]:
        """Return the statistics of the groups that have parameters."""
        counts = [self.moments[key].partition_counts for key in parameters]
        needed = sorted({index for group in counts for index, _ in group})
        return self.partial_expectation(needed, parameters)

    def partial_expectation(
        self, partitions: Sequence[int], parameters: Mapping[GroupKey, Parameters]
    ) -> dict[GroupKey, SuffStats]:
        """Return the statistics of some partitions only."""
        work = {
            key: (self.moments[key].mean, self.moments[key].n / self.moments[key].weight, p)
            for key, p in parameters.items()
        }
        for p in parameters.values():
            _ = p.kernel  # prepared once rather than in every partition
        task = partial(_partition_expectation, grouping=self.grouping, work=work)
        return self.executor.fold(task, _merge_groups, partitions)

    @staticmethod
    def _normalized(rows: WeightedRows, moments: Moments) -> WeightedRows:
        return WeightedRows(rows.x - moments.mean, rows.weight * (moments.n / moments.weight))


def _merge_groups(some: dict[GroupKey, M], others: dict[GroupKey, M]) -> dict[GroupKey, M]:
    both = {k: some[k].merge(v) for k, v in others.items() if k in some}  # type: ignore[attr-defined]
    return {**some, **others, **both}


def _partition_moments(
    index: int, partition: Any, grouping: Grouping, max_distinct: int
) -> dict[GroupKey, Moments]:
    total: dict[GroupKey, Moments] = {}
    for block in partition.blocks():
        for key, x, weight in block.groups(grouping):
            if not len(x):
                continue
            enough = key in total and len(total[key].distinct) >= max_distinct
            moments = array_moments(x, weight, index, 0 if enough else max_distinct)
            total = _merge_groups(total, {key: moments})
    return {key: replace(m, partition_counts=((index, m.n),)) for key, m in total.items()}


def _partition_rows(
    index: int,
    partition: Any,
    grouping: Grouping,
    numbers: Mapping[int, Mapping[GroupKey, NDArray[Any]]],
) -> dict[GroupKey, WeightedRows]:
    wanted = numbers[index]
    chosen: dict[GroupKey, WeightedRows] = {}
    n_read = dict.fromkeys(wanted, 0)
    for block in partition.blocks():
        for key, x, weight in block.groups(grouping):
            if key not in wanted:
                continue
            start, stop = np.searchsorted(wanted[key], (n_read[key], n_read[key] + len(x)))
            rows = wanted[key][start:stop] - n_read[key]
            n_read[key] += len(x)
            w = np.ones(len(rows)) if weight is None else weight[rows]
            chosen = _merge_groups(chosen, {key: WeightedRows(np.array(x[rows], order="C"), w)})
    return chosen


def _partition_expectation(
    index: int,
    partition: Any,
    grouping: Grouping,
    work: Mapping[GroupKey, tuple[Array, float, Parameters]],
) -> dict[GroupKey, SuffStats]:
    total: dict[GroupKey, SuffStats] = {}
    all_buffers: dict[GroupKey, _Buffers] = {}
    for block in partition.blocks():
        for key, x, weight in block.groups(grouping):
            if key not in work:
                continue
            center, scale, parameters = work[key]
            buffers = all_buffers.setdefault(key, _Buffers(*parameters.means.shape))
            for start in range(0, len(x), buffers.n_rows):
                rows = slice(start, start + buffers.n_rows)
                w = None if weight is None else weight[rows] * scale
                centered, squares, posteriors = buffers.views(len(x[rows]))
                np.subtract(x[rows], center, out=centered)
                stats = e_step(centered, w, parameters, (squares, posteriors))
                total[key] = total[key].merge(stats) if key in total else stats
    return total


class _Buffers:
    """Reused arrays of an expectation step.

    Dask workers return freed memory at once, and allocating it again takes as long as the step.
    """

    def __init__(self, n_components: int, n_features: int) -> None:
        self.n_rows = rows_per_step(n_components, n_features)
        self._samples = np.empty((2, n_features * self.n_rows))
        self._posteriors = np.empty(2 * n_components * self.n_rows)
        self._n_components, self._n_features = n_components, n_features

    def views(self, n: int) -> tuple[Array, Array, Array]:
        """Return arrays (n, d), (n, d) and (2, K, n), all with contiguous columns."""
        size = n * self._n_features
        x, squares = (part[:size].reshape(self._n_features, n).T for part in self._samples)
        shape = (2, self._n_components, n)
        return x, squares, self._posteriors[: 2 * self._n_components * n].reshape(shape)
