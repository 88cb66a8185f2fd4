"""The sections that everybody reads: domains, what moved, why, change since the adaptation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixda.model import Shift
from mixda.monitoring import Change
from mixda.report import _bars, _charts
from mixda.report._facts import Facts, Reason
from mixda.report._html import Markup, cut, join, percent, significant, table, tag
from mixda.report._sections import figure, sampling

_MAX_FEATURES = 8
_MAX_FEATURES_PER_CLASS = 3
_MAX_CLASSES = 6
_MAX_CONTRIBUTIONS = 40


def domains(facts: Facts) -> Markup:
    """Map of the domains, and the sources nearest to the target."""
    shown, n = facts.nearest_sources, facts.n_sources
    caption = (
        "Similar datasets are close to each other. Disks are sources, the square is the target"
    )
    caption += (
        "." if facts.adapted is None else ", and the ring is the target as the model sees it."
    )
    if len(shown) < n:
        caption += f" The {len(shown)} nearest of {n} sources have names."
    rows: list[tuple[object, ...]] = [_source_row(facts, k) for k in shown]
    others = np.delete(facts.to_target, list(shown))
    if len(others):
        span = f"{_distance(facts, others.min())} to {_distance(facts, others.max())}"
        rows.append((f"{len(others)} other sources", span, ""))
    unit = "Distances are multiples of the distance between two classes." if facts.class_gap else ""
    head = ["source", "distance to the target", "samples"]
    nearest = tag(
        "figure",
        tag("figcaption", tag("h3", "Nearest sources"), tag("p", unit) if unit else None),
        table(head, rows),
    )
    picture = tag(
        "figure",
        tag("figcaption", tag("h3", "Map of the domains"), tag("p", caption)),
        _charts.domain_map(facts),
    )
    return join([sampling(facts), tag("div", picture, nearest, class_="pair uneven")])


def _source_row(facts: Facts, k: int) -> tuple[object, ...]:
    size = facts.model.sources[k].n_samples
    name = cut(facts.names[k], 40)
    return name, _distance(facts, float(facts.to_target[k])), "" if size is None else f"{size:,}"


def _distance(facts: Facts, value: float) -> str:
    return f"{value / facts.class_gap:.2g} ×" if facts.class_gap > 0 else significant(float(value))


def shifts(facts: Facts) -> Markup | None:
    """Which features moved most between the sources and the target."""
    if facts.shifts is None:
        text = (
            "The model works on learned features or standardizes each domain by itself, so shifts "
            "cannot be given in the units of your columns."
        )
        return tag("p", text, class_="dim")
    if not facts.shifts or not facts.sources:
        return None
    largest = _mean_sizes(facts.shifts)[:_MAX_FEATURES]
    caption = (
        f"Difference of the means between the sources and {facts.target_name}, in standard "
        "deviations within a class; the mean over classes. If each domain was standardized by "
        "itself, this is what standardization leaves. Check whether a sensor was replaced or a "
        "unit changed."
    )
    title = "Features that moved most"
    chart = _bars.bars(title, largest)
    picture = tag("figure", tag("figcaption", tag("h3", title), tag("p", caption)), chart)
    per_class = tag(
        "figure",
        tag(
            "figcaption", tag("h3", "Per class, in your units"), tag("p", _classes_left_out(facts))
        ),
        table(["class", "feature", "sources", "target", "moved by"], _shift_rows(facts)),
    )
    return tag("div", picture, per_class, class_="pair uneven")


def _mean_sizes(shifts: Sequence[Shift]) -> list[tuple[str, float]]:
    """Return the features and their mean sizes over classes, largest first."""
    sizes: dict[str, list[float]] = {}
    for shift in shifts:
        sizes.setdefault(shift.feature, []).append(shift.size)
    means = [(name, float(np.mean(values))) for name, values in sizes.items()]
    return sorted(means, key=lambda item: (-abs(item[1]), item[0]))


def _shown_classes(facts: Facts) -> list[str | None]:
    labels = list(dict.fromkeys(shift.label for shift in facts.shifts or ()))
    if facts.adapted is not None and None not in labels:
        weight = dict(zip(facts.classes, facts.adapted.class_proportions, strict=True))
        labels.sort(key=lambda label: -weight.get(str(label), 0.0))
    return labels[:_MAX_CLASSES]


def _classes_left_out(facts: Facts) -> str:
    n = len({shift.label for shift in facts.shifts or ()})
    text = f"The {_MAX_FEATURES_PER_CLASS} largest shifts, in standard deviations of the sources."
    if n > _MAX_CLASSES:
        text += f" The {_MAX_CLASSES} largest of {n} classes; mixda explain lists all."
    if len(facts.experts) > 1 and facts.adapted is not None:
        text += " Classes of the target are those of a single GMM-DaDiL, not of the committee."
    return text


def _shift_rows(facts: Facts) -> list[tuple[object, ...]]:
    names = dict(zip(facts.classes, facts.short_classes, strict=True))
    rows: list[tuple[object, ...]] = []
    for label in _shown_classes(facts):
        own = [shift for shift in facts.shifts or () if shift.label == label]
        own = sorted(own, key=lambda shift: -abs(shift.size))[:_MAX_FEATURES_PER_CLASS]
        for place, shift in enumerate(own):
            name = "all" if label is None else names.get(label, label)
            values = (shift.source, shift.target, f"{shift.size:+.1f} sd")
            rows.append((name if place == 0 else "", cut(shift.feature, 28), *values))
    return rows


def reasons(facts: Facts) -> Markup | None:
    """Why some of the samples got their class."""
    if not facts.reasons:
        return None
    caption = (
        "Bars to the right speak for the predicted class, bars to the left for the other one. "
        f"{facts.reasons[0].why.note} Values are not shown, so that the page holds no sample: look "
        "them up by the row number. An explanation tells what the model used, not what causes "
        "the class."
    )
    figures = (_reason(facts, reason) for reason in facts.reasons)
    return join([tag("p", caption, class_="dim"), tag("div", *figures, class_="pair")])


def _reason(facts: Facts, reason: Reason) -> Markup:
    why = reason.why
    names = dict(zip(facts.classes, facts.short_classes, strict=True))
    label, against = (names.get(name, name) for name in (why.label, why.against))
    parts = [(part.feature, part.log_odds) for part in why.contributions[:5]]
    rest = sum(part.log_odds for part in why.contributions[5:])
    if len(why.contributions) > 5:
        parts.append((f"{len(why.contributions) - 5} other features", rest))
    parts.append(("before the row is seen", why.baseline))
    title = f"Row {reason.row} ({reason.kind}): {label}"
    text = f"{percent(why.probability)}, rather than {against}."
    if why.outlier:
        text += " The row is an outlier: do not rely on its class."
    rows = [(part.feature, part.log_odds) for part in why.contributions[:_MAX_CONTRIBUTIONS]]
    rest = sum(part.log_odds for part in why.contributions[_MAX_CONTRIBUTIONS:])
    rows += [("other features", rest), ("before the row is seen", why.baseline)]
    numbers = [table(["feature", "adds to the log-odds"], [*rows, ("log-odds", why.log_odds)])]
    if why.members:
        votes = [(vote.name, vote.log_odds) for vote in why.members]
        numbers.append(table(["member of the pool", "adds to the log-odds"], votes))
    picture = _bars.bars(title, parts)
    return figure(title, text, picture, join(numbers))


def drift(facts: Facts) -> Markup | None:
    """How the given samples differ from those that the model was adapted to."""
    found = facts.drift
    if found is None:
        return None
    verdict = tag("p", tag("b", found.verdict), " " + " ".join(found.reasons))
    explanation = (
        f"The samples of this report ({found.n_rows:,}) were compared with the "
        f"{found.n_reference:,} rows that the model was adapted to; the probability of a false "
        f"alarm is at most {percent(found.level)}. An alarm says that the data changed, not that "
        "the model is wrong."
    )
    head = ["column", "before", "now", "moved by", ""]
    columns = [
        (cut(c.name, 28), c.before, c.now, f"{c.size:.2f} sd", _mark(c))
        for c in found.columns[:_MAX_FEATURES]
    ]
    names = dict(zip(facts.classes, facts.short_classes, strict=True))
    classes = sorted(found.classes, key=lambda c: (not c.alarm, -abs(c.size)))[:_MAX_FEATURES]
    shares = [(names.get(c.name, c.name), *_percents(c), _mark(c)) for c in classes]
    for name, change in (("outliers", found.outliers), ("mean confidence", found.confidence)):
        if change is not None:
            shares.append((name, *_percents(change), _mark(change)))
    if found.accuracy is not None and found.accuracy_before is not None:
        values = (percent(found.accuracy_before), percent(found.accuracy))
        shares.append(("estimated accuracy", *values, ""))
    tables = [
        tag("figure", tag("h3", "Columns that moved most"), table(head, columns)),
        tag("figure", tag("h3", "Predictions"), table(["share", "before", "now", ""], shares)),
    ]
    body = tag("div", *tables, class_="pair")
    if not found.alarm:
        body = tag("details", tag("summary", "Numbers"), body)
    return join([verdict, tag("p", explanation, class_="dim"), body])


def _percents(change: Change) -> tuple[str, str]:
    return percent(change.before), percent(change.now)


def _mark(change: Change) -> object:
    return tag("span", "changed", class_="flag") if change.alarm else ""
