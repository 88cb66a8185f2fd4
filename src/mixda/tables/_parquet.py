"""Parquet files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mixda._core.errors import MixdaError
from mixda.tables._file import TableFile, check_column_names, column_kind, pyarrow

PARQUET_SUFFIXES = (".parquet", ".pq")
_MIN_ROWS_PER_PARTITION = 1 << 16  # smaller neighboring row groups are combined


def open_parquet(path: Path) -> TableFile:
    """Read the schema of a parquet file."""
    pa = pyarrow()
    with pa.parquet.ParquetFile(str(path), pre_buffer=False) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    if n_rows == 0:
        raise MixdaError(f"{path} has no rows.")
    kinds = {field.name: column_kind(field.type) for field in schema}
    if len(kinds) < len(schema):
        check_column_names(path, schema.names)
    kinds.pop("__index_level_0__", None)  # the index of a pandas dataframe
    return _ParquetFile(path, kinds, n_rows)


def combined_row_groups(path: Path) -> list[tuple[int, ...]]:
    """Return the row groups of a file, small neighbors together."""
    with pyarrow().parquet.ParquetFile(str(path), pre_buffer=False) as file:
        counts = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
    groups: list[tuple[int, ...]] = []
    pending: list[int] = []
    for k in range(len(counts)):
        pending.append(k)
        if sum(counts[i] for i in pending) >= _MIN_ROWS_PER_PARTITION or k == len(counts) - 1:
            groups.append(tuple(pending))
            pending = []
    return groups


@dataclass(frozen=True)
class _ParquetFile(TableFile):
    row_groups: tuple[int, ...] | None = field(default=None, kw_only=True)

    def partitions(self) -> list[TableFile]:
        """Return the row groups, small neighbors together."""
        return [replace(self, row_groups=groups) for groups in combined_row_groups(self.path)]

    def _records(
        self, columns: Sequence[str], as_written: Collection[str], rows: int
    ) -> Iterator[Any]:
        pa = pyarrow()
        with pa.parquet.ParquetFile(str(self.path), pre_buffer=False) as file:
            records = file.iter_batches(
                rows, row_groups=self.row_groups, columns=list(columns), use_threads=False
            )
            for record in records:
                arrays = [
                    self._array(record.column(name), name, name in as_written) for name in columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, list(columns))

    def _array(self, column: Any, name: str, as_written: bool) -> Any:
        pa = pyarrow()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if as_written or self.kinds[name] == "bool":
            return column
        if self.kinds[name] in ("number", "empty"):
            return column.cast(pa.float64(), safe=False)
        return column.cast(pa.string())
