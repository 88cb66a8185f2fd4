"""What the text of a cell says: a number, what looks like one, or no value."""

from __future__ import annotations

import re

NO_NAME = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "?")
MISSING = (*NO_NAME, "n/a", "None", "-")  # of numbers: a class may be called "None" or "-"

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


def is_grouped(text: str) -> bool:
    """Whether a cell is a number with a separator of thousands."""
    return _GROUPED.fullmatch(text) is not None


def is_similar(text: str) -> bool:
    """Whether a cell looks like a number, if of another country."""
    return bool(_SIMILAR.fullmatch(text) or is_grouped(text))
