"""Lists of names and counts in messages. Light to import, because the command line needs it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


def listed(names: Sequence[Any], most: int = 12) -> str:
    """Return comma-separated names, cut off after the first `most`.

    Examples
    --------
    >>> from mixda._core.text import listed
    >>> listed(["a", "b", "c"], most=2)
    'a, b, … (3 in all)'
    """
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(str(name) for name in names[:most]) + more


def split_names(values: Sequence[str] | None) -> list[str] | None:
    """Return the names in repeated command-line options, each of which may hold several.

    Examples
    --------
    >>> from mixda._core.text import split_names
    >>> split_names(["a, b", "c"])
    ['a', 'b', 'c']
    """
    names = [name.strip() for value in values or () for name in value.split(",")]
    return [name for name in names if name] or None


def plural(n: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, singular or plural.

    Examples
    --------
    >>> from mixda._core.text import plural
    >>> plural(1, "class", "classes"), plural(1200, "sample")
    ('1 class', '1,200 samples')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a question that names the most similar of some names, or nothing.

    Examples
    --------
    >>> from mixda._core.text import did_you_mean
    >>> did_you_mean("Kind", ["kind", "speed"])
    " did you mean 'kind'?"
    """
    by_lower = {other.casefold(): other for other in names}
    close = difflib.get_close_matches(name.casefold(), by_lower, 1)
    return f" did you mean {by_lower[close[0]]!r}?" if close else ""
