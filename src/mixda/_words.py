"""Names in a row, from and for people. Light to import, as the command line does it first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def listed(names: Sequence[Any], most: int = 12) -> str:
    """Return names in a row, the first of them if there are many.

    Examples
    --------
    >>> from mixda._words import listed
    >>> listed(["a", "b", "c"], most=2)
    'a, b, … (3 in all)'
    """
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(str(name) for name in names[:most]) + more


def split_names(values: Sequence[str] | None) -> list[str] | None:
    """Return the names of options that may be repeated and hold several, comma-separated.

    Examples
    --------
    >>> from mixda._words import split_names
    >>> split_names(["a, b", "c"])
    ['a', 'b', 'c']
    """
    found = [name.strip() for value in values or () for name in value.split(",") if name.strip()]
    return found or None
