"""One reader per kind of table file: csv, parquet, and numpy's npz and npy.

A reader knows its columns and their kinds after a look at the head of the file, and streams
record batches of pyarrow. What it cannot read becomes one sentence that names the file.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda.tables._cells import MISSING, decimal_sign, is_number

CSV_SUFFIXES = (".csv", ".tsv", ".txt", ".tab", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
NUMPY_SUFFIXES = (".npz", ".npy")
SUFFIXES = (*CSV_SUFFIXES, *PARQUET_SUFFIXES, *NUMPY_SUFFIXES)

_BLOCK = 4 << 20  # bytes of csv that are parsed at once; a line may not be longer
_SEPARATORS = ",;\t|"


def pyarrow() -> Any:
    """Return pyarrow, or say how to install it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise MixdaError(
            "reading and writing tables needs pyarrow; pip install 'mixda[cli]'"
        ) from None
    return pyarrow


def open_file(path: Path) -> TableFile:
    """Look at the head of a file and return its reader."""
    name = path.name.lower()
    with _reading(path):
        if name.endswith(PARQUET_SUFFIXES):
            return _open_parquet(path)
        if name.endswith(NUMPY_SUFFIXES):
            return _open_numpy(path)
        if name.endswith(CSV_SUFFIXES):
            return _open_csv(path)
    raise MixdaError(
        f"{path} is of an unknown kind; tables are read from csv, parquet, npz and npy files "
        "(save spreadsheets as csv)."
    )


@dataclass(frozen=True)
class TableFile:
    """One file; `kinds` says of every column what it holds: "number", "bool", "text" or "other".

    Columns of kind "label" and "domain" (``y`` and ``d`` of an npz) are never features unless
    they are asked for; "empty" means that no value was seen in the head of the file.
    """

    path: Path
    kinds: dict[str, str]
    n_rows: int | None
    decimal: str = field(default=".", kw_only=True)

    def record_batches(
        self, columns: Sequence[str], as_written: Collection[str], rows: int
    ) -> Iterator[Any]:
        """Yield record batches of at most `rows` rows.

        Columns of `as_written` come as the file has them (text in a csv), numbers as float64,
        the rest as text.
        """
        with _reading(self.path):
            for record in self._records(columns, as_written, rows):
                for start in range(0, record.num_rows, rows):
                    yield record.slice(start, rows)

    def proof(self, name: str) -> str:
        """Show that a column is not made of numbers."""
        wrong = self.first_wrong(name) if self.kinds[name] == "text" else None
        if wrong is None:
            return "" if self.kinds[name] == "text" else f" ({self.kinds[name]})"
        return f" ({wrong[1][:40]!r} in row {wrong[0]})"

    def first_wrong(self, name: str) -> tuple[int, str] | None:
        """Row, from 1, and text of the first cell that is no number, or no truth value."""
        first = 1
        for record in self.record_batches([name], [name], 65_536):
            column = record.column(0)
            wrong = {v for v in column.unique().to_pylist() if not self._fits(v, name)}
            if wrong:
                place = next(k for k, v in enumerate(column.to_pylist()) if v in wrong)
                return first + place, column[place].as_py()
            first += len(column)
        return None

    def _fits(self, value: str | None, name: str) -> bool:
        value = (value or "").strip()
        if value in MISSING:
            return True
        if self.kinds[name] == "bool":
            return value.lower() in ("true", "false", "1", "0")
        return is_number(value, self.decimal)

    def _records(
        self, columns: Sequence[str], as_written: Collection[str], rows: int
    ) -> Iterator[Any]:
        raise NotImplementedError


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what libraries raise about a file into one sentence."""
    pa = pyarrow()
    try:
        yield
    except _SentenceError as error:
        raise MixdaError(str(error)) from None
    except FileNotFoundError:
        raise MixdaError(f"{path} does not exist.") from None
    except MemoryError:
        raise MixdaError(f"{path} asks for more memory than there is; is it damaged?") from None
    except UnicodeError:
        raise MixdaError(f"{path} holds text that is not UTF-8; save it as UTF-8.") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())[:200].rstrip(". ")
        raise MixdaError(f"{path} cannot be read as a table: {reason}.") from None


class _SentenceError(ValueError):
    """An error that already says everything."""


@dataclass(frozen=True)
class _CsvFile(TableFile):
    written: dict[str, str]  # the names as they stand in the file, with their spaces
    separator: str
    encoding: str

    def _records(
        self, columns: Sequence[str], as_written: Collection[str], rows: int
    ) -> Iterator[Any]:
        pa = pyarrow()
        types = {}
        for name in columns:
            numeric = name not in as_written and self.kinds[name] in ("number", "empty")
            boolean = name not in as_written and self.kinds[name] == "bool"
            kind = pa.float64() if numeric else pa.bool_() if boolean else pa.string()
            types[self.written[name]] = kind
        try:
            with _csv_reader(self, types) as reader:
                for record in reader:
                    yield _trimmed(pa.RecordBatch.from_arrays(record.columns, list(columns)))
        except pa.ArrowInvalid as error:
            self._explain(columns, types, error)
            raise

    def _explain(self, columns: Sequence[str], types: dict[str, Any], error: Exception) -> None:
        """Find the cell that is not of the kind that the head of the file promised."""
        pa = pyarrow()
        if "conversion error" not in str(error):
            return
        for name in columns:
            wrong = None if types[self.written[name]] == pa.string() else self.first_wrong(name)
            if wrong is not None:
                kind = "truth value" if self.kinds[name] == "bool" else "number"
                raise _SentenceError(
                    f"{self.path}: column {name!r} has {wrong[1][:40]!r} in row {wrong[0]}, not a "
                    f"{kind}; correct the cell or leave the column out."
                )


def _open_csv(path: Path) -> TableFile:
    encoding, head, n_lines = _look(path)
    lines = head.splitlines()
    if not "".join(lines).strip():
        raise _SentenceError(f"{path} is empty; a table needs a line of column names and rows.")
    _check_remarks(path, lines)
    separator = _sniff_separator(lines)
    decimal = decimal_sign(lines, separator)
    guess = _CsvFile(path, {}, None, {}, separator, encoding, decimal=decimal)
    with _csv_reader(guess, None) as reader:
        fields = [(field.name, _kind(field.type)) for field in reader.schema]
        first = next(iter(reader), None)
    if first is None or first.num_rows == 0:
        raise _SentenceError(f"{path} has column names but no rows.")
    if fields and not fields[0][0].strip():
        fields = fields[1:]  # the row numbers that pandas and R write
    written = {name.strip(): name for name, _ in fields}
    _check_header(path, [name.strip() for name, _ in fields])
    kinds = {name.strip(): "text" if kind == "other" else kind for name, kind in fields}
    return _CsvFile(path, kinds, n_lines, written, separator, encoding, decimal=decimal)


def _look(path: Path) -> tuple[str, str, int | None]:
    """Return the encoding, the first megabyte of text, and the rows if lines are rows for sure."""
    pa = pyarrow()
    lines, certain, last = 0, True, b"\n"
    with pa.input_stream(str(path)) as stream:
        head = stream.read(1 << 20)
        if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16", head[: len(head) // 2 * 2].decode("utf-16", "replace"), None
        if b"\0" in head:
            raise _SentenceError(f"{path} is not a text file; is it really a csv?")
        decoder: Any = codecs.getincrementaldecoder("utf-8")()
        encoding, block = "utf-8", head
        while block:
            if encoding == "utf-8":
                try:
                    decoder.decode(block)
                except UnicodeDecodeError:
                    encoding = "latin-1"  # every byte is a letter there
            lines += block.count(b"\n")
            seam = last + block
            certain = certain and not any(
                mark in seam for mark in (b'"', b"\n\n", b"\n\r\n", b"\r\r")
            )
            last = block[-2:]
            block = stream.read(_BLOCK)
    text = head.decode("utf-8-sig" if encoding == "utf-8" else encoding, "ignore")
    return encoding, text, lines - last.endswith(b"\n") if certain and lines else None


def _check_remarks(path: Path, lines: list[str]) -> None:
    """Refuse lines such as "# exported on Monday" above the names of the columns."""
    lines = [line for line in lines[:1000] if line.strip()]
    remarks = next((k for k, line in enumerate(lines) if not line.startswith("#")), 0)
    separator = _sniff_separator(lines[remarks:])
    named = remarks == 1 and lines[0].count(separator) == lines[1].count(separator)
    if remarks and not named:  # the names themselves may begin with #
        raise _SentenceError(
            f"{path} begins with {remarks} line{'s' * (remarks > 1)} of remarks (#); delete what "
            "stands above the line of column names."
        )


def _sniff_separator(lines: list[str]) -> str:
    """Return the separator that cuts the first lines into the same, largest number of cells."""
    sample = [re.sub(r'"[^"]*"', "", line) for line in lines[:20] if line.strip()]
    counts = {mark: [line.count(mark) for line in sample] for mark in _SEPARATORS}
    even = {mark: n[0] for mark, n in counts.items() if n[0] and min(n) == max(n)}
    if not even:  # unequal lines: the reader will say which
        even = {mark: n[0] for mark, n in counts.items() if n[0]} or {",": 0}
    return max(even, key=lambda mark: even[mark])


@contextmanager
def _csv_reader(file: _CsvFile, types: dict[str, Any] | None) -> Iterator[Any]:
    """Open the stream; with `types` only those columns, in that order."""
    csv = pyarrow().csv
    reader = csv.open_csv(
        str(file.path),
        csv.ReadOptions(block_size=_BLOCK, encoding=file.encoding, use_threads=False),
        csv.ParseOptions(delimiter=file.separator),
        csv.ConvertOptions(
            column_types=types,
            include_columns=None if types is None else list(types),
            null_values=list(MISSING),
            decimal_point=file.decimal,
            true_values=["true", "True", "TRUE", "1"],
            false_values=["false", "False", "FALSE", "0"],
        ),
    )
    with reader:
        yield reader


def _check_header(path: Path, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _SentenceError(
            f"{path} has more than one column {twice[0]!r}; give each its own name."
        )
    if "" in names:
        raise _SentenceError(f"{path}: column {names.index('') + 1} has no name; give it one.")
    counted = [str(k) for k in range(len(names))]  # what pandas calls columns without names
    if names != counted and all(is_number(name, ".") for name in names):
        raise _SentenceError(
            f"{path} has numbers in its first line where column names should stand; add a line "
            "with a name for every column."
        )


def _trimmed(record: Any) -> Any:
    """Text without the blanks around it."""
    pa = pyarrow()
    columns = [
        pa.compute.utf8_trim_whitespace(column) if pa.types.is_string(column.type) else column
        for column in record.columns
    ]
    return pa.RecordBatch.from_arrays(columns, record.schema.names)


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


def _open_parquet(path: Path) -> TableFile:
    pa = pyarrow()
    with pa.parquet.ParquetFile(str(path), pre_buffer=False) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    if n_rows == 0:
        raise _SentenceError(f"{path} has no rows.")
    kinds = {field.name: _kind(field.type) for field in schema}
    if len(kinds) < len(schema):
        _check_header(path, schema.names)
    kinds.pop("__index_level_0__", None)  # the row numbers of pandas
    return _ParquetFile(path, kinds, n_rows)


def _kind(type_: Any) -> str:
    types = pyarrow().types
    if types.is_dictionary(type_):
        type_ = type_.value_type
    if types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_):
        return "number"
    if types.is_boolean(type_):
        return "bool"
    if types.is_null(type_):
        return "empty"
    return "text" if types.is_string(type_) or types.is_large_string(type_) else "other"


@dataclass(frozen=True)
class _NumpyFile(TableFile):
    """Arrays of an npz or npy; they are read whole, but for an npy, which is mapped."""

    def _records(
        self, columns: Sequence[str], as_written: Collection[str], rows: int
    ) -> Iterator[Any]:
        pa = pyarrow()
        X, others = _numpy_arrays(self.path)
        places = {name: k for k, name in enumerate(_feature_names(self.path, X, others))}
        for start in range(0, len(X), rows):
            part = slice(start, start + rows)
            arrays = [
                pa.array(np.asarray(X[part, places[name]], dtype=np.float64))
                if name in places
                else pa.array(others[name][part])
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, list(columns))


def _open_numpy(path: Path) -> TableFile:
    X, others = _numpy_arrays(path)
    names = _feature_names(path, X, others)
    _check_header(path, [*names, *(name for name in ("y", "d") if name in others)])
    kinds = dict.fromkeys(names, "bool" if X.dtype.kind == "b" else "number")
    kinds.update({name: kind for name, kind in (("y", "label"), ("d", "domain")) if name in others})
    return _NumpyFile(path, kinds, len(X))


def _numpy_arrays(path: Path) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """X of shape (n, d), and what stands beside it: y, d and feature_names."""
    arrays = _load(path)
    if "X" not in arrays:
        raise _SentenceError(
            f"{path} has no array X; save samples with numpy.savez(path, X=X, y=y), X of shape "
            "(n, d)."
        )
    X = arrays.pop("X")
    if X.ndim != 2 or X.dtype.kind not in "fiub" or 0 in X.shape:
        raise _SentenceError(
            f"{path}: X must be numbers of shape (n, d), got {X.dtype} of shape {X.shape}."
        )
    for name in ("y", "d"):
        if name in arrays and arrays[name].shape != (len(X),):
            raise _SentenceError(
                f"{path}: {name} has shape {arrays[name].shape}, but X has {len(X)} rows."
            )
    return X, arrays


def _load(path: Path) -> dict[str, NDArray[Any]]:
    try:
        if path.suffix.lower() == ".npy":
            return {"X": np.load(path, mmap_mode="r", allow_pickle=False)}
        with np.load(path, allow_pickle=False) as archive:
            names = [name for name in ("X", "y", "d", "feature_names") if name in archive]
            return {name: _plain(path, archive, name) for name in names}
    except (OSError, _SentenceError):
        raise
    except Exception as error:  # of any kind: zip, zlib, struct and tokenize meet foreign bytes
        raise MixdaError(str(error)) from None


def _plain(path: Path, archive: Any, name: str) -> NDArray[Any]:
    """One array; numpy keeps Python objects as a pickle, which is never opened."""
    try:
        return np.asarray(archive[name])
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        what, kind = ("numbers", "float") if name == "X" else ("strings", "str")
        raise _SentenceError(
            f"{path}: {name} is an array of Python objects; save it as {what}: "
            f"{name}.astype({kind})."
        ) from None


def _feature_names(path: Path, X: NDArray[Any], others: dict[str, NDArray[Any]]) -> list[str]:
    if "feature_names" not in others:
        return [f"x{k}" for k in range(X.shape[1])]
    names = [str(name) for name in others["feature_names"].ravel()]
    if len(names) != X.shape[1]:
        raise _SentenceError(
            f"{path} has {len(names)} feature_names for {X.shape[1]} columns of X."
        )
    return names
