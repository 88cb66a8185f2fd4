"""The mark of a class: a color and a shape, so that classes differ in more than color.

The colors are variables of the style sheet (k0 … k9), with a light and a dark theme.
"""

from __future__ import annotations

from mixda.report._html import Markup, tag
from mixda.views import UNLABELED

_N_COLORS = 10
_SHAPES = (
    "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",  # disc
    "M-2.9-2.9h5.8v5.8h-5.8z",  # square
    "M0-3.9L3.7 2.7H-3.7z",  # triangle
    "M0-4.1L4.1 0L0 4.1L-4.1 0z",  # diamond
    "M-1.2-3.8h2.4v2.6h2.6v2.4h-2.6v2.6h-2.4v-2.6h-2.6v-2.4h2.6z",  # plus
    "M0 3.9L3.7-2.7H-3.7z",  # triangle, downwards
    "M-3.8-2L-2-3.8L0-1.8L2-3.8L3.8-2L1.8 0L3.8 2L2 3.8L0 1.8L-2 3.8L-3.8 2L-1.8 0z",  # cross
    "M0-4.2L1.1-1.4L4-1.3L1.7.5L2.5 3.4L0 1.8L-2.5 3.4L-1.7.5L-4-1.3L-1.1-1.4z",  # star
)


def color_class(k: int) -> str:
    """Return the CSS class with the color of class `k`."""
    return "kn" if k == UNLABELED else f"k{k % _N_COLORS}"


def shape(k: int) -> int:
    """Return the index of the shape of class `k`; classes of the same color differ in shape.

    Examples
    --------
    >>> from mixda.report._marks import color_class, shape
    >>> len({(color_class(k), shape(k)) for k in range(80)})
    80
    """
    return 0 if k == UNLABELED else (k + k // _N_COLORS) % len(_SHAPES)


def definitions() -> Markup:
    """Return the SVG definitions of the shapes, used once per page."""
    paths = (tag("path", id=f"m{k}", d=path) for k, path in enumerate(_SHAPES))
    return tag("svg", tag("defs", *paths), width="0", height="0", class_="defs", aria_hidden="true")


def mark(k: int, x: float, y: float) -> Markup:
    """Return the mark of class `k` at a position."""
    return tag("use", href=f"#m{shape(k)}", class_=color_class(k), x=round(x, 1), y=round(y, 1))


def legend(classes: tuple[str, ...], unlabeled: bool = False) -> Markup:
    """Return a legend of the classes."""
    items = list(enumerate(classes)) + ([(UNLABELED, "no label")] if unlabeled else [])
    entries = (
        tag(
            "li",
            tag("svg", mark(k, 6.0, 6.0), viewBox="0 0 12 12", aria_hidden="true"),
            tag("span", name),
        )
        for k, name in items
    )
    return tag("ul", *entries, class_="legend")
