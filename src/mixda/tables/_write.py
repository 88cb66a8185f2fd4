"""Write csv and parquet files from batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from mixda._core.atomic import check_output, replacing
from mixda._core.errors import MixdaError
from mixda.tables._file import pyarrow


def write_table(path: str | PathLike[str], batches: Iterable[Any]) -> int:
    r"""Write batches to a csv or parquet file; return the number of rows written.

    The file is replaced atomically: if writing fails, an older file stays unchanged.

    Parameters
    ----------
    path : path
        Ends in ``.csv`` or ``.parquet``, which sets the format.
    batches : iterable of dict of arrays, or of pyarrow record batches
        At least one. All have the same columns.

    Returns
    -------
    int

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mixda.tables import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "out.csv")
    ...     n = write_table(path, [{"label": ["ok"], "p": [0.5]}, {"label": ["no"], "p": [0.25]}])
    ...     path.read_text(), n
    ('"label","p"\n"ok",0.5\n"no",0.25\n', 2)
    """
    pa = pyarrow()
    path = Path(path)
    check_writable(path)
    n_rows, writer, schema = 0, None, None
    with replacing(path) as file:
        try:
            for batch in batches:  # an error raised by the iterable itself passes through
                try:
                    record = _record_batch(batch)
                    if writer is None:
                        schema = record.schema
                        writer = _open_writer(path, file, schema)
                    writer.write_batch(record if record.schema == schema else record.cast(schema))
                except pa.ArrowException as error:
                    raise MixdaError(f"{path} cannot be written: {error}") from None
                n_rows += record.num_rows
            if writer is None:
                raise MixdaError(f"there is nothing to write to {path}: batches is empty.")
        finally:
            if writer is not None:
                writer.close()
    return n_rows


def check_writable(path: Path) -> None:
    """Check the suffix and the folder of an output file before any work is done."""
    if path.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise MixdaError(f"{path} must end in .csv or .parquet, which sets the format.")
    check_output(path)


def _record_batch(batch: Any) -> Any:
    pa = pyarrow()
    if isinstance(batch, Mapping):
        return pa.RecordBatch.from_pydict({name: pa.array(v) for name, v in batch.items()})
    return batch


def _open_writer(path: Path, file: Any, schema: Any) -> Any:
    pa = pyarrow()
    if path.suffix.lower() == ".csv":
        return pa.csv.CSVWriter(file, schema)
    return pa.parquet.ParquetWriter(file, schema)
