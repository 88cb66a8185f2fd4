"""Lists of names and counts in messages. Light to import, because the command line needs it."""

from __future__ import annotations

import difflib
import unicodedata
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
    return ", ".join(printable(str(name)) for name in names[:most]) + more


def printable(text: str, keep: str = "") -> str:
    r"""Return text with escape sequences in place of characters that could control a terminal.

    These are control characters, except those in `keep`, and marks that reverse the direction of
    the text.

    Examples
    --------
    >>> from mixda._core.text import printable
    >>> print(printable("\x1b[2Jok\n"))
    \x1b[2Jok\n
    """
    if text.isprintable():
        return text
    return "".join(
        char if char in keep or not _is_control(char) else char.encode("unicode_escape").decode()
        for char in text
    )


def _is_control(char: str) -> bool:
    reverses = "\u202a" <= char <= "\u202e" or "\u2066" <= char <= "\u2069"
    return reverses or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")


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


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the question of `did_you_mean`, or a dot.

    Examples
    --------
    >>> from mixda._core.text import suggestion
    >>> suggestion("Kind", ["kind", "speed"]), suggestion("q", ["kind"])
    ("; did you mean 'kind'?", '.')
    """
    question = did_you_mean(name, names)
    return f";{question}" if question else "."


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


def class_name(label: Any) -> str:
    """Return the name of a class such that 1, 1.0 and "1" are the same.

    Examples
    --------
    >>> from mixda._core.text import class_name
    >>> class_name(1.0), class_name("worn"), class_name(2.5)
    ('1', 'worn', '2.5')
    """
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if whole else str(label)
