"""The slider that interpolates between the atoms: picture, frames and controls."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from mixda.mixture import Mixture
from mixda.report._charts import HARD_LABEL, components, heaviest_components
from mixda.report._facts import Facts
from mixda.report._html import Markup, chart, cut, percent, table, tag
from mixda.report._marks import shape
from mixda.report._scales import Window
from mixda.views import most_probable_classes

_SIDE = 360.0


def interpolation_slider(facts: Facts, window: Window) -> Markup:
    """Return the figure; without JavaScript it shows the reconstruction of the target."""
    start = facts.frames[0][0]
    chosen = heaviest_components(start)
    picture = chart(
        "Interpolation between the atoms",
        f"The barycenter of the atoms at the coordinates of {facts.target_name}.",
        (_SIDE, _SIDE),
        components(start, window, _SIDE, chosen),
        class_="panel",
        id="moving",
    )
    stops = _stops(facts)
    caption = (
        "Each point between the atoms is a barycenter, which is again a mixture. Move the slider "
        f"from atom to atom, through the reconstruction of {facts.target_name}, to see whether the "
        "classes stay separated."
    )
    data = tag(
        "script", _json(_data(facts, window, chosen, stops)), type="application/json", id="frames"
    )
    return tag(
        "figure",
        tag("figcaption", tag("h3", "Interpolation between the atoms"), tag("p", caption)),
        tag("div", picture, _controls(facts, stops), class_="mover"),
        tag("details", tag("summary", "Numbers"), _table(facts)),
        data,
    )


def _stops(facts: Facts) -> list[tuple[int, str]]:
    """Return position and name of each stop: atom 1, target, atom 2, target, and so on."""
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
        tag("label", "Position between the atoms", for_="along"),
        slider,
        tag("div", *buttons, class_="stops"),
        class_="mover-controls",
        data_needs_script=True,
        hidden=True,
    )
    readout = tag("output", f"{facts.target_name}: {parts}", id="readout", for_="along")
    return tag("div", moving, readout)


def _coordinates(facts: Facts, c: int) -> list[list[float]]:
    """Return the coordinates of the frames between the target and atom c."""
    target = np.asarray(facts.model.dictionary.coordinates[-1])  # type: ignore[union-attr]
    corner = np.eye(len(target))[c]
    steps = np.linspace(0.0, 1.0, len(facts.frames[c]))
    return [[float(x) for x in (1 - t) * target + t * corner] for t in steps]


def _data(
    facts: Facts, window: Window, chosen: list[int], stops: list[tuple[int, str]]
) -> dict[str, Any]:
    steps, n = len(facts.frames[0]) - 1, len(facts.frames)
    frames = [
        _frame(m, lam, window, chosen)
        for c, frames_to_atom in enumerate(facts.frames)
        for m, lam in zip(frames_to_atom, _coordinates(facts, c), strict=True)
    ]
    start = [c * (steps + 1) for c in range(n)]  # index of the first frame of each atom
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


def _frame(m: Mixture, lam: list[float], window: Window, chosen: list[int]) -> dict[str, Any]:
    """Return a frame: coordinates l, ellipses c, classes k, shapes m, soft labels s."""
    centers, roots = window.place(m, _SIDE)
    tops = most_probable_classes(m.labels, m.n_components).tolist()
    best = np.ones(m.n_components) if m.labels is None else m.labels.max(axis=1)
    numbers = np.column_stack([roots[:, 0, 0], roots[:, 0, 1], roots[:, 1, 1], centers])
    return {
        "l": [round(x, 6) for x in lam],
        "c": [[round(float(x), 1) for x in numbers[k]] for k in chosen],
        "k": [tops[k] for k in chosen],
        "m": [shape(tops[k]) for k in chosen],
        "s": [int(best[k] < HARD_LABEL) for k in chosen],
    }


def _table(facts: Facts) -> Markup:
    """Tabulate how far the components move from the target to each atom."""
    start = facts.frames[0][0]
    rows = []
    for c, frames in enumerate(facts.frames):
        atom = frames[-1]
        moved = np.sqrt(np.square(atom.means - start.means).sum(axis=1))
        kept = atom.labels.argmax(axis=1) == start.labels.argmax(axis=1)  # type: ignore[union-attr]
        rows.append((f"atom {c + 1}", float(moved.mean()), percent(float(kept.mean()))))
    head = ["from the target to", "mean shift of a component", "components with the same class"]
    return table(head, rows)


def _json(data: dict[str, Any]) -> Markup:
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
