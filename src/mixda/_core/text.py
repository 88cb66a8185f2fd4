"""Names in a row, from and for people. Light to import, as the command line does it first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def listed(names: Sequence[Any], most: int = 12) -> str:
    """Return names in a row, the first of them if there are many.

    Examples
    --------
    >>> from mixda._core.text import listed
    >>> listed(["a", "b", "c"], most=2)
    'a, b, … (3 in all)'
    """
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(str(name) for name in names[:most]) + more


def split_names(values: Sequence[str] | None) -> list[str] | None:
    """Return the names of options that may be repeated and hold several, comma-separated.

    Examples
    --------
    >>> from mixda._core.text import split_names
    >>> split_names(["a, b", "c"])
    ['a', 'b', 'c']
    """
    found = [name.strip() for value in values or () for name in value.split(",") if name.strip()]
    return found or None


def plural(n: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> from mixda._core.text import plural
    >>> plural(1, "class", "classes"), plural(1200, "sample")
    ('1 class', '1,200 samples')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"
