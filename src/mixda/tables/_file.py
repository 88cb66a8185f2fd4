"""What table files of all formats share: column kinds, record batches, errors that name the file.

One subclass of `TableFile` per format reads the file: `_csv`, `_parquet`, `_numpy`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mixda._core.errors import MixdaError
from mixda.tables._cells import MISSING_NUMBERS, is_number

_SEARCH_ROWS = 65_536  # rows read at a time while looking for a cell
_MAX_SHOWN_CHARACTERS = 40  # of a cell, in a message


def pyarrow() -> Any:
    """Return pyarrow, or raise an error that says how to install it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise MixdaError(
            "reading and writing tables requires pyarrow; pip install 'mixda[cli]'"
        ) from None
    return pyarrow


@dataclass(frozen=True)
class TableFile:
    """A file whose columns are known and whose rows are not read yet.

    `kinds` maps each column to "number", "bool", "text" or "other". The kinds "label" and "domain"
    (``y`` and ``d`` of an npz file) are features only on request. "empty" means that the beginning
    of the file holds no value of that column.
    """

    path: Path
    kinds: dict[str, str]
    n_rows: int | None
    decimal: str = field(default=".", kw_only=True)

    def record_batches(
        self, columns: Sequence[str], as_written: Collection[str], rows: int
    ) -> Iterator[Any]:
        """Yield pyarrow record batches of at most `rows` rows.

        Columns in `as_written` keep the type they have in the file (text in a csv file). Other
        columns are float64 if they hold numbers, else text.
        """
        with errors_naming(self.path):
            for record in self._records(columns, as_written, rows):
                for start in range(0, record.num_rows, rows):
                    yield record.slice(start, rows)

    def partitions(self) -> list[TableFile]:
        """Return parts of the file that can be read independently, in order."""
        return [self]

    def evidence(self, name: str) -> str:
        """Return, in parentheses, why a column is not numeric."""
        invalid = self.first_invalid(name) if self.kinds[name] == "text" else None
        if invalid is None:
            return "" if self.kinds[name] == "text" else f" ({self.kinds[name]})"
        row, cell = invalid
        return f" ({shortened(cell)!r} in row {row})"

    def first_invalid(self, name: str) -> tuple[int, str] | None:
        """Return row (from 1) and text of the first cell that is not of the column's kind."""
        first_row = 1
        for record in self.record_batches([name], [name], _SEARCH_ROWS):
            column = record.column(0)
            invalid = {v for v in column.unique().to_pylist() if not self._is_valid(v, name)}
            if invalid:
                index = next(k for k, v in enumerate(column.to_pylist()) if v in invalid)
                return first_row + index, column[index].as_py()
            first_row += len(column)
        return None

    def _is_valid(self, cell: str | None, name: str) -> bool:
        cell = (cell or "").strip()
        if cell in MISSING_NUMBERS:
            return True
        if self.kinds[name] == "bool":
            return cell.lower() in ("true", "false", "1", "0")
        return is_number(cell, self.decimal)

    def _records(
        self, columns: Sequence[str], as_written: Collection[str], rows: int
    ) -> Iterator[Any]:
        raise NotImplementedError


@contextmanager
def errors_naming(path: Path) -> Iterator[None]:
    """Turn exceptions of pyarrow, numpy and the system into a `MixdaError` that names the file."""
    pa = pyarrow()
    try:
        yield
    except MixdaError:
        raise
    except FileNotFoundError:
        raise MixdaError(f"{path} does not exist.") from None
    except MemoryError:
        raise MixdaError(
            f"{path} requires more memory than is available; the file may be damaged."
        ) from None
    except UnicodeError:
        raise MixdaError(f"{path} contains text that is not UTF-8; save it as UTF-8.") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise MixdaError(f"{path} cannot be read as a table: {reason_of(error)}.") from None


def reason_of(error: Exception) -> str:
    """Return the message of another library's exception on one line."""
    message = str(getattr(error, "strerror", None) or error)
    return " ".join(message.split())[:200].rstrip(". ")


def shortened(cell: str) -> str:
    """Return the beginning of a cell, for a message."""
    return cell[:_MAX_SHOWN_CHARACTERS]


def column_kind(arrow_type: Any) -> str:
    """Return the kind of a column from its pyarrow type."""
    types = pyarrow().types
    if types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if (
        types.is_integer(arrow_type)
        or types.is_floating(arrow_type)
        or types.is_decimal(arrow_type)
    ):
        return "number"
    if types.is_boolean(arrow_type):
        return "bool"
    if types.is_null(arrow_type):
        return "empty"
    is_text = types.is_string(arrow_type) or types.is_large_string(arrow_type)
    return "text" if is_text else "other"


def check_column_names(path: Path, names: Sequence[str]) -> None:
    """Reject column names that are repeated, empty, or numbers (a file without a header)."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise MixdaError(
            f"{path} has more than one column {repeated[0]!r}; column names must be unique."
        )
    if "" in names:
        raise MixdaError(f"{path}: column {names.index('') + 1} has no name; give it one.")
    default_names = [str(k) for k in range(len(names))]  # as pandas names them
    if names != default_names and all(is_number(name, ".") for name in names):
        raise MixdaError(
            f"{path} has numbers in its first line instead of column names; add a header line "
            "with one name per column."
        )
