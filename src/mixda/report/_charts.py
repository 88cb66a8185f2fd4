"""SVG charts of domains, coordinates, learning curves, components and transport plans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixda._core.typing import Array
from mixda.mixture import Mixture
from mixda.report._facts import Facts
from mixda.report._html import Markup, chart, cut, join, label, matrix, percent, significant, tag
from mixda.report._marks import color_class, mark
from mixda.report._scales import Scale, Window, scale_for
from mixda.views import UNLABELED, Coordinates, Curves, OrderedPlan, most_probable_classes

WIDTH = 360.0
HARD_LABEL = 0.9  # components whose class is less probable have a dashed outline
_MAX_COMPONENTS = 120  # per panel
_MAX_PLAN_CELLS = 2500
_MAX_CURVE_POINTS = 300
_CHARACTER, _STRONG_CHARACTER = 7.2, 8.2  # pixels, in a wide font


def domain_map(facts: Facts) -> Markup:
    """Draw the map of the domains, whose distances approximate MW2."""
    n, points = facts.n_sources, facts.domain_map.points
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
    shapes += _domain_names(facts, x, y, height)
    return chart("Map of the domains", _map_description(facts), (WIDTH, total), *shapes)


def _domain_mark(k: int, n_sources: int, x: float, y: float) -> Markup:
    if k < n_sources:
        return tag("circle", cx=x, cy=y, r="5", class_="source")
    if k == n_sources:
        return tag("rect", x=x - 5.5, y=y - 5.5, width="11", height="11", class_="target")
    return tag("circle", cx=x, cy=y, r="9", class_="adapted")


def _domain_names(facts: Facts, x: Array, y: Array, height: float) -> list[Markup]:
    """Write names next to the points, at the nearest free place."""
    texts = []
    taken = [(float(b) + 4, float(a) - 6, float(a) + 6) for a, b in zip(x, y, strict=True)]
    named = {*facts.nearest_sources, *range(facts.n_sources, len(x))}
    # the target and the adapted mixture come first, so that they have the best places
    for k in sorted(named, key=lambda k: (k < facts.n_sources, float(y[k]))):
        name, strong = facts.short_names[k], k >= facts.n_sources
        span = (_STRONG_CHARACTER if strong else _CHARACTER) * len(name)
        line, left, right = _free_place(float(x[k]), float(y[k]), span, height, taken)
        taken.append((line, left, left + span))
        attributes = {"class_": "strong"} if strong else {}
        if right:
            texts.append(label(left, line, name, **attributes))
        else:
            texts.append(label(left + span, line, name, text_anchor="end", **attributes))
    return texts


def _free_place(
    x: float, y: float, span: float, height: float, taken: list[tuple[float, float, float]]
) -> tuple[float, float, bool]:
    """Return baseline, left edge and side of a name, as near to its point as others allow."""
    sides = (x < WIDTH * 0.6, x >= WIDTH * 0.6)
    for step in range(0, 200, 3):
        for offset in (step, -step):
            line = y + 4 + offset
            if not 11 <= line <= height - 2:
                continue
            for right in sides:
                left = x + 13 if right else x - 13 - span
                inside = left >= 0 and left + span <= WIDTH
                clear = all(
                    abs(line - other) >= 13 or left >= b or a >= left + span
                    for other, a, b in taken
                )
                if inside and clear:
                    return line, left, right
    right = sides[0]
    return y + 4, (x + 13 if right else max(0.0, x - 13 - span)), right


def _ruler(facts: Facts, unit: float, height: float) -> Markup:
    """Draw the distance between two classes as a scale bar."""
    length = facts.class_gap * unit
    if not 12 <= length <= WIDTH - 40:
        return Markup("")
    y = height + 20
    return tag(
        "g",
        tag("path", d=f"M16 {y - 3:.0f}v6m0-3h{length:.1f}m0-3v6", class_="ruler"),
        label(16.0, y - 8, "distance between two classes", class_="dim"),
    )


def name_width(names: Sequence[str], max_length: int) -> float:
    """Return the width in pixels of the longest name, cut to `max_length` characters."""
    return _CHARACTER * max(min(len(name), max_length) for name in names) + 4


def _map_description(facts: Facts) -> str:
    n = facts.n_sources
    parts = [
        f"{facts.names[k]} {significant(float(facts.distances[k, n]))}"
        for k in facts.nearest_sources
    ]
    text = f"Distances to {facts.target_name}: {', '.join(parts)}"
    if facts.adapted is not None:
        text += f"; {facts.names[-1]} {significant(float(facts.distances[-1, n]))}"
    return f"{text}."


def coordinates(shown: Coordinates) -> Markup:
    """Draw a bar per domain and atom."""
    values = shown.values
    rows, columns = values.shape
    left, row = name_width(shown.domains, 24) + 16, 24.0
    width = max((WIDTH - left) / columns, 62.0)
    total, height = left + width * columns, 26.0 + row * rows
    shapes = []
    for c, atom in enumerate(shown.atoms):
        shapes.append(label(left + c * width, 14.0, atom, class_="dim"))
    for k, name in enumerate(shown.domains):
        y = 24.0 + row * k
        strong = {"class_": "strong"} if k == rows - 1 else {}
        shapes.append(label(left - 8, y + 13, cut(name, 24), text_anchor="end", **strong))
        for c in range(columns):
            x, length = left + c * width, float(values[k, c]) * (width - 46)
            kind = "bar accent" if k == rows - 1 else "bar"
            shapes.append(tag("rect", x=x, y=y + 2, width=max(length, 1), height="14", class_=kind))
            shapes.append(label(x + length + 4, y + 13, percent(float(values[k, c])), class_="dim"))
    words = f"Weights of {columns} atoms in {rows} domains."
    wide = {"style": f"min-width:{total:.0f}px"} if total > WIDTH else {}
    return chart("Barycentric coordinates", words, (total, height), *shapes, **wide)


def curves(shown: Curves) -> Markup:
    """Draw curves over the iterations: the sources, the target and the sum in front of them."""
    values, total = shown.values, shown.total
    left, right, top, bottom, height = 46.0, WIDTH - 14, 10.0, 150.0, 182.0
    steps = len(values)
    everything = values.ravel() if total is None else np.concatenate([values.ravel(), total])
    y = scale_for(everything, bottom, top, log=True)
    x = Scale(0, max(steps - 1, 1), left, right)
    shapes = [*_y_axis(y, left, right), *_x_axis(x, bottom)]
    shapes.append(label((left + right) / 2, height - 2, "iteration", text_anchor="middle"))
    for k, name in enumerate(shown.domains):
        kind = "line goal" if k == len(shown.domains) - 1 else "line"
        shapes.append(_curve(values[:, k], x, y, kind, name))
    if total is not None:
        shapes.append(_curve(total, x, y, "line sum", "sum"))
    first, last = (values[0, -1], values[-1, -1]) if total is None else (total[0], total[-1])
    words = (
        f"{'Target' if total is None else 'Sum'}: from {significant(float(first))} to "
        f"{significant(float(last))} in {steps - 1} iterations."
    )
    return chart(shown.title, words, (WIDTH, height), *shapes)


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
    stride = max(1, len(values) // _MAX_CURVE_POINTS)
    steps = sorted({*range(0, len(values), stride), len(values) - 1})
    points = " ".join(f"{x(k):.1f},{y(float(values[k])):.1f}" for k in steps)
    return tag("polyline", tag("title", name), points=points, class_=kind)


def panel(m: Mixture, window: Window, title: str, classes: tuple[str, ...], side: float) -> Markup:
    """Draw the components of a mixture as ellipses with the marks of their classes."""
    chosen = heaviest_components(m)
    words = f"{len(chosen)} of {m.n_components} components"
    if m.labels is not None:
        present = {classes[k] for k in m.labels.argmax(axis=1)}
        words += f", classes {', '.join(sorted(present)[:12])}"
    shapes = components(m, window, side, chosen)
    return chart(title, words, (side, side), shapes, class_="panel")


def components(m: Mixture, window: Window, side: float, chosen: Sequence[int]) -> Markup:
    """Draw an ellipse and a mark per chosen component."""
    centers, roots = window.place(m, side)
    tops = most_probable_classes(m.labels, m.n_components).tolist()
    ellipses, marks = [], []
    for k in chosen:
        soft = m.labels is not None and m.labels[k].max() < HARD_LABEL
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


def heaviest_components(m: Mixture) -> list[int]:
    """Return the indices of the components to draw, in increasing order."""
    order = np.argsort(-m.weights, kind="stable")[:_MAX_COMPONENTS]
    return sorted(int(k) for k in order)


def plan(facts: Facts, ordered: OrderedPlan) -> Markup:
    """Draw the transport plan as a matrix with rows grouped by class."""
    mass = ordered.mass
    left, top = name_width(facts.short_classes, 18) + 17, 22.0
    side = min(WIDTH - left - 8, 290.0)
    cell = side / mass.shape[1], min(max(side / mass.shape[0], 0.0), 3 * side / mass.shape[1])
    height = cell[1] * mass.shape[0]
    largest = float(mass.max()) or 1.0
    flat = np.argsort(-mass, axis=None, kind="stable")[:_MAX_PLAN_CELLS]
    shapes = [tag("rect", x=left, y=top, width=side, height=height, class_="frame")]
    for i, j in sorted(np.unravel_index(k, mass.shape) for k in flat):
        share = float(mass[i, j]) / largest
        if share < 0.01:
            continue
        corner = {"x": round(left + float(j) * cell[0], 2), "y": round(top + float(i) * cell[1], 2)}
        width, tall = round(cell[0], 2), round(cell[1], 2)
        shade = round(0.2 + 0.8 * share, 2)
        shapes.append(tag("rect", **corner, width=width, height=tall, class_="h", opacity=shade))
    shapes += _class_bands(facts, ordered, (left, top), (side, cell[1]))
    middle = left + side / 2
    name = cut(facts.target_name, 24)
    shapes.append(label(middle, 14.0, f"components of {name}", text_anchor="middle", class_="dim"))
    words = (
        f"Mass sent from {mass.shape[0]} labeled components, grouped by class, to {mass.shape[1]} "
        f"components of {facts.target_name}."
    )
    return chart("Transport plan", words, (WIDTH, top + height + 6), *shapes)


def _class_bands(
    facts: Facts, ordered: OrderedPlan, corner: tuple[float, float], size: tuple[float, float]
) -> list[Markup]:
    """Draw the names and borders of the classes along the left side."""
    tops = ordered.row_classes
    if (tops == UNLABELED).any():
        return []
    left, top = corner
    width, tall = size
    shapes, last = [], -20.0
    for k in np.unique(tops):
        inside = np.flatnonzero(tops == k)
        start, end = top + tall * inside[0], top + tall * (inside[-1] + 1)
        if inside[0] > 0:
            shapes.append(tag("line", x1=left, x2=left + width, y1=start, y2=start, class_="grid"))
        middle = float(start + end) / 2
        if middle - last >= 11:
            shapes.append(mark(int(k), left - 9, middle))
            name = cut(facts.short_classes[k], 18)
            shapes.append(label(left - 17, middle + 4, name, text_anchor="end"))
            last = middle
    return shapes
