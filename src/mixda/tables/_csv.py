"""Csv files: separator, encoding and decimal sign are detected from the file."""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixda._core.errors import MixdaError
from mixda.tables._cells import MISSING_NUMBERS, decimal_sign
from mixda.tables._file import TableFile, check_column_names, column_kind, pyarrow, shortened

CSV_SUFFIXES = (".csv", ".tsv", ".txt", ".tab", ".csv.gz", ".tsv.gz", ".txt.gz")

_HEAD_BYTES = 1 << 20  # from which separator and decimal sign are detected
_BLOCK_BYTES = 4 << 20  # parsed at a time; no line may be longer
_SEPARATORS = ",;\t|"


def open_csv(path: Path) -> TableFile:
    """Detect the dialect of a csv file and the kinds of its columns."""
    encoding, head, n_rows = _scan(path)
    lines = head.splitlines()
    if not "".join(lines).strip():
        raise MixdaError(f"{path} is empty; a table needs a header line and at least one row.")
    _check_no_remarks(path, lines)
    separator = _detect_separator(lines)
    decimal = decimal_sign(lines, separator)
    file = _CsvFile(path, {}, None, {}, separator, encoding, decimal=decimal)
    with _open_stream(file, None) as reader:
        fields = [(field.name, column_kind(field.type)) for field in reader.schema]
        first = next(iter(reader), None)
    if first is None or first.num_rows == 0:
        raise MixdaError(f"{path} has column names but no rows.")
    if fields and not fields[0][0].strip():
        fields = fields[1:]  # the row index that pandas and R write
    header = {name.strip(): name for name, _ in fields}
    check_column_names(path, [name.strip() for name, _ in fields])
    kinds = {name.strip(): "text" if kind == "other" else kind for name, kind in fields}
    return _CsvFile(path, kinds, n_rows, header, separator, encoding, decimal=decimal)


@dataclass(frozen=True)
class _CsvFile(TableFile):
    header: dict[str, str]  # column names as the file spells them, with surrounding spaces
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
            types[self.header[name]] = kind
        try:
            with _open_stream(self, types) as reader:
                for record in reader:
                    yield _stripped(pa.RecordBatch.from_arrays(record.columns, list(columns)))
        except pa.ArrowInvalid as error:
            if "conversion error" in str(error):
                self._raise_for_invalid_cell(columns, types)
            raise

    def _raise_for_invalid_cell(self, columns: Sequence[str], types: dict[str, Any]) -> None:
        """Name the first cell that is not of the kind found at the beginning of the file."""
        pa = pyarrow()
        for name in columns:
            is_text = types[self.header[name]] == pa.string()
            invalid = None if is_text else self.first_invalid(name)
            if invalid is not None:
                row, cell = invalid
                kind = "boolean" if self.kinds[name] == "bool" else "number"
                raise MixdaError(
                    f"{self.path}: column {name!r} has {shortened(cell)!r} in row {row}, not a "
                    f"{kind}; correct the cell or leave the column out."
                )


def _scan(path: Path) -> tuple[str, str, int | None]:
    """Read the file once; return its encoding, its first text, and its number of rows.

    The number of rows is None if lines may not be rows: quotes, or empty lines.
    """
    pa = pyarrow()
    n_lines, lines_are_rows, last = 0, True, b"\n"
    with pa.input_stream(str(path)) as stream:
        head = stream.read(_HEAD_BYTES)
        if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16", head[: len(head) // 2 * 2].decode("utf-16", "replace"), None
        if b"\0" in head:
            raise MixdaError(f"{path} is not a text file; check that it is a csv file.")
        decoder: Any = codecs.getincrementaldecoder("utf-8")()
        encoding, block = "utf-8", head
        while block:
            if encoding == "utf-8":
                try:
                    decoder.decode(block)
                except UnicodeDecodeError:
                    encoding = "latin-1"  # which decodes any byte
            n_lines += block.count(b"\n")
            seam = last + block
            lines_are_rows = lines_are_rows and not any(
                mark in seam for mark in (b'"', b"\n\n", b"\n\r\n", b"\r\r")
            )
            last = block[-2:]
            block = stream.read(_BLOCK_BYTES)
    text = head.decode("utf-8-sig" if encoding == "utf-8" else encoding, "ignore")
    n_rows = n_lines - last.endswith(b"\n") if lines_are_rows and n_lines else None
    return encoding, text, n_rows


def _check_no_remarks(path: Path, lines: list[str]) -> None:
    """Reject comment lines such as "# exported on Monday" above the column names."""
    lines = [line for line in lines[:1000] if line.strip()]
    n_remarks = next((k for k, line in enumerate(lines) if not line.startswith("#")), 0)
    separator = _detect_separator(lines[n_remarks:])
    is_header = n_remarks == 1 and lines[0].count(separator) == lines[1].count(separator)
    if n_remarks and not is_header:  # the first column name may start with #
        raise MixdaError(
            f"{path} begins with {n_remarks} comment line{'s' * (n_remarks > 1)} (#); delete "
            "everything above the column names."
        )


def _detect_separator(lines: list[str]) -> str:
    """Return the separator that splits the first lines into the same, largest number of cells."""
    sample = [re.sub(r'"[^"]*"', "", line) for line in lines[:20] if line.strip()]
    counts = {mark: [line.count(mark) for line in sample] for mark in _SEPARATORS}
    even = {mark: n[0] for mark, n in counts.items() if n[0] and min(n) == max(n)}
    if not even:  # lines of unequal length, which pyarrow will report
        even = {mark: n[0] for mark, n in counts.items() if n[0]} or {",": 0}
    return max(even, key=lambda mark: even[mark])


@contextmanager
def _open_stream(file: _CsvFile, types: dict[str, Any] | None) -> Iterator[Any]:
    """Open a stream of record batches; `types` selects columns, their order and their types."""
    csv = pyarrow().csv
    reader = csv.open_csv(
        str(file.path),
        csv.ReadOptions(block_size=_BLOCK_BYTES, encoding=file.encoding, use_threads=False),
        csv.ParseOptions(delimiter=file.separator),
        csv.ConvertOptions(
            column_types=types,
            include_columns=None if types is None else list(types),
            null_values=list(MISSING_NUMBERS),
            decimal_point=file.decimal,
            true_values=["true", "True", "TRUE", "1"],
            false_values=["false", "False", "FALSE", "0"],
        ),
    )
    with reader:
        yield reader


def _stripped(record: Any) -> Any:
    """Return a record batch without whitespace around text."""
    pa = pyarrow()
    columns = [
        pa.compute.utf8_trim_whitespace(column) if pa.types.is_string(column.type) else column
        for column in record.columns
    ]
    return pa.RecordBatch.from_arrays(columns, record.schema.names)
