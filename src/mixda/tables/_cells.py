"""The text of a table cell: a number, something that resembles one, or a missing value."""

from __future__ import annotations

import re

MISSING_NAMES = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "?")
MISSING_NUMBERS = (*MISSING_NAMES, "n/a", "None", "-")  # "None" and "-" may name a class

_EXPONENT = r"([eE][-+]?\d+)?"
_NUMBER = {
    sign: re.compile(
        rf"[-+]?(\d+{re.escape(sign)}?\d*|{re.escape(sign)}\d+){_EXPONENT}"
        r"|[-+]?(?i:nan|inf|infinity)"
    )
    for sign in ".,"
}
_GROUPED_DIGITS = re.compile(r"[-+\u2212]?\d{1,3}([ .,'\u2019\u00a0\u202f_]\d{3})+([.,]\d+)?")
_ANY_DECIMAL_SIGN = re.compile(rf"[-+\u2212]?(\d+[.,]?\d*|[.,]\d+){_EXPONENT}")


def is_number(text: str, decimal: str) -> bool:
    """Return whether the text is a number with this decimal sign."""
    return _NUMBER[decimal].fullmatch(text.strip()) is not None


def decimal_sign(lines: list[str], separator: str) -> str:
    """Return a comma if most cells with a decimal sign look like 1,5 rather than 1.5."""
    if separator == ",":
        return "."
    text, edge = "\n".join(lines[1:]), re.escape(separator)
    cell = rf'(?:^|{edge})[" ]*[-+]?\d*([.,])\d+{_EXPONENT}[" ]*(?={edge}|$)'
    signs = [match[1] for match in re.finditer(cell, text, re.MULTILINE)]
    return "," if 2 * signs.count(",") > len(signs) else "."


def has_grouped_digits(text: str) -> bool:
    """Return whether the text is a number with thousands separators."""
    return _GROUPED_DIGITS.fullmatch(text) is not None


def resembles_number(text: str) -> bool:
    """Return whether the text would be a number with some decimal sign or thousands separator."""
    return bool(_ANY_DECIMAL_SIGN.fullmatch(text) or has_grouped_digits(text))
