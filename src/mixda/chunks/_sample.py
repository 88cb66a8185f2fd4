"""A bounded, stratified sample of data of any size, read once, wherever the partitions can be read.

Every row draws a number from a hash of its content, and the rows with the smallest numbers are
kept. So the sample depends neither on the order of the rows nor on how they are partitioned, and
samples of partitions can be merged. Where many rows are equal, a hash of the position takes the
place of that of the content, because otherwise equal rows would be kept or dropped together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.progress import Progress
from mixda._core.typing import Array
from mixda._core.validation import check_names
from mixda.chunks._executors import executor_for
from mixda.chunks._rows import EncodedColumn, RowBlock
from mixda.chunks._sources import RowSource
from mixda.tables import class_names

Hashes = NDArray[np.uint64]

_OVERSAMPLING = 1.25  # so that proportional shares of the classes can be taken from what is kept
_KEPT_PER_CLASS = 500  # however rare a class is
_MIN_PER_CLASS = 50  # in the sample
_MIN_DISTINCT = 0.95  # share of distinct rows below which positions decide
_LAST = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class RowSample:
    """Some rows of a domain, in an order that depends on their content only.

    Attributes
    ----------
    X : ndarray of shape (m, d)
    y : ndarray of shape (m,), or None
    n_rows : int
        Number of rows of the domain.
    digest : int
        Identifies the content of all rows, in any order.
    partitions : tuple of int
        Partitions of the source that have rows of the domain.
    n_left_out : int
        Rows that were left out because a value is missing.
    """

    X: Array
    y: NDArray[Any] | None
    n_rows: int
    digest: int
    partitions: tuple[int, ...]
    n_left_out: int = 0

    def thinned(self, max_rows: int) -> RowSample:
        """Return a smaller sample with the same class proportions."""
        if len(self.X) <= max_rows:
            return self
        if self.y is None:
            return replace(self, X=self.X[:max_rows])
        names, codes = np.unique(self.y, return_inverse=True)
        quotas = _quotas(dict(enumerate(np.bincount(codes).tolist())), max_rows)
        most = np.array([quotas[code] for code in range(len(names))])
        kept = np.flatnonzero(_ranks_within(codes) < most[codes])
        return replace(self, X=self.X[kept], y=self.y[kept])

    @property
    def is_thinned(self) -> bool:
        """Whether the domain has more rows than the sample."""
        return len(self.X) < self.n_rows


def sample_rows(
    source: RowSource,
    max_rows: int,
    *,
    n_jobs: int | None = None,
    client: Any = None,
    verbose: bool = False,
) -> dict[str | None, RowSample]:
    """Draw at most `max_rows` rows of each domain, with the class proportions of all its rows.

    Each class keeps at least 50 rows, or all if it has fewer, even if that makes more than
    `max_rows`. The same rows are drawn whatever their order, their partitions and the executor,
    unless more than 5 % of the rows are repetitions.

    Parameters
    ----------
    source : RowSource
    max_rows : int
    n_jobs, client
        Where to read, see `mixda.fit_mixture`.
    verbose : bool
        Show progress.

    Returns
    -------
    dict of RowSample
        By name of the domain; the name is None if the source has no domains.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda import chunks
    >>> X, y = np.arange(1000.0)[:, None], np.repeat(["ok", "worn"], [800, 200])
    >>> sample = chunks.sample_rows(chunks.from_arrays(X, y), 500)[None]
    >>> sample.n_rows, np.unique(sample.y, return_counts=True)[1]
    (1000, array([400, 100]))
    """
    size = int(np.ceil(_OVERSAMPLING * max_rows)) + 1
    totals: dict[str | None, _Domain] = {}
    n = len(source.partitions)
    with (
        executor_for(source, n_jobs, client) as executor,
        Progress(n, "sampling rows of partition", verbose) as progress,
    ):
        for wave in _doubling_waves(n):
            limits = {name: domain.limits() for name, domain in totals.items()}
            task = partial(_read_partition, size=size, limits=limits)
            totals = _merge(totals, executor.fold(task, _merge, wave))
            progress.update(wave[-1] + 1)
    totals = {name: domain for name, domain in totals.items() if sum(domain.counts.values())}
    if not totals:
        raise MixdaError("the data have no row with values in all required columns.")
    names = sorted(totals, key=lambda name: name or "")
    return {name: totals[name].drawn(max_rows, source.text_labels) for name in names}


def _doubling_waves(n: int) -> Iterator[range]:
    """Split partitions into waves, each as large as all before it.

    Later waves know from earlier ones which rows cannot be in the sample, so each returns few.
    """
    start, size = 0, 2
    while start < n:
        yield range(start, min(start + size, n))
        start, size = start + size, max(size, start + size)


@dataclass(frozen=True, eq=False)
class _Limits:
    """The largest numbers that can still be in the sample, of all classes and of each."""

    overall: np.uint64 = _LAST
    by_class: Mapping[Any, np.uint64] = field(default_factory=dict)

    def admit(self, numbers: Hashes, label: EncodedColumn | None) -> NDArray[np.bool_]:
        """Return which rows can be in the sample."""
        if label is None or self.overall == _LAST:
            return np.asarray(numbers <= self.overall)
        own = np.array([self.by_class.get(name, _LAST) for name in label.names], np.uint64)
        return np.asarray(numbers <= np.maximum(own, self.overall)[label.codes])


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Rows with the smallest numbers, overall and in each class."""

    rows: RowBlock
    numbers: Hashes
    size: int

    @classmethod
    def joined(cls, parts: Sequence[_Drawn]) -> _Drawn:
        """Return the rows of all parts that can be in the sample."""
        label = _joined([part.rows.label for part in parts])
        rows = RowBlock(np.vstack([part.rows.X for part in parts]), label)
        return cls(rows, np.concatenate([p.numbers for p in parts]), parts[0].size).pruned()

    def pruned(self) -> _Drawn:
        """Keep the rows that can be in the final sample, ordered by their numbers."""
        order = np.argsort(self.numbers, kind="stable")
        kept = np.zeros(len(order), dtype=bool)
        kept[: self.size] = True
        if self.rows.label is not None:
            kept |= _ranks_within(self.rows.label.codes[order]) < _KEPT_PER_CLASS
        order = order[kept]
        return replace(self, rows=self.rows[order], numbers=self.numbers[order])

    def limits(self) -> _Limits:
        """Return the limits for further rows; rows must be pruned."""
        if len(self.numbers) < self.size:
            return _Limits()
        by_class = {}
        if self.rows.label is not None:
            codes = self.rows.label.codes
            for row in np.flatnonzero(_ranks_within(codes) == _KEPT_PER_CLASS - 1):
                by_class[self.rows.label.names[codes[row]]] = self.numbers[row]
        return _Limits(self.numbers[self.size - 1], by_class)


@dataclass(frozen=True, eq=False)
class _Domain:
    """What is known of a domain: counts of its classes, a digest, and two samples."""

    counts: dict[Any, int]
    digest: int
    by_content: _Drawn
    by_position: _Drawn
    partitions: tuple[int, ...]
    n_left_out: int

    def merge(self, other: _Domain) -> _Domain:
        names = {*self.counts, *other.counts}
        return _Domain(
            {name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in names},
            (self.digest + other.digest) % 2**64,
            _Drawn.joined([self.by_content, other.by_content]),
            _Drawn.joined([self.by_position, other.by_position]),
            self.partitions + other.partitions,
            self.n_left_out + other.n_left_out,
        )

    def limits(self) -> tuple[_Limits, _Limits]:
        return self.by_content.limits(), self.by_position.limits()

    def drawn(self, max_rows: int, text_labels: bool) -> RowSample:
        """Return the stratified sample."""
        n_rows = sum(self.counts.values())
        drawn = self.by_content if self._rows_differ(n_rows) else self.by_position
        rows = drawn.rows
        if n_rows > max_rows:
            quotas = _quotas(self.counts, max_rows)
            if rows.label is None:
                rows = rows[: quotas[None]]
            else:
                most = np.array([quotas.get(name, 0) for name in rows.label.names])[
                    rows.label.codes
                ]
                rows = rows[np.flatnonzero(_ranks_within(rows.label.codes) < most)]
        y = None
        if rows.label is not None:
            present = np.unique(rows.label.codes)
            given = np.array([rows.label.names[code] for code in present])
            names = class_names(given) if text_labels else check_names(given, "the label column")
            y = names[np.searchsorted(present, rows.label.codes)]
        X = np.ascontiguousarray(rows.X)
        return RowSample(X, y, n_rows, self.digest, self.partitions, self.n_left_out)

    def _rows_differ(self, n_rows: int) -> bool:
        """Whether nearly all rows are distinct, estimated from the smallest numbers."""
        numbers = self.by_content.numbers[: self.by_content.size]
        n_distinct = len(np.unique(numbers))
        if len(self.by_content.numbers) >= n_rows:
            return True  # all rows are here
        return (n_distinct - 1) * (2.0**64 / (float(numbers[-1]) + 1.0)) >= _MIN_DISTINCT * n_rows


def _merge(
    some: dict[str | None, _Domain], others: dict[str | None, _Domain]
) -> dict[str | None, _Domain]:
    both = {name: some[name].merge(other) for name, other in others.items() if name in some}
    return {**some, **others, **both}


def _read_partition(
    index: int,
    partition: Any,
    size: int,
    limits: Mapping[str | None, tuple[_Limits, _Limits]],
) -> dict[str | None, _Domain]:
    readers: dict[str | None, _Reader] = {}
    n_read = 0
    for block in partition.blocks():
        positions = np.arange(n_read, n_read + len(block.X), dtype=np.uint64)
        n_read += len(block.X)
        for name, rows in _rows_by_domain(block):
            part = RowBlock(block.X[rows], None if block.label is None else block.label[rows])
            numbers = _hash_rows(part.X), _hash_columns([positions[rows]], index + 1)
            if name not in readers:
                known = limits.get(name, (_Limits(), _Limits()))
                readers[name] = _Reader(known, size)
            readers[name].read(part, numbers)
            readers[name].n_left_out += block.n_left_out if block.domain is None else 0
    return {name: reader.domain(index) for name, reader in readers.items()}


class _Reader:
    """Collects the rows of a domain in one partition; pruned now and then."""

    def __init__(self, limits: tuple[_Limits, _Limits], size: int) -> None:
        self._limits, self._size = list(limits), size
        self._parts: tuple[list[_Drawn], list[_Drawn]] = [], []
        self._pending = [0, 0]
        self._counts: dict[Any, int] = {}
        self._digest = 0
        self.n_left_out = 0

    def read(self, rows: RowBlock, numbers: tuple[Hashes, Hashes]) -> None:
        """Add a block with the hashes of its content and of its positions."""
        for name, n in _class_counts(rows).items():
            self._counts[name] = self._counts.get(name, 0) + n
        self._digest = (self._digest + int(numbers[0].sum(dtype=np.uint64))) % 2**64
        for kind, values in enumerate(numbers):
            chosen = np.flatnonzero(self._limits[kind].admit(values, rows.label))
            self._parts[kind].append(_Drawn(rows[chosen], values[chosen], self._size))
            self._pending[kind] += len(chosen)
            if self._pending[kind] > self._size:
                self._prune(kind)

    def domain(self, index: int) -> _Domain:
        """Return what was read of the partition of this index."""
        samples = self._prune(0), self._prune(1)
        return _Domain(self._counts, self._digest, *samples, (index,), self.n_left_out)

    def _prune(self, kind: int) -> _Drawn:
        joined = _Drawn.joined(self._parts[kind])
        limits = joined.limits()
        if limits.overall < self._limits[kind].overall:
            self._limits[kind] = limits
        self._parts[kind][:], self._pending[kind] = [joined], 0
        return joined


def _rows_by_domain(block: RowBlock) -> Iterator[tuple[str | None, Any]]:
    if block.domain is None:
        if len(block.X) or block.n_left_out:
            yield None, slice(None)
        return
    for code in np.unique(block.domain.codes):
        yield block.domain.names[code], np.flatnonzero(block.domain.codes == code)


def _class_counts(rows: RowBlock) -> dict[Any, int]:
    if rows.label is None:
        return {None: len(rows.X)}
    counts: dict[Any, int] = {}
    numbers = np.bincount(rows.label.codes, minlength=len(rows.label.names)).tolist()
    for name, n in zip(rows.label.names, numbers, strict=True):
        if n:
            counts[name] = counts.get(name, 0) + n
    return counts


def _quotas(counts: Mapping[Any, int], max_rows: int) -> dict[Any, int]:
    """Return how many rows of each class to draw: its share, and a least number."""
    total = sum(counts.values())
    return {
        name: max(min(n, _MIN_PER_CLASS), min(n, max_rows * n // total))
        for name, n in counts.items()
    }


def _joined(columns: Sequence[EncodedColumn | None]) -> EncodedColumn | None:
    """Return the concatenation of columns with different names."""
    given = [column for column in columns if column is not None]
    if not given:
        return None
    names = sorted({name for column in given for name in column.names}, key=str)
    places = {name: k for k, name in enumerate(names)}
    codes = [np.array([places[n] for n in c.names], dtype=np.intp)[c.codes] for c in given]
    return EncodedColumn(names, np.concatenate(codes))


def _ranks_within(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rank of each row, in the given order, among the rows of its class."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], codes[order], side="left")
    ranks = np.empty(len(codes), dtype=np.intp)
    ranks[order] = np.arange(len(codes)) - starts
    return ranks


def _hash_rows(X: Array) -> Hashes:
    """Return a number that depends on the content of each row only."""
    columns = []
    for j in range(X.shape[1]):
        column = np.array(X[:, j], dtype=np.float64) + 0.0  # -0.0 is 0.0
        column[np.isnan(column)] = np.nan  # which has many representations
        columns.append(column.view(np.uint64))
    return _hash_columns(columns, 0)


def _hash_columns(columns: Sequence[Hashes], seed: int) -> Hashes:
    """Mix columns of 64 bits into one, with the finalizer of splitmix64 after each."""
    hashes = np.full(len(columns[0]), (seed * 0x9E3779B97F4A7C15 + 1) % 2**64, dtype=np.uint64)
    for column in columns:
        hashes ^= column
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            hashes ^= hashes >> np.uint64(shift)
            hashes *= np.uint64(factor)
        hashes ^= hashes >> np.uint64(31)
        hashes += np.uint64(0x9E3779B97F4A7C15)
    return hashes
