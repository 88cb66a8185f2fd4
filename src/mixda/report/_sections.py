"""The sections after the headline: charts with a caption, and their numbers as tables."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from mixda._core.text import plural
from mixda._core.validation import Array
from mixda.mixture import Mixture
from mixda.report import _charts
from mixda.report import _prediction_charts as _results
from mixda.report import _sentences as _words
from mixda.report._facts import Facts, Predictions
from mixda.report._html import Markup, cut, join, listing, percent, significant, table, tag
from mixda.report._marks import legend, top_classes
from mixda.report._scales import common_view
from mixda.report._slider import mover

_SIDE = 170.0
_LEAST_CERTAIN = 12
_CONTESTED = 0.9
_MOST_ROWS = 400  # of a table in the page


def domains(facts: Facts) -> Markup:
    """Map of the domains and, for dictionaries, the coordinates."""
    caption = (
        "Near on the map means similar as mixtures. Discs are sources, the square is the target"
        + ("" if facts.adapted is None else ", and the ring is what the model made of it")
        + f". The map is flat, so it misses {percent(facts.map_error)} of the true distances."
    )
    n = len(facts.names)
    rows = [(facts.names[k], *(float(facts.distances[k, j]) for j in range(n))) for k in range(n)]
    figures = [
        _figure(
            "Map of the domains",
            caption,
            _charts.domain_map(facts),
            table(["MW2 distance", *facts.names], rows),
        )
    ]
    if facts.model.dictionary is not None:
        figures.append(_coordinates(facts))
    return join([_committee(facts), tag("div", *figures, class_="pair")])


def _committee(facts: Facts) -> Markup | None:
    if len(facts.experts) < 2:
        return None
    text = (
        f"{facts.model.method} decides by {len(facts.experts)} classifiers together, but the "
        f"mixtures on this page are those of one of them ({cut(facts.experts[0], 40)})."
    )
    return tag("p", text)


def _coordinates(facts: Facts) -> Markup:
    lam = facts.model.dictionary.coordinates  # type: ignore[union-attr]
    caption = (
        "Each domain is a blend (a barycenter) of the same atoms. The target learns from the "
        "sources with which it shares atoms."
    )
    rows = [(name, *(float(x) for x in row)) for name, row in zip(facts.names, lam, strict=False)]
    head = ["domain", *(f"atom {c + 1}" for c in range(lam.shape[1]))]
    wide = {"tabindex": "0", "role": "region", "aria_label": "Barycentric coordinates"}
    picture = tag("div", _charts.coordinates(facts), class_="wide", **wide)
    return _figure("Barycentric coordinates", caption, picture, table(head, rows))


def components(facts: Facts) -> Markup:
    """All mixtures in one plane, and the slider along the atoms."""
    shown = _panels(facts)
    frames = [m for way in facts.frames for m in way]
    view = common_view(facts.plane, [m for _, _, m in shown] + frames)
    items = []
    for name, what, m in shown:
        picture = _charts.panel(m, view, f"{name} ({what})", facts.classes, _SIDE)
        kind = "goal" if what.startswith("target") else None
        heading = tag("h4", cut(name, 26))
        items.append(tag("li", heading, tag("p", what, class_="what"), picture, class_=kind))
    rows = [row for name, _, m in shown for row in _class_rows(name, m, facts.classes)]
    head = ["mixture", "class", "components", "weight", "mean, across", "mean, up"]
    numbers = table(head, [(*row[:4], *_mean(facts, row[4])) for row in rows])
    caption = (
        "An ellipse is one component, one standard deviation wide on each side; a dashed outline "
        f"means that its class is not certain. {_plane_words(facts)}"
    )
    body = [legend(facts.classes, unlabeled=True), tag("ul", *items, class_="panels")]
    figure = _figure("The same window on every mixture", caption, join(body), numbers)
    return join([figure, mover(facts, view) if facts.frames else None])


def _panels(facts: Facts) -> list[tuple[str, str, Mixture]]:
    """Name, role and mixture of every panel."""
    shown = [(name, "source", m) for name, m in zip(facts.names, facts.sources, strict=False)]
    dictionary = facts.model.dictionary
    if dictionary is not None:
        atoms = [way[-1] for way in facts.frames] or list(dictionary.atoms)
        shown += [(f"atom {c + 1}", "dictionary", atom) for c, atom in enumerate(atoms)]
    shown.append((facts.target_name, "target, no labels", facts.target))
    if facts.adapted is not None:
        shown.append((facts.names[-1], "target as adapted", facts.adapted))
    return shown


def _class_rows(
    name: str, m: Mixture, classes: tuple[str, ...]
) -> list[tuple[str, str, int, float, Mixture]]:
    tops = np.array(top_classes(m.labels, m.n_components))
    rows = []
    for k in np.unique(tops):
        inside = tops == k
        weight = float(m.weights[inside].sum())
        if weight <= 0:
            continue
        part = Mixture(m.weights[inside] / weight, m.means[inside], m.stds[inside])
        label = "no label" if k < 0 else classes[k]
        rows.append((name, label, int(inside.sum()), weight, part))
    return rows


def _mean(facts: Facts, m: Mixture) -> tuple[float | str, float | str]:
    across, up = m.weights @ facts.plane.place(m)[0]
    return float(across), "" if facts.plane.kind == "lanes" else float(up)


def _plane_words(facts: Facts) -> str:
    plane, names = facts.plane, facts.model.feature_names
    raw = facts.model.encoder is None
    if plane.kind == "lanes":
        what = names[0] if raw else "the only encoded feature"
        return f"Across is {what}; upwards, every class has its lane, unlabeled ones the lowest."
    if plane.kind == "features":
        what = (
            f"{names[0]}, up is {names[1]}" if raw else "the first encoded feature, up the second"
        )
        return f"Across is {what}."
    text = "The plane is the one in which the classes are best told apart, the same for all panels."
    if raw and len(names) == len(plane.axes):
        spread = np.abs(plane.axes)
        main = [listing([names[k] for k in np.argsort(-column)[:3]]) for column in spread.T]
        text += f" Across is ruled by {main[0]}; up by {main[1]}."
    return text


def plan(facts: Facts) -> Markup | None:
    """Transport plan between the labeled components and those of the target."""
    if facts.plan is None:
        return None
    what = "labeled mixture" if facts.adapted is None else facts.names[-1]
    if facts.sources and facts.plan_rows is facts.sources[0]:
        what = f"mixture of {facts.names[0]}"
    caption = (
        f"Each row is a component of the {what}, grouped by its class; each column is a component "
        f"of {facts.target_name}. A dark cell moves much mass. A column with cells in one class "
        "only is a part of the target on which the model has no doubt."
    )
    received = _received(facts)
    head = ["component", "of the target", "class", "share", "else", "share"]
    numbers = table(head[: len(received[0])], received[:_MOST_ROWS])
    figures = [_figure("Transport plan", caption, _charts.plan(facts), numbers)]
    if len(received[0]) == len(head):
        figures.append(_contested(facts, head))
    return tag("div", *figures, class_="pair")


def _received(facts: Facts) -> list[tuple[Any, ...]]:
    """Which classes every component of the target gets, and how much of them."""
    mass, source = np.asarray(facts.plan), facts.plan_rows
    rows: list[tuple[Any, ...]] = []
    for j in _charts.plan_order(facts)[1]:
        weight = float(mass[:, j].sum())
        row: list[Any] = [f"{int(j) + 1}", percent(weight)]
        if source is not None and source.labels is not None and len(facts.classes) > 1:
            for k, share in _top_shares(mass[:, j] @ source.labels / max(weight, 1e-300)):
                row += [facts.classes[k], percent(share)]
        rows.append(tuple(row))
    return rows


def _top_shares(shares: Array) -> list[tuple[int, float]]:
    order = np.argsort(-shares, kind="stable")[:2]
    return [(int(k), min(float(shares[k]), 1.0)) for k in order]


def _contested(facts: Facts, head: list[str]) -> Markup:
    """List the components of the target that two classes claim."""
    mass, labels = np.asarray(facts.plan), facts.plan_rows.labels  # type: ignore[union-attr]
    columns = _charts.plan_order(facts)[1]
    shares = (mass.T @ np.asarray(labels))[columns]
    weights = mass.sum(axis=0)[columns]
    first = shares.max(axis=1) / np.maximum(weights, 1e-300)
    doubt = np.flatnonzero((first < _CONTESTED) & (weights > 0))
    share = percent(float(weights[doubt].sum() / weights.sum()))
    if not len(doubt):
        text = "None: every component of the target gets nearly all of its mass from one class."
        body = None
    else:
        worst = doubt[np.argsort(first[doubt], kind="stable")][:_LEAST_CERTAIN]
        text = (
            f"{len(doubt)} of {len(columns)} components of {facts.target_name}, {share} of it, get "
            f"less than {percent(_CONTESTED)} of their mass from one class. The most contested:"
        )
        received = _received(facts)
        body = table(head, [received[k] for k in worst])
    caption = tag("figcaption", tag("h3", "Parts that two classes claim"), tag("p", text))
    return tag("figure", caption, body)


def predictions(facts: Facts) -> Markup | None:
    """Proportions, certainty, least certain samples, confusion."""
    shares = _words.target_shares(facts)
    found = facts.predictions
    figures = []
    if shares is not None and facts.sources:
        figures.append(_proportions(facts))
    if found is None:
        return tag("div", *figures, class_="pair") if figures else None
    if found.truth is not None:
        figures.append(_confusion(facts, found))
    figures.append(_certainty(facts, found))
    figures.append(_least_certain(facts, found))
    return tag("div", *figures, class_="pair")


def _proportions(facts: Facts) -> Markup:
    shares = _words.target_shares(facts)
    found = facts.predictions
    truth = None if found is None else _results.true_shares(found, len(facts.classes))
    text = f"Squares are shares of {_words.shares_of(facts)}, rings those of the sources"
    text += "." if truth is None else ", bars the true shares of the given labels."
    if facts.balanced:
        text += " The sources' mixtures were asked to hold every class in equal parts."
    head = ["class", facts.target_name, *facts.names[: facts.n_sources]]
    columns = [shares, *facts.source_shares]
    if truth is not None:
        head.append("true")
        columns.append(truth)
    rows = [
        (name, *(percent(float(column[k])) for column in columns))
        for k, name in enumerate(facts.classes)
    ]
    chart = _results.proportions(facts, np.asarray(shares))
    return _figure("Class proportions", text, chart, table(head, rows))


def _certainty(facts: Facts, found: Predictions) -> Markup:
    text = "How many samples got their class with how much probability."
    if found.truth is not None:
        text += " A model that knows what it knows is right as often as it is sure."
    rows = [
        (name, n, *(() if right is None else (percent(right),)))
        for name, n, right in _results.certainty_rows(found)
    ]
    head = ["probability", "samples", *(["right"] if found.truth is not None else [])]
    chart = _results.certainty(facts, found)
    return _figure("Certainty", text, chart, table(head, rows))


def _least_certain(facts: Facts, found: Predictions) -> Markup:
    order = np.argsort(found.probability, kind="stable")[:_LEAST_CERTAIN]
    head = ["row", "class", "probability", "else", "probability"]
    if found.far.any():
        head.append("far")
    if found.truth is not None:
        head.append("true class")
    rows = []
    for k in order:
        row: list[object] = [int(found.numbers[k])]
        row += [facts.classes[found.first[k]], percent(float(found.probability[k]))]
        single = len(facts.classes) == 1
        row += ["–" if single else facts.classes[found.second[k]]]
        row += ["–" if single else percent(float(found.runner_up[k]))]
        if found.far.any():
            row.append(tag("span", "far", class_="flag") if found.far[k] else "")
        if found.truth is not None:
            row.append([*facts.classes, *found.unknown][found.truth[k]])
        rows.append(tuple(row))
    text = "Look at these first. Row 1 is the first row of the data."
    if found.n_dropped:
        gone = plural(found.n_dropped, "row")
        text += f" {gone} with missing values {'was' if found.n_dropped == 1 else 'were'} left out."
    if found.far.any():
        text += f" {_far_rows(found)}"
    caption = tag("figcaption", tag("h3", "The least certain samples"), tag("p", text))
    return tag("figure", caption, table(head, rows))


def _far_rows(found: Predictions) -> str:
    far = [str(number) for number in found.numbers[found.far]]
    verb = "row is" if len(far) == 1 else "rows are"
    return (
        f"{len(far):,} {verb} far from everything the model knows, whatever their probabilities "
        f"say: {listing(far, 10)}."
    )


def _confusion(facts: Facts, found: Predictions) -> Markup:
    low, high = found.interval
    text = (
        f"{percent(found.accuracy)} of {len(found):,} labels are right "
        f"(95 % range {percent(low)} to {percent(high)}). Rows are true classes; shades are "
        "shares of a row, blue where right."
    )
    if found.unknown:
        text += f" The model does not know {listing(list(found.unknown))}, so those rows are wrong."
    names = [*facts.classes, *found.unknown]
    counts = np.asarray(found.confusion)
    rows = [(name, *(int(n) for n in counts[i])) for i, name in enumerate(names)]
    chart = _results.confusion(facts, found)
    return _figure("Confusion matrix", text, chart, table(["true class", *facts.classes], rows))


def learning(facts: Facts) -> Markup | None:
    """Loss and likelihood over the iterations."""
    dictionary = facts.model.dictionary
    if dictionary is None or len(dictionary.history.loss) < 2:
        return None
    past = dictionary.history
    head = ["iteration", "sum", *facts.names[: past.domain_loss.shape[1]]]
    steps = _rows_to_show(len(past.loss))
    rows = [(int(k), float(past.loss[k]), *(float(x) for x in past.domain_loss[k])) for k in steps]
    text = "Distance between the domains and their blends of atoms. Lower fits better."
    loss = _charts.curves(facts, past.domain_loss, past.loss, "Loss")
    figures = [_figure("Loss", text, join([_line_key(True), loss]), table(head, rows))]
    if past.nll is None:
        note = (
            "The likelihood of the samples was not recorded: only mixtures were seen while "
            "learning. A small loss does not prove that the classes are right."
        )
        return join([tag("div", *figures, class_="pair"), tag("p", note, class_="dim")])
    rows = [(int(k), *(float(x) for x in past.nll[k])) for k in steps]
    nll = _charts.curves(facts, past.nll, None, "Negative log-likelihood")
    text = "How surprising the samples are to the blends of atoms, on average. Lower is better."
    numbers = table([head[0], *head[2:]], rows)
    figures.append(_figure("Negative log-likelihood", text, join([_line_key(False), nll]), numbers))
    return tag("div", *figures, class_="pair")


def _rows_to_show(n: int) -> list[int]:
    return sorted({int(k) for k in np.linspace(0, n - 1, min(n, 40)).round()})


def _line_key(total: bool) -> Markup:
    kinds = [("line sum", "sum")] if total else []
    kinds += [("line goal", "target"), ("line", "sources")]
    items = (
        tag(
            "span",
            tag(
                "svg",
                tag("path", d="M0 6h22", class_=kind),
                viewBox="0 0 22 12",
                aria_hidden="true",
            ),
            name,
        )
        for kind, name in kinds
    )
    return tag("p", *items, class_="key")


def settings(facts: Facts) -> Markup:
    """How the model was made."""
    model = facts.model
    rows: list[tuple[str, object]] = [("method", model.method)]
    for domain in (*model.sources, model.target):
        size = "" if domain.n_samples is None else f" of {domain.n_samples:,} samples"
        rows.append(
            (f"mixture of {domain.name}", f"{domain.mixture.n_components} components{size}")
        )
    rows.append(("features", _long(model.feature_names)))
    rows.append(("classes", _long(facts.classes)))
    rows += _flat(model.settings)
    parts = [
        tag(
            "details",
            tag("summary", "Show all"),
            table(["setting", "value"], rows),
            class_="printed",
        )
    ]
    candidates = () if model.trust is None else model.trust.candidates
    if candidates:
        entries = [(str(c.get("name", "")), _value(c.get("score"))) for c in candidates]
        inside = tag("summary", "Candidates that were compared without labels of the target")
        parts.append(tag("details", inside, table(["candidate", "score"], entries)))
    return join(parts)


def _flat(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for key, value in tree.items():
        name = f"{prefix}{key}"
        rows += _flat(value, f"{name}: ") if isinstance(value, dict) else [(name, _value(value))]
    return rows


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return significant(value)
    return json.dumps(value, ensure_ascii=False, default=str)[:300]


def _long(names: tuple[str, ...]) -> str:
    most = 60
    rest = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{len(names):,}: {', '.join(cut(name, 40) for name in names[:most])}{rest}"


def _figure(title: str, caption: str, picture: Markup, numbers: Markup) -> Markup:
    return tag(
        "figure",
        tag("figcaption", tag("h3", title), tag("p", caption)),
        picture,
        tag("details", tag("summary", "Numbers"), numbers),
    )
