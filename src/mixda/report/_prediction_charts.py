"""SVG charts of predictions: class proportions, certainty, confusion matrix."""

from __future__ import annotations

from mixda.report._charts import WIDTH, name_width
from mixda.report._facts import Facts, Predictions
from mixda.report._html import Markup, chart, label, percent, shorten, tag
from mixda.report._marks import mark
from mixda.report._scales import Scale
from mixda.views import CertaintyBin, ClassProportions, Confusion

_MAX_CLASSES_WITH_COUNTS = 12


def proportions(shown: ClassProportions, target_name: str) -> Markup:
    """Draw a row per class: its proportion in each source, in the target, and in the labels."""
    names = shorten(shown.classes, 22)
    left, row = name_width(names, 26) + 21, 21.0
    x = Scale(0.0, shown.largest * 1.05, left, WIDTH - 12)
    bottom = 6 + row * len(shown.classes)
    shapes = []
    for value in x.ticks(4):
        shapes.append(tag("line", x1=x(value), x2=x(value), y1="4", y2=bottom, class_="grid"))
        text = percent(value)
        shapes.append(label(x(value), bottom + 14, text, text_anchor="middle", class_="dim"))
    for k in range(len(names)):
        y = 6 + row * (k + 0.5)
        shapes.append(mark(k, left - 12, y))
        shapes.append(label(left - 21, y + 4, names[k], text_anchor="end"))
        sources = [x(float(proportion)) for proportion in shown.sources[:, k]]
        if sources:
            shapes.append(tag("line", x1=min(sources), x2=max(sources), y1=y, y2=y, class_="range"))
        shapes += [tag("circle", cx=source, cy=y, r="3.5", class_="hollow") for source in sources]
        if shown.true is not None:
            true = x(float(shown.true[k]))
            shapes.append(tag("line", x1=true, x2=true, y1=y - 8, y2=y + 8, class_="truth"))
        corner = x(float(shown.target[k])) - 4
        shapes.append(tag("rect", x=corner, y=y - 4, width="8", height="8", class_="target"))
    words = "; ".join(
        f"{name} {percent(float(proportion))}"
        for name, proportion in zip(shown.classes, shown.target, strict=True)
    )
    words = f"Class proportions in {target_name}: {words}."
    return chart("Class proportions", words, (WIDTH, bottom + 20), *shapes)


def certainty(bins: list[CertaintyBin]) -> Markup:
    """Draw a bar per bin, with the accuracy in the bin where it is known."""
    most = max(b.n_samples for b in bins)
    left, row = 96.0, 22.0
    labeled = any(b.accuracy is not None for b in bins)
    room = WIDTH - left - (140.0 if labeled else 64.0)
    shapes = []
    for k, b in enumerate(bins):
        y = 4 + row * k
        length = max(room * b.n_samples / most, 1.0)
        note = f"{b.n_samples:,}"
        if b.accuracy is not None:
            note += f", {percent(b.accuracy)} correct"
        shapes += [
            label(left - 8, y + 13, bin_name(b), text_anchor="end"),
            tag("rect", x=left, y=y + 2, width=length, height="14", class_="bar"),
            label(left + length + 5, y + 13, note, class_="dim"),
        ]
    words = "; ".join(f"{bin_name(b)}: {b.n_samples} samples" for b in bins)
    return chart("Confidence of the predictions", words, (WIDTH, 6 + row * len(bins)), *shapes)


def bin_name(b: CertaintyBin) -> str:
    """Return the range of a bin in percent."""
    if b.low == 0:
        return f"below {100 * b.high:.0f} %"
    if b.high == 1:
        return f"{100 * b.low:.0f} % or more"
    return f"{100 * b.low:.0f}–{100 * b.high:.0f} %"


def confusion(facts: Facts, predictions: Predictions, shown: Confusion) -> Markup:
    """Draw the confusion matrix; shades are shares of a row."""
    counts, shares = shown.counts, shown.row_shares
    names = [*facts.classes, *(str(name) for name in shown.unknown)]
    names = list(shorten(names, 18))
    left, top = max(name_width(names, 22) + 18, 52.0), 26.0
    cell = (WIDTH - left - 6) / counts.shape[1]
    tall = min(max(cell, 12.0), 34.0)
    numbers = counts.shape[1] <= _MAX_CLASSES_WITH_COUNTS
    shapes = [label(left, 11.0, "predicted →", class_="dim")]
    if not numbers:
        size = {"width": cell * counts.shape[1], "height": tall * len(names)}
        shapes.append(tag("rect", x=left, y=top, **size, class_="frame"))
    shapes.append(label(left - 8, top - 5, "true ↓", text_anchor="end", class_="dim"))
    for i, name in enumerate(names):
        y = top + tall * i
        if i < len(facts.classes):
            shapes.append(mark(i, left - 10, y + tall / 2))
        shapes.append(label(left - 18, y + tall / 2 + 4, name, text_anchor="end"))
        for j in range(counts.shape[1]):
            shapes += _cell(
                int(counts[i, j]),
                float(shares[i, j]),
                (left + cell * j, y),
                (cell, tall),
                correct=i == j,
                numbers=numbers,
            )
    shapes += [mark(j, left + cell * (j + 0.5), top - 7) for j in range(counts.shape[1])]
    words = f"{predictions.n_correct} of {len(predictions)} samples on the diagonal."
    return chart("Confusion matrix", words, (WIDTH, top + tall * len(names) + 4), *shapes)


def _cell(
    count: int,
    share: float,
    corner: tuple[float, float],
    size: tuple[float, float],
    *,
    correct: bool,
    numbers: bool,
) -> list[Markup]:
    (x, y), (width, tall) = corner, size
    # no shades between 0.45 and 0.95, so that the text always has enough contrast
    shade = 0.45 * share / 0.5 if share < 0.5 else 0.9 + 0.1 * share
    box = {"x": round(x, 1), "y": round(y, 1), "width": width - 1, "height": tall - 1}
    kind = "h" if correct else "h wrong"
    shapes = [tag("rect", **box, class_="cell")] if numbers else []
    if count:
        shapes.append(tag("rect", **box, class_=kind, opacity=round(shade, 2)))
        if numbers:
            middle = (x + width / 2 - 0.5, y + tall / 2 + 3.5)
            style = "inverse" if share >= 0.5 else None
            text = f"{count}" if count < 10_000 else f"{count / 1000:.0f}k"
            shapes.append(label(*middle, text, text_anchor="middle", class_=style))
    return shapes
