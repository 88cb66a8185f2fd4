"""A small builder of HTML and SVG. Every value is escaped here, and only here."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from mixda._core.typing import Array


class Markup(str):
    """Text that is already markup; all other values are escaped."""

    __slots__ = ()


# control characters, lone surrogates, and marks that change the direction of the text
_CONTROL = re.compile(
    "[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]"
)
_MAX_BRIEF = 24  # characters of a cell that is not broken into lines
_VOID = frozenset({"meta", "br", "input", "link", "hr"})
_SVG_LEAVES = frozenset({"circle", "line", "path", "rect", "use", "polyline"})


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return ``<name …>children</name>``.

    ``class_`` becomes ``class``; other underscores become hyphens. Attributes that are None or
    False are omitted, and those that are True have no value.

    Examples
    --------
    >>> from mixda.report._html import tag
    >>> tag("p", "a < b", tag("br"), class_="note", hidden=True, id=None)
    '<p class="note" hidden>a &lt; b<br></p>'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(key if value is True else f'{key}="{escape(value)}"')
    opened = " ".join(parts)
    if name in _VOID:
        return Markup(f"<{opened}>")
    if name in _SVG_LEAVES and not children:
        return Markup(f"<{opened}/>")
    return Markup(f"<{opened}>{join(children)}</{name}>")


def join(children: Iterable[object]) -> Markup:
    """Concatenate the children. None is skipped; what is not markup is escaped."""
    return Markup("".join(escape(child) for child in children if child is not None))


def escape(value: object) -> str:
    """Escape a value for use in HTML text and attributes.

    Examples
    --------
    >>> from mixda.report._html import escape
    >>> escape('<b class="x">')
    '&lt;b class=&quot;x&quot;&gt;'
    """
    if isinstance(value, Markup):
        return value
    text = short(value) if isinstance(value, float) else str(value)
    return html.escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text), quote=True)


def short(value: float, digits: int = 2) -> str:
    """Format a number with at most `digits` decimals and no trailing zeros.

    Examples
    --------
    >>> from mixda.report._html import short
    >>> short(1.50), short(-0.001), short(3.0)
    ('1.5', '0', '3')
    """
    text = f"{value:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def cut(name: str, n: int) -> str:
    """Shorten a name to `n` characters (at least 8) by cutting out its middle.

    Long names often differ only at their ends: machine-2024-a, machine-2024-b.

    Examples
    --------
    >>> from mixda.report._html import cut
    >>> cut("machine-2024-b", 9)
    'mach…24-b'
    """
    if len(name) <= n:
        return name
    tail = 4 if n < 24 else 8
    return f"{name[: n - tail - 1].rstrip()}…{name[-tail:].lstrip()}"


def shorten(names: Sequence[str], n: int) -> tuple[str, ...]:
    """Shorten names to about `n` characters so that they still differ.

    Words that all names share at the end, then at the start, are left out first.

    Examples
    --------
    >>> from mixda.report._html import shorten
    >>> shorten(["line 11 in hall A, spring", "line 12 in hall B, spring"], 16)
    ('…11 in hall A,…', '…12 in hall B,…')
    >>> shorten(["line 11 in hall A, spring", "line 12 in hall B, spring"], 10)
    ('…11 i…A,…', '…12 i…B,…')
    >>> shorten(["a" * 30, "a" * 29 + "b"], 9)
    ('aaaa…aaaa', 'aaaa…aaab')
    """
    texts = list(names)
    for at_end in (True, False):
        if len(set(texts)) > 1 and max(map(len, texts)) > n:
            texts = _without_common_words(texts, n, at_end)
    texts = [cut(text, n) for text in texts]
    seen: dict[str, int] = {}
    for k, text in enumerate(texts):
        seen[text] = seen.get(text, 0) + 1
        if seen[text] > 1 and names[k] not in names[:k]:
            texts[k] = f"{text} ({seen[text]})"
    return tuple(texts)


def _without_common_words(texts: list[str], n: int, at_end: bool) -> list[str]:
    """Leave out words that all texts share at one end, until the longest fits."""
    words = [text.split(" ") for text in texts]
    while max(len(" ".join(own)) for own in words) > n - 1 and min(map(len, words)) > 2:
        place = -1 if at_end else 0
        if len({own[place] for own in words}) > 1:
            break
        words = [own[:-1] if at_end else own[1:] for own in words]
    changed = [" ".join(own) for own in words]
    if changed == texts:
        return texts
    return [f"{text}…" if at_end else f"…{text}" for text in changed]


def chart(
    title: str, description: str, size: tuple[float, float], *children: object, **attributes: object
) -> Markup:
    """Return an SVG image with its text alternative."""
    width, height = size
    inside = [tag("title", title), tag("desc", description), *children]
    return tag(
        "svg",
        *inside,
        role="img",
        aria_label=f"{title}. {description}",
        viewBox=f"0 0 {short(width)} {short(height)}",
        **attributes,
    )


def label(x: float, y: float, text: object, **attributes: object) -> Markup:
    """Return SVG text at a position."""
    return tag("text", text, x=x, y=y, **attributes)


def table(
    head: Sequence[object], rows: Iterable[Sequence[object]], caption: str | None = None
) -> Markup:
    """Return a table whose first column is the row header; numbers are right-aligned."""
    top = tag("tr", *(tag("th", name, scope="col") for name in head))
    body = []
    for first, *others in rows:
        cells = (tag("td", _cell(value), class_=_kind(value)) for value in others)
        name = tag("th", _cell(first), scope="row", class_=_kind(first) and "brief")
        body.append(tag("tr", name, *cells))
    parts = [None if caption is None else tag("caption", caption)]
    whole = tag("table", *parts, tag("thead", top), tag("tbody", *body))
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label="table")


def significant(value: float) -> str:
    """Format a number with three significant digits and separated thousands.

    Examples
    --------
    >>> from mixda.report._html import significant
    >>> significant(1234.5), significant(0.012345), significant(2.0)
    ('1,230', '0.0123', '2')
    """
    if value == 0 or not abs(value) < float("inf"):
        return "0" if value == 0 else str(value)
    if abs(value) >= 1e6 or abs(value) < 1e-4:
        return f"{value:.2e}"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"


def percent(share: float) -> str:
    r"""Format a fraction in percent, rounded to 0 % or 100 % only where this is exact.

    Examples
    --------
    >>> from mixda.report._html import percent
    >>> [percent(x).replace("\xa0", " ") for x in (0.5, 0.0004, 0.9999, 1.0)]
    ['50 %', 'below 0.1 %', '99.9 %', '100 %']
    """
    if 0 < share < 0.001:
        return "below 0.1\N{NO-BREAK SPACE}%"
    if 0.99 < share < 1 or 0 < share < 0.01:
        share = min(share, 0.999)
        return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def listing(names: Sequence[str], most: int = 6) -> str:
    """Join names as in a sentence.

    Examples
    --------
    >>> from mixda.report._html import listing
    >>> listing(["a", "b", "c"]), listing(list("abcdefgh"), 3)
    ('a, b and c', 'a, b, c and 5 more')
    """
    shown = [cut(name, 40) for name in names]
    if len(shown) > most:
        shown = [*shown[:most], f"{len(names) - most} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def matrix(root: Array, x: float, y: float) -> str:
    """Return the SVG transform of the unit circle to an ellipse at (x, y)."""
    a, b, c = root[0, 0], root[0, 1], root[1, 1]
    return f"matrix({short(a)} {short(b)} {short(b)} {short(c)} {short(x, 1)} {short(y, 1)})"


def _cell(value: object) -> object:
    return significant(value) if isinstance(value, float) else value


def _kind(value: object) -> str | None:
    if isinstance(value, str) and len(value) <= _MAX_BRIEF:
        return "brief"
    return "number" if isinstance(value, (int, float)) else None
