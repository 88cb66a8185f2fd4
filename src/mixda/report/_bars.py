"""Horizontal bars with a name and a number, to both sides of zero."""

from __future__ import annotations

from collections.abc import Sequence

from mixda.report._charts import WIDTH, name_width
from mixda.report._html import Markup, chart, cut, label, tag

_MAX_NAME = 26
_MAX_NUMBER = 9
_ROW = 20.0


def bars(title: str, items: Sequence[tuple[str, float]]) -> Markup:
    """Draw a bar for each name and value; negative ones go to the left."""
    names = [cut(name, _MAX_NAME) for name, _ in items]
    numbers = [f"{value:+.3g}" for _, value in items]
    left, beside = name_width(names, _MAX_NAME) + 6, name_width(numbers, _MAX_NUMBER) + 2
    low = min(0.0, *(value for _, value in items))
    high = max(0.0, *(value for _, value in items))
    room_left = beside if low < 0 else 0.0
    room = WIDTH - left - beside - room_left
    unit = room / ((high - low) or 1.0)
    zero = left + room_left - low * unit
    bottom = 4 + _ROW * len(items)
    shapes = [tag("line", x1=zero, x2=zero, y1="2", y2=bottom, class_="grid")]
    for k, (name, text, (_, value)) in enumerate(zip(names, numbers, items, strict=True)):
        y = 4 + _ROW * k
        length = max(abs(value) * unit, 1.0)
        start = zero if value >= 0 else zero - length
        kind = "bar accent" if value >= 0 else "bar"
        shapes += [
            label(left - 6, y + 13, name, text_anchor="end"),
            tag("rect", x=start, y=y + 3, width=length, height="13", class_=kind),
        ]
        if value >= 0:
            shapes.append(label(start + length + 4, y + 13, text, class_="dim"))
        else:
            shapes.append(label(start - 4, y + 13, text, text_anchor="end", class_="dim"))
    words = "; ".join(f"{name} {text}" for (name, _), text in zip(items, numbers, strict=True))
    return chart(title, words, (WIDTH, bottom + 2), *shapes)
