"""Parts of table files: row groups of parquet, rows of npy, whole files of the other kinds.

What is wrong in a file becomes one sentence with the file, the row group and the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import LARGEST, Array
from mixda.chunks._rows import Column, Rows, rows_per_block
from mixda.tables import MISSING_NAMES, PARQUET_SUFFIXES, TableFile, pyarrow

if TYPE_CHECKING:
    from mixda.tables import Table

_PART_ROWS = 1 << 16  # row groups below this are taken together


def file_parts(
    table: Table, features: tuple[str, ...], label: str | None, domain: str | None, missing: str
) -> tuple[Any, ...]:
    """Cut the files of a table into parts."""
    asked = _Columns(features, label, domain, missing)
    parts: list[Any] = []
    for file in table.parts:
        file = replace(file, path=file.path.absolute())  # workers have folders of their own
        name = file.path.name.lower()
        if name.endswith(PARQUET_SUFFIXES):
            parts += _parquet_parts(file.path, asked)
        elif name.endswith(".npy") and label is None and domain is None:
            parts += _npy_parts(file, asked)
        else:
            parts.append(_FilePart(file, asked))
    return tuple(parts)


@dataclass(frozen=True)
class _Columns:
    """Which columns to read, and what to do with missing values."""

    features: tuple[str, ...]
    label: str | None
    domain: str | None
    missing: str

    @property
    def extra(self) -> list[str]:
        return [name for name in (self.label, self.domain) if name is not None]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([*self.features, *self.extra]))

    def rows(self, record: Any, place: str, first: int) -> Rows:
        """Turn a record batch into rows; `first` is the number of its first row at `place`."""
        by_feature = np.empty((len(self.features), record.num_rows))
        for k, name in enumerate(self.features):
            by_feature[k] = _numbers(record.column(name))
        label = None if self.label is None else _encoded(record, self.label)
        domain = None if self.domain is None else _encoded(record, self.domain)
        largest = max(by_feature.max(initial=0.0), -by_feature.min(initial=0.0))
        absent = [None if c is None else c.codes < 0 for c in (label, domain)]
        if largest <= LARGEST and not any(a is not None and a.any() for a in absent):
            return Rows(by_feature.T, label, domain)
        bad = ~(np.abs(by_feature) <= LARGEST).all(axis=0)
        for a in absent:
            bad |= False if a is None else a
        if self.missing == "error":
            self._refuse(by_feature, absent, place, first, int(bad.argmax()))
        kept = np.flatnonzero(~bad)
        return Rows(by_feature.T, label, domain)[kept]

    def _refuse(
        self,
        by_feature: Array,
        absent: list[NDArray[np.bool_] | None],
        place: str,
        first: int,
        row: int,
    ) -> None:
        names = [n for n, a in zip((self.label, self.domain), absent, strict=True) if _at(a, row)]
        what = "no value"
        if not names:
            k = int((~(np.abs(by_feature[:, row]) <= LARGEST)).argmax())
            names = [self.features[k]]
            value = by_feature[k, row]
            if not np.isnan(value):
                what = "an infinite value" if np.isinf(value) else f"the value {value:.3g}"
        raise MixdaError(
            f"{place}: column {names[0]!r} has {what} in row {first + row + 1}; correct it, leave "
            "the column out, or skip such rows (missing='drop' in Python, --missing drop on the "
            "command line)."
        )


@dataclass(frozen=True)
class _ParquetPart:
    path: Path
    row_groups: tuple[int, ...]
    asked: _Columns

    def blocks(self) -> Iterator[Rows]:
        pa = pyarrow()
        rows = rows_per_block(len(self.asked.features))
        for group in self.row_groups:
            place, first = f"{self.path}, row group {group + 1}", 0
            with _reading(place), pa.parquet.ParquetFile(str(self.path), pre_buffer=False) as file:
                records = file.iter_batches(
                    rows, row_groups=[group], columns=self.asked.names, use_threads=False
                )
                for record in records:
                    yield self.asked.rows(record, place, first)
                    first += record.num_rows


@dataclass(frozen=True)
class _FilePart:
    file: TableFile
    asked: _Columns

    def blocks(self) -> Iterator[Rows]:
        first, rows = 0, rows_per_block(len(self.asked.features))
        for record in self.file.record_batches(self.asked.names, self.asked.extra, rows):
            yield self.asked.rows(record, str(self.file.path), first)
            first += record.num_rows


@dataclass(frozen=True)
class _NpyPart:
    path: Path
    start: int
    stop: int
    places: tuple[int, ...]
    asked: _Columns

    def blocks(self) -> Iterator[Rows]:
        X = np.load(self.path, mmap_mode="r", allow_pickle=False)
        step = rows_per_block(len(self.places))
        pa = pyarrow()
        for first in range(self.start, self.stop, step):
            block = X[first : min(first + step, self.stop), list(self.places)]
            arrays = [pa.array(np.asarray(column, dtype=np.float64)) for column in block.T]
            record = pa.RecordBatch.from_arrays(arrays, list(self.asked.features))
            yield self.asked.rows(record, str(self.path), first)


def _parquet_parts(path: Path, asked: _Columns) -> list[_ParquetPart]:
    pa = pyarrow()
    with _reading(str(path)), pa.parquet.ParquetFile(str(path), pre_buffer=False) as file:
        counts = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
    parts: list[_ParquetPart] = []
    waiting: list[int] = []
    for k in range(len(counts)):
        waiting.append(k)
        if sum(counts[i] for i in waiting) >= _PART_ROWS or k == len(counts) - 1:
            parts.append(_ParquetPart(path, tuple(waiting), asked))
            waiting = []
    return parts


def _npy_parts(file: TableFile, asked: _Columns) -> list[_NpyPart]:
    names = list(file.kinds)
    places = tuple(names.index(name) for name in asked.features)
    n, step = file.n_rows or 0, 4 * rows_per_block(len(names))
    starts = range(0, n, step)
    return [_NpyPart(file.path, k, min(k + step, n), places, asked) for k in starts]


def _numbers(column: Any) -> NDArray[Any]:
    """Return a column as numbers, NaN where there is none."""
    pa = pyarrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        column = column.cast(pa.float64(), safe=False)
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def _encoded(record: Any, name: str) -> Column:
    """Return a column of names as text; code -1 where there is none."""
    from mixda.tables import class_names

    pa = pyarrow()
    column = record.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = column.dictionary.to_pylist()
    names = [str(value) for value in values]
    codes = np.asarray(column.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.intp)
    absent = np.array([v is None or str(v) in MISSING_NAMES for v in values] + [True])  # of code -1
    codes = np.where(absent[codes], -1, codes)
    # one by one: 3.0 is "3" whatever stands beside it
    return Column([str(class_names(np.array([value]))[0]) for value in names], codes)


@contextmanager
def _reading(place: str) -> Iterator[None]:
    """Turn what pyarrow raises about a file into one sentence."""
    pa = pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())[:200].rstrip(". ")
        raise MixdaError(f"{place} cannot be read: {reason}.") from None


def _at(absent: NDArray[np.bool_] | None, row: int) -> bool:
    return absent is not None and bool(absent[row])
