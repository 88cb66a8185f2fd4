"""Partitions of table files: row groups of parquet, slices of npy, whole files of other formats.

Errors name the file, the row group and the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import LARGEST
from mixda.chunks._rows import EncodedColumn, RowBlock, rows_per_block
from mixda.tables import (
    MISSING_NAMES,
    PARQUET_SUFFIXES,
    Batch,
    Columns,
    Table,
    TableFile,
    class_names,
    combined_row_groups,
    pyarrow,
    reason_of,
)


def file_partitions(
    table: Table, encoding: Columns, label: str | None, domain: str | None, missing: str
) -> tuple[Any, ...]:
    """Split the files of a table into partitions."""
    columns = _Columns(encoding, label, domain, missing)
    partitions: list[Any] = []
    for file in table.table_files:
        # absolute, because workers may have another working directory
        file = replace(file, path=file.path.absolute())
        name = file.path.name.lower()
        if name.endswith(PARQUET_SUFFIXES):
            partitions += _parquet_partitions(file.path, columns)
        elif name.endswith(".npy") and label is None and domain is None and encoding.numeric:
            partitions += _npy_partitions(file, columns)
        else:
            partitions.append(_FilePartition(file, columns))
    return tuple(partitions)


@dataclass(frozen=True)
class _Columns:
    """The columns to read, how to treat missing values, and whose rows to read (None: all)."""

    encoding: Columns
    label: str | None
    domain: str | None
    missing: str
    domains: frozenset[str] | None = None

    @property
    def features(self) -> tuple[str, ...]:
        return self.encoding.names

    @property
    def extra(self) -> list[str]:
        return [name for name in (self.label, self.domain) if name is not None]

    @property
    def as_written(self) -> list[str]:
        return [*self.extra, *self.encoding.text_names]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([*self.features, *self.extra]))

    def select_domains(self, domains: frozenset[str] | None, labeled: bool) -> _Columns:
        """Return the columns for the rows of some domains, which then are one domain."""
        label = self.label if labeled else None
        domain = None if domains is None else self.domain
        return replace(self, label=label, domain=domain, domains=domains)

    def rows(self, record: Any, place: str, first: int) -> RowBlock:
        """Convert a record batch; `first` is the number of its first row at `place`, from 0."""
        by_feature = self._matrix(record)
        label = None if self.label is None else _encoded(record, self.label)
        domain = None if self.domain is None else _encoded(record, self.domain)
        wanted = None
        if self.domains is not None and domain is not None:
            known = np.array([name in self.domains for name in domain.names] + [False])
            wanted, domain = known[domain.codes], None
        largest = max(by_feature.max(initial=0.0), -by_feature.min(initial=0.0))
        absent = [None if c is None else c.codes < 0 for c in (label, domain)]
        complete = largest <= LARGEST and not any(a is not None and a.any() for a in absent)
        if complete and wanted is None:
            return RowBlock(by_feature.T, label, domain)
        if wanted is None:
            wanted = np.ones(record.num_rows, dtype=bool)
        unusable = ~(np.abs(by_feature) <= LARGEST)
        if self.missing == "mixture":
            unusable &= ~np.isnan(by_feature)
        invalid = wanted & unusable.any(axis=0)
        if self.missing == "mixture" and invalid.any():
            self._raise_for(by_feature, [None, None], place, first, int(invalid.argmax()))
        for a in absent:
            invalid |= False if a is None else wanted & a
        if self.missing == "error" and invalid.any():
            self._raise_for(by_feature, absent, place, first, int(invalid.argmax()))
        rows = RowBlock(by_feature.T, label, domain)[np.flatnonzero(wanted & ~invalid)]
        return replace(rows, n_left_out=int(invalid.sum()))

    def _matrix(self, record: Any) -> Array:
        """Return the features, shape (d, n), with NaN for missing values."""
        if self.encoding.numeric:
            by_feature = np.empty((len(self.features), record.num_rows))
            for k, name in enumerate(self.features):
                by_feature[k] = _numbers(record.column(name))
            return by_feature
        batch, text = Batch(Path(), 0, record), self.encoding.text_names
        X = self.encoding.encode(
            lambda name: batch.values(name) if name in text else _numbers(record.column(name))
        )
        return np.asarray(X.T)

    def _raise_for(
        self,
        by_feature: Array,
        absent: list[NDArray[np.bool_] | None],
        place: str,
        first: int,
        row: int,
    ) -> None:
        names = [
            n for n, a in zip((self.label, self.domain), absent, strict=True) if _is_true(a, row)
        ]
        what = "no value"
        if not names:
            cells = np.abs(by_feature[:, row])
            unusable = cells > LARGEST if self.missing == "mixture" else ~(cells <= LARGEST)
            k = int(unusable.argmax())
            owners = [part.name for part in self.encoding.columns for _ in part.feature_names]
            names = [owners[k]]
            value = by_feature[k, row]
            if not np.isnan(value):
                what = "an infinite value" if np.isinf(value) else f"the value {value:.3g}"
        raise MixdaError(
            f"{place}: column {names[0]!r} has {what} in row {first + row + 1}; correct it, leave "
            "the column out, or skip such rows (missing='drop' in Python, --missing drop on the "
            "command line)."
        )


@dataclass(frozen=True)
class _ParquetPartition:
    path: Path
    row_groups: tuple[int, ...]
    columns: _Columns

    def select_domains(self, domains: frozenset[str] | None, labeled: bool) -> _ParquetPartition:
        return replace(self, columns=self.columns.select_domains(domains, labeled))

    def blocks(self) -> Iterator[RowBlock]:
        pa = pyarrow()
        rows = rows_per_block(len(self.columns.features))
        for group in self.row_groups:
            place, first = f"{self.path}, row group {group + 1}", 0
            with (
                _errors_naming(place),
                pa.parquet.ParquetFile(str(self.path), pre_buffer=False) as file,
            ):
                records = file.iter_batches(
                    rows, row_groups=[group], columns=self.columns.names, use_threads=False
                )
                for record in records:
                    yield self.columns.rows(record, place, first)
                    first += record.num_rows


@dataclass(frozen=True)
class _FilePartition:
    file: TableFile
    columns: _Columns

    def select_domains(self, domains: frozenset[str] | None, labeled: bool) -> _FilePartition:
        return replace(self, columns=self.columns.select_domains(domains, labeled))

    def blocks(self) -> Iterator[RowBlock]:
        first, rows = 0, rows_per_block(len(self.columns.features))
        for record in self.file.record_batches(self.columns.names, self.columns.as_written, rows):
            yield self.columns.rows(record, str(self.file.path), first)
            first += record.num_rows


@dataclass(frozen=True)
class _NpyPartition:
    path: Path
    start: int
    stop: int
    indices: tuple[int, ...]
    columns: _Columns

    def blocks(self) -> Iterator[RowBlock]:
        X = np.load(self.path, mmap_mode="r", allow_pickle=False)
        step = rows_per_block(len(self.indices))
        pa = pyarrow()
        for first in range(self.start, self.stop, step):
            block = X[first : min(first + step, self.stop), list(self.indices)]
            arrays = [pa.array(np.asarray(column, dtype=np.float64)) for column in block.T]
            record = pa.RecordBatch.from_arrays(arrays, list(self.columns.features))
            yield self.columns.rows(record, str(self.path), first)


def _parquet_partitions(path: Path, columns: _Columns) -> list[_ParquetPartition]:
    with _errors_naming(str(path)):
        groups = combined_row_groups(path)
    return [_ParquetPartition(path, group, columns) for group in groups]


def _npy_partitions(file: TableFile, columns: _Columns) -> list[_NpyPartition]:
    names = list(file.kinds)
    indices = tuple(names.index(name) for name in columns.features)
    n, step = file.n_rows or 0, 4 * rows_per_block(len(names))
    starts = range(0, n, step)
    return [_NpyPartition(file.path, k, min(k + step, n), indices, columns) for k in starts]


def _numbers(column: Any) -> NDArray[Any]:
    """Return a column as numbers, with NaN for missing values."""
    pa = pyarrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        column = column.cast(pa.float64(), safe=False)
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def _encoded(record: Any, name: str) -> EncodedColumn:
    """Encode a column of names as text; the code of a missing name is -1."""
    pa = pyarrow()
    column = record.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = column.dictionary.to_pylist()
    names = [str(value) for value in values]
    codes = np.asarray(column.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.intp)
    absent = np.array([v is None or str(v) in MISSING_NAMES for v in values] + [True])  # of code -1
    codes = np.where(absent[codes], -1, codes)
    # each name on its own, so that 3.0 is always "3"
    return EncodedColumn([str(class_names(np.array([value]))[0]) for value in names], codes)


@contextmanager
def _errors_naming(place: str) -> Iterator[None]:
    """Turn exceptions of pyarrow and the system into a `MixdaError` that names the place."""
    pa = pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise MixdaError(f"{place} cannot be read: {reason_of(error)}.") from None


def _is_true(absent: NDArray[np.bool_] | None, row: int) -> bool:
    return absent is not None and bool(absent[row])
