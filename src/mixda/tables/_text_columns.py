"""Columns of text that were probably meant to be numbers.

One mistyped cell turns a numeric column into text. Leaving it out silently would lose a feature.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from mixda._core.errors import MixdaError
from mixda.tables._cells import (
    MISSING_NUMBERS,
    has_grouped_digits,
    is_number,
    resembles_number,
)
from mixda.tables._file import TableFile

_INSPECTED_ROWS = 65_536


def check_text_columns(files: Iterable[TableFile], names: Iterable[str]) -> None:
    """Raise an error for text columns in which most cells look like numbers.

    Only warn if all cells are numbers with the other decimal sign, because they may be versions,
    or if a parquet file stores numbers as text, because they may be identifiers.
    """
    files = list(files)
    for name in names:
        for file in files:
            if file.kinds.get(name) == "text" and _warn_or_raise(file, name):
                break


def _warn_or_raise(file: TableFile, name: str) -> bool:
    """Check one text column; return whether a warning was issued."""
    record = next(iter(file.record_batches([name], (), _INSPECTED_ROWS)))
    column = record.column(0)
    cells = {v.strip() for v in column.unique().to_pylist() if v is not None}
    cells -= set(MISSING_NUMBERS)
    numeric = {cell for cell in cells if resembles_number(cell)}
    values = [v.strip() for v in column.to_pylist() if v is not None and v.strip() in cells]
    if not values or 2 * sum(value in numeric for value in values) < len(values):
        return False
    first_invalid = file.first_invalid(name)
    invalid = {cell for cell in cells if not is_number(cell, file.decimal)}
    invalid |= set() if first_invalid is None else {first_invalid[1]}
    other_decimal = "." if file.decimal == "," else ","
    uniform = all(is_number(cell, other_decimal) for cell in cells | invalid)
    where = f"{file.path}: column {name!r}"
    if uniform and not any(has_grouped_digits(cell) for cell in invalid):
        reason = f"it is text{file.evidence(name)}"
        if invalid:
            reason += f" and the decimal sign of the file is {file.decimal!r}"
        warnings.warn(
            f"{where} is not used as a feature because {reason}; correct it, or leave the column "
            "out (drop, --drop).",
            stacklevel=2,
        )
        return True
    raise MixdaError(
        f"{where} looks like numbers but is text{file.evidence(name)}; "
        f"{_remedy(invalid, file.decimal)}, or leave the column out (drop, --drop)."
    )


def _remedy(invalid: set[str], decimal: str) -> str:
    if not invalid:
        return "store it as numbers"
    if all(resembles_number(cell) for cell in invalid):
        return f"write numbers with {decimal!r} as decimal sign and no thousands separator"
    return "correct such cells, or empty them and skip their rows (missing='drop', --missing drop)"
