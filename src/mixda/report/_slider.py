"""The slider along the interpolation of the atoms: a picture of the target, frames, controls."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from mixda.mixture import Mixture
from mixda.report._charts import SOFT, components, heaviest
from mixda.report._facts import Facts
from mixda.report._html import Markup, chart, cut, percent, table, tag
from mixda.report._marks import shape, top_classes
from mixda.report._scales import View

_SIDE = 360.0


def mover(facts: Facts, view: View) -> Markup:
    """Return the figure; without a script it shows the target's place."""
    start = facts.frames[0][0]
    chosen = heaviest(start)
    picture = chart(
        "Interpolation of the atoms",
        f"The blend of the atoms that stands for {facts.target_name}; the slider moves it.",
        (_SIDE, _SIDE),
        components(start, view, _SIDE, chosen),
        class_="panel",
        id="moving",
    )
    stops = _stops(facts)
    caption = (
        "Every blend of the atoms is a mixture. Move from atom to atom, each time through the "
        f"blend that is {facts.target_name}, and see whether the classes keep their places."
    )
    data = tag(
        "script", _json(_data(facts, view, chosen, stops)), type="application/json", id="frames"
    )
    return tag(
        "figure",
        tag("figcaption", tag("h3", "From atom to atom"), tag("p", caption)),
        tag("div", picture, _controls(facts, stops), class_="mover"),
        tag("details", tag("summary", "Numbers"), _table(facts)),
        data,
    )


def _stops(facts: Facts) -> list[tuple[int, str]]:
    """Place on the slider and name of every stop: atom 1, target, atom 2, target, and so on."""
    steps, n = len(facts.frames[0]) - 1, len(facts.frames)
    stops = [(0, "atom 1")]
    for c in range(1, n):
        stops.append(((2 * c - 1) * steps, facts.target_name))
        stops.append((2 * c * steps, f"atom {c + 1}"))
    return stops


def _controls(facts: Facts, stops: list[tuple[int, str]]) -> Markup:
    last, target = stops[-1][0], stops[1][0]
    lam = _coordinates(facts, 0)[0]
    parts = " + ".join(f"{100 * x:.0f}\N{NO-BREAK SPACE}% atom {c + 1}" for c, x in enumerate(lam))
    buttons = (tag("button", cut(name, 14), type="button", value=at) for at, name in stops)
    slider = tag("input", id="along", type="range", min="0", max=last, step="0.25", value=target)
    moving = tag(
        "div",
        tag("label", "Place between the atoms", for_="along"),
        slider,
        tag("div", *buttons, class_="stops"),
        class_="mover-controls",
        data_needs_script=True,
        hidden=True,
    )
    readout = tag("output", f"{facts.target_name}: {parts}", id="readout", for_="along")
    return tag("div", moving, readout)


def _coordinates(facts: Facts, c: int) -> list[list[float]]:
    """Coordinates of the frames on the way to atom c."""
    target = np.asarray(facts.model.dictionary.coordinates[-1])  # type: ignore[union-attr]
    corner = np.eye(len(target))[c]
    ways = np.linspace(0.0, 1.0, len(facts.frames[c]))
    return [[float(x) for x in (1 - t) * target + t * corner] for t in ways]


def _data(
    facts: Facts, view: View, chosen: list[int], stops: list[tuple[int, str]]
) -> dict[str, Any]:
    steps, n = len(facts.frames[0]) - 1, len(facts.frames)
    frames = [
        _frame(m, lam, view, chosen)
        for c, way in enumerate(facts.frames)
        for m, lam in zip(way, _coordinates(facts, c), strict=True)
    ]
    start = [c * (steps + 1) for c in range(n)]  # place of the first frame of each way
    path = [start[0] + k for k in range(steps, -1, -1)]
    for c in range(1, n):
        path += [start[c] + k for k in range(1, steps + 1)]
        if c < n - 1:
            path += [start[c] + k for k in range(steps - 1, -1, -1)]
    return {
        "atoms": [f"atom {c + 1}" for c in range(n)],
        "stops": [{"at": at, "name": name} for at, name in stops],
        "path": path,
        "frames": frames,
    }


def _frame(m: Mixture, lam: list[float], view: View, chosen: list[int]) -> dict[str, Any]:
    """One frame: coordinates l, numbers c of the ellipses, classes k, shapes m, softness s."""
    centers, roots = view.place(m, _SIDE)
    tops = top_classes(m.labels, m.n_components)
    best = np.ones(m.n_components) if m.labels is None else m.labels.max(axis=1)
    numbers = np.column_stack([roots[:, 0, 0], roots[:, 0, 1], roots[:, 1, 1], centers])
    return {
        "l": [round(x, 6) for x in lam],
        "c": [[round(float(x), 1) for x in numbers[k]] for k in chosen],
        "k": [tops[k] for k in chosen],
        "m": [shape(tops[k]) for k in chosen],
        "s": [int(best[k] < SOFT) for k in chosen],
    }


def _table(facts: Facts) -> Markup:
    """For each atom: how far its components are from where they are in the target."""
    start = facts.frames[0][0]
    rows = []
    for c, way in enumerate(facts.frames):
        moved = np.sqrt(np.square(way[-1].means - start.means).sum(axis=1))
        kept = way[-1].labels.argmax(axis=1) == start.labels.argmax(axis=1)  # type: ignore[union-attr]
        rows.append((f"atom {c + 1}", float(moved.mean()), percent(float(kept.mean()))))
    head = ["from the target to", "mean move of a component", "components that keep their class"]
    return table(head, rows)


def _json(data: dict[str, Any]) -> Markup:
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
