"""What the text of a cell says: a number, what looks like one, or no value.

Columns of text in which most cells look like numbers are features that a slip would cost without
a word; `check_left_out` says which slip.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mixda._table_files import TableFile

NO_NAME = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "?")
MISSING = (*NO_NAME, "n/a", "None", "-")  # of numbers: a class may be called "None" or "-"

_ROWS = 65_536  # that tell what a column is
_POWER = r"([eE][-+]?\d+)?"
_READABLE = {
    sign: re.compile(
        rf"[-+]?(\d+{re.escape(sign)}?\d*|{re.escape(sign)}\d+){_POWER}|[-+]?(?i:nan|inf|infinity)"
    )
    for sign in ".,"
}
_GROUPED = re.compile(r"[-+\u2212]?\d{1,3}([ .,'\u2019\u00a0\u202f_]\d{3})+([.,]\d+)?")
_SIMILAR = re.compile(rf"[-+\u2212]?(\d+[.,]?\d*|[.,]\d+){_POWER}")


def is_number(text: str, decimal: str) -> bool:
    """Whether a reader of this decimal sign takes the text for a number."""
    return _READABLE[decimal].fullmatch(text.strip()) is not None


def decimal_sign(lines: list[str], separator: str) -> str:
    """Return a comma if more cells are like 1,5 than like 1.5."""
    if separator == ",":
        return "."
    text, edge = "\n".join(lines[1:]), re.escape(separator)
    cell = rf'(?:^|{edge})[" ]*[-+]?\d*([.,])\d+{_POWER}[" ]*(?={edge}|$)'
    signs = [found[1] for found in re.finditer(cell, text, re.MULTILINE)]
    return "," if 2 * signs.count(",") > len(signs) else "."


def check_left_out(parts: Iterable[TableFile], names: Iterable[str]) -> None:
    """Refuse columns of text that most cells say are numbers.

    A column that is made of whole numbers and of the other decimal sign throughout may be a
    version, and numbers that a parquet file keeps as text may be ids: a warning is enough.
    """
    parts = list(parts)
    for name in names:
        for part in parts:
            if part.kinds.get(name) == "text" and _check_text(part, name):
                break


def _check_text(part: TableFile, name: str) -> bool:
    """Whether the column was worth a warning."""
    record = next(iter(part.record_batches([name], (), _ROWS)))
    column = record.column(0)
    cells = {v.strip() for v in column.unique().to_pylist() if v is not None} - set(MISSING)
    similar = {cell for cell in cells if _is_similar(cell)}
    values = [v.strip() for v in column.to_pylist() if v is not None and v.strip() in cells]
    if not values or 2 * sum(value in similar for value in values) < len(values):
        return False
    wrong = part.first_wrong(name)
    foreign = {cell for cell in cells if not is_number(cell, part.decimal)}
    foreign |= set() if wrong is None else {wrong[1]}
    other = "." if part.decimal == "," else ","
    at = f"{part.path}: column {name!r}"
    out = "leave the column out (drop, --drop)"
    uniform = all(is_number(cell, other) for cell in cells | foreign)
    if uniform and not any(_GROUPED.fullmatch(cell) for cell in foreign):
        why = f"is text{part.proof(name)}" + (
            f", the decimal sign of the file is {part.decimal!r}" if foreign else ""
        )
        warnings.warn(f"{at} is no feature because it {why}; correct it, or {out}.", stacklevel=2)
        return True
    how = "correct such cells, or empty them and skip their rows (missing='drop', --missing drop)"
    if not foreign:
        how = "store it as numbers"
    elif all(_is_similar(cell) for cell in foreign):
        how = f"write numbers with {part.decimal!r} as decimal sign and no separator of thousands"
    raise ValueError(f"{at} looks like numbers but is text{part.proof(name)}; {how}, or {out}.")


def _is_similar(text: str) -> bool:
    return bool(_SIMILAR.fullmatch(text) or _GROUPED.fullmatch(text))
