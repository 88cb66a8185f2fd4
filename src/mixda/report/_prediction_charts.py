"""The charts of predictions: class proportions, certainty, confusion."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mixda._core.validation import Array
from mixda.report._charts import WIDTH, name_room
from mixda.report._facts import Facts, Predictions
from mixda.report._html import Markup, chart, cut, label, percent, tag
from mixda.report._marks import mark
from mixda.report._scales import Scale

_EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0)
_MOST_NUMBERS = 12  # classes of a confusion matrix with numbers in its cells


def proportions(facts: Facts, shares: Array) -> Markup:
    """Return a row per class: its share in every source, in the target, and the true one."""
    found = facts.predictions
    sources = facts.source_shares
    truth = None if found is None else true_shares(found, len(facts.classes))
    largest = max(float(shares.max()), float(sources.max(initial=0.0)))
    if truth is not None:
        largest = max(largest, float(truth.max()))
    left, row = name_room(facts.classes, 14) + 21, 21.0
    x = Scale(0.0, largest * 1.05, left, WIDTH - 12)
    bottom = 6 + row * len(facts.classes)
    shapes = []
    for value in x.ticks(4):
        shapes.append(tag("line", x1=x(value), x2=x(value), y1="4", y2=bottom, class_="grid"))
        text = percent(value)
        shapes.append(label(x(value), bottom + 14, text, text_anchor="middle", class_="dim"))
    for k, name in enumerate(facts.classes):
        y = 6 + row * (k + 0.5)
        shapes.append(mark(k, left - 12, y))
        shapes.append(label(left - 21, y + 4, cut(name, 14), text_anchor="end"))
        places = [x(float(share)) for share in sources[:, k]]
        if places:
            shapes.append(tag("line", x1=min(places), x2=max(places), y1=y, y2=y, class_="range"))
        shapes += [tag("circle", cx=place, cy=y, r="3.5", class_="hollow") for place in places]
        if truth is not None:
            place = x(float(truth[k]))
            shapes.append(tag("line", x1=place, x2=place, y1=y - 8, y2=y + 8, class_="truth"))
        corner = x(float(shares[k])) - 4
        shapes.append(tag("rect", x=corner, y=y - 4, width="8", height="8", class_="target"))
    words = "; ".join(
        f"{name} {percent(float(share))}" for name, share in zip(facts.classes, shares, strict=True)
    )
    words = f"Share of each class in {facts.target_name}: {words}."
    return chart("Class proportions", words, (WIDTH, bottom + 20), *shapes)


def true_shares(found: Predictions, n_classes: int) -> Array | None:
    """Return the share of every class of the model among the given labels."""
    if found.truth is None:
        return None
    shares: Array = np.bincount(found.truth, minlength=n_classes)[:n_classes] / len(found)
    return shares


def certainty_rows(found: Predictions) -> list[tuple[str, int, float | None]]:
    """Return name, number of samples and share of right ones for every step of certainty."""
    rows: list[tuple[str, int, float | None]] = []
    for low, high in pairwise(_EDGES):
        last = high == 1.0
        inside = (found.probability >= low) & ((found.probability < high) | last)
        n = int(inside.sum())
        right = None
        if found.truth is not None and n:
            right = float((found.truth == found.first)[inside].mean())
        if low == 0:
            name = f"below {100 * high:.0f} %"
        else:
            name = f"{100 * low:.0f} % or more" if last else f"{100 * low:.0f}–{100 * high:.0f} %"
        rows.append((name, n, right))
    return rows


def certainty(facts: Facts, found: Predictions) -> Markup:
    """Return a bar per step of certainty, and how many of them are right where that is known."""
    rows = certainty_rows(found)
    most = max(n for _, n, _ in rows)
    left, row = 96.0, 22.0
    labeled = found.truth is not None
    room = WIDTH - left - (130.0 if labeled else 64.0)
    shapes = []
    for k, (name, n, right) in enumerate(rows):
        y = 4 + row * k
        length = max(room * n / most, 1.0)
        note = f"{n:,}" if right is None else f"{n:,}, {percent(right)} right"
        shapes += [
            label(left - 8, y + 13, name, text_anchor="end"),
            tag("rect", x=left, y=y + 2, width=length, height="14", class_="bar"),
            label(left + length + 5, y + 13, note, class_="dim"),
        ]
    words = "; ".join(f"{name}: {n} samples" for name, n, _ in rows)
    return chart("Certainty of the predictions", words, (WIDTH, 6 + row * len(rows)), *shapes)


def confusion(facts: Facts, found: Predictions) -> Markup:
    """Return the confusion matrix; shades are shares of a row."""
    counts = np.asarray(found.confusion)
    names = [*facts.classes, *found.unknown]
    left, top = max(name_room(names, 12) + 18, 52.0), 26.0
    cell = (WIDTH - left - 6) / counts.shape[1]
    tall = min(max(cell, 12.0), 34.0)
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    shares = counts / totals
    numbers = counts.shape[1] <= _MOST_NUMBERS
    shapes = [label(left, 11.0, "predicted →", class_="dim")]
    if not numbers:
        size = {"width": cell * counts.shape[1], "height": tall * len(names)}
        shapes.append(tag("rect", x=left, y=top, **size, class_="frame"))
    shapes.append(label(left - 8, top - 5, "true ↓", text_anchor="end", class_="dim"))
    for i, name in enumerate(names):
        y = top + tall * i
        known = i < len(facts.classes)
        if known:
            shapes.append(mark(i, left - 10, y + tall / 2))
        shapes.append(label(left - 18, y + tall / 2 + 4, cut(name, 12), text_anchor="end"))
        for j in range(counts.shape[1]):
            shapes += _cell(
                int(counts[i, j]),
                float(shares[i, j]),
                (left + cell * j, y),
                (cell, tall),
                right=i == j,
                numbers=numbers,
            )
    shapes += [mark(j, left + cell * (j + 0.5), top - 7) for j in range(counts.shape[1])]
    words = f"{found.hits} of {len(found)} samples on the diagonal."
    return chart("Confusion matrix", words, (WIDTH, top + tall * len(names) + 4), *shapes)


def _cell(
    count: int,
    share: float,
    corner: tuple[float, float],
    size: tuple[float, float],
    *,
    right: bool,
    numbers: bool,
) -> list[Markup]:
    (x, y), (width, tall) = corner, size
    # two steps of shade, so that dark text on the light ones and light text on the dark ones
    # always has enough contrast
    shade = 0.45 * share / 0.5 if share < 0.5 else 0.9 + 0.1 * share
    box = {"x": round(x, 1), "y": round(y, 1), "width": width - 1, "height": tall - 1}
    kind = "h" if right else "h wrong"
    shapes = [tag("rect", **box, class_="cell")] if numbers else []
    if count:
        shapes.append(tag("rect", **box, class_=kind, opacity=round(shade, 2)))
        if numbers:
            place = (x + width / 2 - 0.5, y + tall / 2 + 3.5)
            style = "inverse" if share >= 0.5 else None
            text = f"{count}" if count < 10_000 else f"{count / 1000:.0f}k"
            shapes.append(label(*place, text, text_anchor="middle", class_=style))
    return shapes
