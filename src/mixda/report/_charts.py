"""The charts of domains and of learning: map, coordinates, curves, panels of components, plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mixda._core.validation import Array
from mixda.mixture import Mixture
from mixda.report._facts import Facts
from mixda.report._html import Markup, chart, cut, join, label, matrix, percent, significant, tag
from mixda.report._marks import UNLABELED, color_class, mark, top_classes
from mixda.report._scales import Scale, View, scale_for
from mixda.views import along_diagonal

WIDTH = 360.0
MOST_COMPONENTS = 120  # drawn per panel, the heaviest; the rest would only hide each other
_MOST_CELLS = 2500
SOFT = 0.9  # a component whose best class has less is drawn with a dashed outline


def domain_map(facts: Facts) -> Markup:
    """Return the map of the domains: near on paper means near in MW2."""
    n, points = facts.n_sources, facts.points
    size = float(np.ptp(points, axis=0).max()) or 1.0
    height = 90.0 + 210.0 * min(float(np.ptp(points[:, 1])) / size, 0.9)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    unit = 230.0 / size
    x = WIDTH / 2 + unit * (points[:, 0] - middle[0])
    y = height / 2 - unit * (points[:, 1] - middle[1])
    shapes = [_ruler(facts, unit, height)]
    total = height + (30.0 if shapes[0] else 0.0)
    if facts.adapted is not None:
        shapes.append(tag("line", x1=x[n], y1=y[n], x2=x[-1], y2=y[-1], class_="link"))
    for k in range(len(points)):
        shapes.append(_domain_mark(k, n, float(x[k]), float(y[k])))
    shapes += _names_beside(facts, x, y, height)
    return chart("Map of the domains", _map_words(facts), (WIDTH, total), *shapes)


def _domain_mark(k: int, n_sources: int, x: float, y: float) -> Markup:
    if k < n_sources:
        return tag("circle", cx=x, cy=y, r="5", class_="source")
    if k == n_sources:
        return tag("rect", x=x - 5.5, y=y - 5.5, width="11", height="11", class_="target")
    return tag("circle", cx=x, cy=y, r="9", class_="adapted")


def _names_beside(facts: Facts, x: Array, y: Array, height: float) -> list[Markup]:
    """Names next to the points; the later of two that would overlap moves down."""
    texts = []
    taken = [(float(b) + 4, float(a) - 6, float(a) + 6) for a, b in zip(x, y, strict=True)]
    for k in np.argsort(y, kind="stable"):
        name = cut(facts.names[k], 22)
        right = x[k] < WIDTH * 0.6
        span = 6.2 * len(name)
        left = x[k] + 13 if right else x[k] - 13 - span
        line = float(y[k]) + 4
        while any(abs(line - other) < 13 and left < b and a < left + span for other, a, b in taken):
            line += 4
        taken.append((line, left, left + span))
        attributes = {"class_": "strong"} if k >= facts.n_sources else {}
        anchor = "start" if right else "end"
        place = float(x[k] + 13 if right else x[k] - 13)
        texts.append(label(place, min(line, height - 4), name, text_anchor=anchor, **attributes))
    return texts


def _ruler(facts: Facts, unit: float, height: float) -> Markup:
    """Draw the distance between two classes, which is what "far" is measured by."""
    length = facts.gap * unit
    if not 12 <= length <= WIDTH - 40:
        return Markup("")
    y = height + 20
    return tag(
        "g",
        tag("path", d=f"M16 {y - 3:.0f}v6m0-3h{length:.1f}m0-3v6", class_="ruler"),
        label(16.0, y - 8, "between two classes", class_="dim"),
    )


def name_room(names: Sequence[str], most: int) -> float:
    """Return the width of the longest name when cut to so many characters (at 12 pixels)."""
    return 7.2 * max(min(len(name), most) for name in names) + 4


def _map_words(facts: Facts) -> str:
    n = facts.n_sources
    parts = [f"{facts.names[k]} {significant(float(facts.distances[k, n]))}" for k in range(n)]
    text = f"Distances to {facts.target_name}: {', '.join(parts)}"
    if facts.adapted is not None:
        text += f"; {facts.names[-1]} {significant(float(facts.distances[-1, n]))}"
    return f"{text}."


def coordinates(facts: Facts) -> Markup:
    """Return a bar for every domain and atom."""
    dictionary = facts.model.dictionary
    lam = np.asarray(dictionary.coordinates)  # type: ignore[union-attr]
    rows, columns = lam.shape
    names = facts.names[:rows]
    left, row = name_room(names, 13) + 16, 24.0
    width = max((WIDTH - left) / columns, 62.0)
    total, height = left + width * columns, 26.0 + row * rows
    shapes = []
    for c in range(columns):
        shapes.append(label(left + c * width, 14.0, f"atom {c + 1}", class_="dim"))
    for k, name in enumerate(names):
        y = 24.0 + row * k
        strong = {"class_": "strong"} if k == rows - 1 else {}
        shapes.append(label(left - 8, y + 13, cut(name, 13), text_anchor="end", **strong))
        for c in range(columns):
            x, length = left + c * width, float(lam[k, c]) * (width - 46)
            kind = "bar accent" if k == rows - 1 else "bar"
            shapes.append(tag("rect", x=x, y=y + 2, width=max(length, 1), height="14", class_=kind))
            shapes.append(label(x + length + 4, y + 13, percent(float(lam[k, c])), class_="dim"))
    words = f"How much of each of {columns} atoms is in each of {rows} domains."
    wide = {"style": f"min-width:{total:.0f}px"} if total > WIDTH else {}
    return chart("Barycentric coordinates", words, (total, height), *shapes, **wide)


def curves(facts: Facts, values: Array, total: Array | None, title: str) -> Markup:
    """Return curves over the iterations: the sum, the target, and the sources in the back."""
    left, right, top, bottom, height = 46.0, WIDTH - 14, 10.0, 150.0, 182.0
    steps = len(values)
    everything = values.ravel() if total is None else np.concatenate([values.ravel(), total])
    y = scale_for(everything, bottom, top, log=True)
    x = Scale(0, max(steps - 1, 1), left, right)
    shapes = [*_y_axis(y, left, right), *_x_axis(x, bottom)]
    shapes.append(label((left + right) / 2, height - 2, "iteration", text_anchor="middle"))
    for k in range(values.shape[1] - 1):
        shapes.append(_curve(values[:, k], x, y, "line", facts.names[k]))
    shapes.append(_curve(values[:, -1], x, y, "line goal", facts.target_name))
    if total is not None:
        shapes.append(_curve(total, x, y, "line sum", "sum"))
    first, last = (values[0, -1], values[-1, -1]) if total is None else (total[0], total[-1])
    what = "target" if total is None else "sum"
    words = (
        f"{what}: from {significant(float(first))} to {significant(float(last))} "
        f"in {steps - 1} steps."
    )
    return chart(title, words, (WIDTH, height), *shapes)


def _y_axis(y: Scale, left: float, right: float) -> list[Markup]:
    shapes = []
    for value in y.ticks():
        shapes.append(tag("line", x1=left, x2=right, y1=y(value), y2=y(value), class_="grid"))
        text = significant(value)
        shapes.append(label(left - 5, y(value) + 4, text, text_anchor="end", class_="dim"))
    return shapes


def _x_axis(x: Scale, bottom: float) -> list[Markup]:
    ticks = [value for value in x.ticks() if value == int(value)]
    return [
        label(x(value), bottom + 15, f"{value:.0f}", text_anchor="middle", class_="dim")
        for value in ticks
    ]


def _curve(values: Array, x: Scale, y: Scale, kind: str, name: str) -> Markup:
    stride = max(1, len(values) // 300)
    steps = sorted({*range(0, len(values), stride), len(values) - 1})
    points = " ".join(f"{x(k):.1f},{y(float(values[k])):.1f}" for k in steps)
    return tag("polyline", tag("title", name), points=points, class_=kind)


def panel(m: Mixture, view: View, title: str, classes: tuple[str, ...], side: float) -> Markup:
    """Return the components of one mixture as ellipses with the marks of their classes."""
    heavy = heaviest(m)
    words = f"{len(heavy)} of {m.n_components} components" + (
        "" if m.labels is None else f", classes {', '.join(sorted(_present(m, classes))[:12])}"
    )
    shapes = components(m, view, side, heavy)
    return chart(title, words, (side, side), shapes, class_="panel")


def components(m: Mixture, view: View, side: float, chosen: Sequence[int]) -> Markup:
    """Return one ellipse and one mark per chosen component, the lightest in front."""
    centers, roots = view.place(m, side)
    tops = top_classes(m.labels, m.n_components)
    ellipses, marks = [], []
    for k in chosen:
        soft = m.labels is not None and m.labels[k].max() < SOFT
        x, y = centers[k]
        ellipses.append(
            tag(
                "circle",
                r="1",
                class_=f"e {color_class(tops[k])}{' soft' if soft else ''}",
                transform=matrix(roots[k], x, y),
            )
        )
        marks.append(mark(tops[k], float(x), float(y)))
    return join([tag("g", *ellipses), tag("g", *marks)])


def heaviest(m: Mixture) -> list[int]:
    """Return the components to draw, in their order."""
    order = np.argsort(-m.weights, kind="stable")[:MOST_COMPONENTS]
    return sorted(int(k) for k in order)


def _present(m: Mixture, classes: tuple[str, ...]) -> set[str]:
    return {classes[k] for k in top_classes(m.labels, m.n_components) if k != UNLABELED}


def plan(facts: Facts) -> Markup:
    """Return the transport plan: rows grouped by class, columns in the order of what they get."""
    mass = np.asarray(facts.plan)
    rows, columns = plan_order(facts)
    left, top = name_room(facts.classes, 12) + 17, 22.0
    side = min(WIDTH - left - 8, 290.0)
    cell = side / mass.shape[1], min(max(side / mass.shape[0], 0.0), 3 * side / mass.shape[1])
    height = cell[1] * mass.shape[0]
    shown = mass[np.ix_(rows, columns)]
    largest = float(shown.max()) or 1.0
    flat = np.argsort(-shown, axis=None, kind="stable")[:_MOST_CELLS]
    shapes = [tag("rect", x=left, y=top, width=side, height=height, class_="frame")]
    for i, j in sorted(np.unravel_index(k, shown.shape) for k in flat):
        share = float(shown[i, j]) / largest
        if share < 0.01:
            continue
        place = {"x": round(left + float(j) * cell[0], 2), "y": round(top + float(i) * cell[1], 2)}
        width, tall = round(cell[0], 2), round(cell[1], 2)
        shade = round(0.2 + 0.8 * share, 2)
        shapes.append(tag("rect", **place, width=width, height=tall, class_="h", opacity=shade))
    shapes += _bands(facts, rows, (left, top), (side, cell[1]))
    middle = left + side / 2
    name = cut(facts.target_name, 24)
    shapes.append(label(middle, 14.0, f"components of {name}", text_anchor="middle", class_="dim"))
    words = (
        f"Mass from {mass.shape[0]} labeled components, by class, to {mass.shape[1]} components "
        f"of {facts.target_name}."
    )
    return chart("Transport plan", words, (WIDTH, top + height + 6), *shapes)


def plan_order(facts: Facts) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order of rows by class, and of columns so that a good plan lies along the diagonal."""
    mass, source = np.asarray(facts.plan), facts.plan_rows
    tops = np.array(top_classes(None if source is None else source.labels, len(mass)))
    rows = np.argsort(tops, kind="stable")
    return rows, along_diagonal(mass, rows)


def _bands(
    facts: Facts, rows: NDArray[np.intp], corner: tuple[float, float], size: tuple[float, float]
) -> list[Markup]:
    """Names and borders of the classes along the left side."""
    source = facts.plan_rows
    if source is None or source.labels is None:
        return []
    left, top = corner
    width, tall = size
    tops = np.array(top_classes(source.labels, source.n_components))[rows]
    shapes, last = [], -20.0
    for k in np.unique(tops):
        inside = np.flatnonzero(tops == k)
        start, end = top + tall * inside[0], top + tall * (inside[-1] + 1)
        if inside[0] > 0:
            shapes.append(tag("line", x1=left, x2=left + width, y1=start, y2=start, class_="grid"))
        middle = float(start + end) / 2
        if middle - last >= 11:
            shapes.append(mark(int(k), left - 9, middle))
            name = cut(facts.classes[k], 12)
            shapes.append(label(left - 17, middle + 4, name, text_anchor="end"))
            last = middle
    return shapes
