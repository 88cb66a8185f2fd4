"""Columns of text that were meant to be numbers.

Columns of text in which most cells look like numbers are features that a slip would cost without
a word; `check_left_out` says which slip.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from mixda._core.errors import MixdaError
from mixda.tables._cells import MISSING, is_grouped, is_number, is_similar
from mixda.tables._files import TableFile

_ROWS = 65_536  # that tell what a column is


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
    similar = {cell for cell in cells if is_similar(cell)}
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
    if uniform and not any(is_grouped(cell) for cell in foreign):
        why = f"is text{part.proof(name)}" + (
            f", the decimal sign of the file is {part.decimal!r}" if foreign else ""
        )
        warnings.warn(f"{at} is no feature because it {why}; correct it, or {out}.", stacklevel=2)
        return True
    how = "correct such cells, or empty them and skip their rows (missing='drop', --missing drop)"
    if not foreign:
        how = "store it as numbers"
    elif all(is_similar(cell) for cell in foreign):
        how = f"write numbers with {part.decimal!r} as decimal sign and no separator of thousands"
    raise MixdaError(f"{at} looks like numbers but is text{part.proof(name)}; {how}, or {out}.")
