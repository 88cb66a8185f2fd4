"""Parquet files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixda._core.errors import MixdaError
from mixda.tables._file import TableFile, check_column_names, column_kind, pyarrow

PARQUET_SUFFIXES = (".parquet", ".pq")


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


@dataclass(frozen=True)
class _ParquetFile(TableFile):
    def _records(
        self, columns: Sequence[str], as_written: Collection[str], rows: int
    ) -> Iterator[Any]:
        pa = pyarrow()
        with pa.parquet.ParquetFile(str(self.path), pre_buffer=False) as file:
            for record in file.iter_batches(rows, columns=list(columns), use_threads=False):
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
