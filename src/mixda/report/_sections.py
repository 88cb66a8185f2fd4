"""The sections for experts: charts with a caption and a table of their numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixda._core.typing import Array
from mixda.mixture import Mixture
from mixda.model import describe_sampling
from mixda.report import _charts
from mixda.report._facts import Facts
from mixda.report._html import Markup, cut, join, listing, percent, significant, table, tag
from mixda.report._marks import legend
from mixda.report._scales import common_window
from mixda.report._slider import interpolation_slider
from mixda.views import (
    UNLABELED,
    Curves,
    OrderedPlan,
    barycentric_coordinates,
    learning_curves,
    most_probable_classes,
)

_SIDE = 170.0
_MIN_CLASS_MASS = 0.9  # components that get less of their mass from one class are ambiguous
_MAX_AMBIGUOUS_ROWS = 12
_MAX_TABLE_ROWS = 400
_MAX_TABLE_ITERATIONS = 40
_MAX_NAMES = 60


def distances(facts: Facts) -> Markup:
    """MW2 between all domains and, for dictionaries, the coordinates and what they share."""
    shown = (*facts.nearest_sources, *range(facts.n_sources, len(facts.names)))
    rows = [(facts.names[k], *(float(facts.distances[k, j]) for j in shown)) for k in shown]
    text = (
        "MW2 is the Wasserstein distance between mixtures, in units of the model's features. The "
        f"map of the domains approximates it (relative error {percent(facts.domain_map.error)})."
    )
    if len(facts.nearest_sources) < facts.n_sources:
        text += f" The nearest {len(facts.nearest_sources)} of {facts.n_sources} sources are shown."
    caption = tag("figcaption", tag("h3", "Distances between the domains"), tag("p", text))
    numbers = table(["MW2 distance", *(facts.short_names[k] for k in shown)], rows)
    parts: list[Markup | None] = [_committee(facts), tag("figure", caption, numbers)]
    if facts.model.dictionary is not None:
        parts.append(_coordinates(facts))
    return join(parts)


def _committee(facts: Facts) -> Markup | None:
    if len(facts.experts) < 2:
        return None
    text = (
        f"{facts.model.method} combines {len(facts.experts)} classifiers; their weights are under "
        "Settings. The mixtures on this page are those of a single GMM-DaDiL."
    )
    return tag("p", text)


def sampling(facts: Facts) -> Markup | None:
    """Say how many rows were used, if not all."""
    sentence = describe_sampling(facts.model)
    return None if sentence is None else tag("p", sentence[0].upper() + sentence[1:])


def _coordinates(facts: Facts) -> Markup:
    every = barycentric_coordinates(facts.model.dictionary, facts.names)  # type: ignore[arg-type]
    caption = (
        "Each domain is a barycenter of the same atoms. Labels reach the target through the atoms "
        "that it shares with the sources."
    )
    near = [*sorted(facts.nearest_sources), facts.n_sources]
    names = tuple(facts.short_names[k] for k in near)
    shown = replace(every, domains=names, values=every.values[near])
    if len(near) <= facts.n_sources:
        caption += f" The nearest {len(near) - 1} of {facts.n_sources} sources are drawn."
    rows = [
        (name, *(float(x) for x in row))
        for name, row in zip(every.domains, every.values, strict=True)
    ]
    head = ["domain", *shown.atoms]
    wide = {"tabindex": "0", "role": "region", "aria_label": "Barycentric coordinates"}
    picture = tag("div", _charts.coordinates(shown), class_="wide", **wide)
    return figure("Barycentric coordinates", caption, picture, table(head, rows))


def components(facts: Facts) -> Markup:
    """All mixtures in one plane, and the interpolation between the atoms."""
    shown = _panels(facts)
    frames = [m for path in facts.frames for m in path]
    window = common_window(facts.plane, [m for _, _, m in shown] + frames)
    items = []
    for name, role, m in shown:
        picture = _charts.panel(m, window, f"{name} ({role})", facts.classes, _SIDE)
        kind = "goal" if role.startswith("target") else None
        heading = tag("h4", cut(name, 26))
        items.append(tag("li", heading, tag("p", role, class_="what"), picture, class_=kind))
    rows = [row for name, _, m in shown for row in _class_rows(name, m, facts.classes)]
    head = ["mixture", "class", "components", "weight", "mean, horizontal", "mean, vertical"]
    numbers = table(head, [(*row[:4], *_mean(facts, row[4])) for row in rows])
    caption = (
        "Each ellipse is a component; its half-axes are one standard deviation. A dashed outline "
        f"means that its class is uncertain. {_plane_description(facts)}"
    )
    if len(facts.nearest_sources) < facts.n_sources:
        caption += f" The nearest {len(facts.nearest_sources)} of {facts.n_sources} sources."
    body = [legend(facts.classes, unlabeled=True), tag("ul", *items, class_="panels")]
    panels = figure("Components of all mixtures", caption, join(body), numbers)
    return join([panels, interpolation_slider(facts, window) if facts.frames else None])


def _panels(facts: Facts) -> list[tuple[str, str, Mixture]]:
    """Return name, role and mixture of each panel."""
    near = sorted(facts.nearest_sources)
    shown = [(facts.short_names[k], "source", facts.sources[k]) for k in near]
    dictionary = facts.model.dictionary
    if dictionary is not None:
        atoms = [path[-1] for path in facts.frames] or list(dictionary.atoms)
        shown += [(f"atom {c + 1}", "dictionary", atom) for c, atom in enumerate(atoms)]
    shown.append((facts.target_name, "target, unlabeled", facts.target))
    if facts.adapted is not None:
        shown.append((facts.names[-1], "target, adapted", facts.adapted))
    return shown


def _class_rows(
    name: str, m: Mixture, classes: tuple[str, ...]
) -> list[tuple[str, str, int, float, Mixture]]:
    tops = most_probable_classes(m.labels, m.n_components)
    rows = []
    for k in np.unique(tops):
        inside = tops == k
        weight = float(m.weights[inside].sum())
        if weight <= 0:
            continue
        part = Mixture(m.weights[inside] / weight, m.means[inside], m.stds[inside])
        label = "no label" if k == UNLABELED else classes[k]
        rows.append((name, label, int(inside.sum()), weight, part))
    return rows


def _mean(facts: Facts, m: Mixture) -> tuple[float | str, float | str]:
    x, y = m.weights @ facts.plane.place(m)[0]
    return float(x), "" if facts.plane.kind == "lanes" else float(y)


def _plane_description(facts: Facts) -> str:
    plane, names = facts.plane, facts.model.feature_names
    raw = facts.model.encoder is None
    if plane.kind == "lanes":
        x = names[0] if raw else "the only encoded feature"
        return f"The horizontal axis is {x}. Each class has its own lane; the lowest is unlabeled."
    if plane.kind == "features":
        x, y = (names[0], names[1]) if raw else ("the first encoded feature", "the second")
        return f"The horizontal axis is {x}, the vertical axis {y}."
    text = "All panels show the plane that best separates the classes."
    if raw and len(names) == len(plane.axes):
        loadings = np.abs(plane.axes)
        main = [listing([names[k] for k in np.argsort(-column)[:3]]) for column in loadings.T]
        text += (
            f" Main features of the horizontal axis: {main[0]}; of the vertical axis: {main[1]}."
        )
    return text


def plan(facts: Facts) -> Markup | None:
    """Transport plan between the labeled components and those of the target."""
    if facts.plan is None:
        return None
    rows = "labeled mixture" if facts.adapted is None else facts.names[-1]
    if facts.sources and facts.plan_source is facts.sources[0]:
        rows = f"mixture of {facts.names[0]}"
    caption = (
        f"Rows are components of the {rows}, grouped by class; columns are components of "
        f"{facts.target_name}. Darker cells transport more mass. A target component whose mass "
        "comes from a single class is labeled unambiguously."
    )
    received = _received(facts, facts.plan)
    head = ["component", "weight", "class", "share", "second class", "share"]
    numbers = table(head[: len(received[0])], received[:_MAX_TABLE_ROWS])
    figures = [figure("Transport plan", caption, _charts.plan(facts, facts.plan), numbers)]
    if len(received[0]) == len(head):
        figures.append(_ambiguous(facts, facts.plan, received, head))
    return tag("div", *figures, class_="pair")


def _class_shares_received(facts: Facts, ordered: OrderedPlan) -> Array | None:
    """Return the share of each class in the mass that each column of the plan receives."""
    start = facts.plan_source
    if start is None or start.labels is None or len(facts.classes) < 2:
        return None
    weights = np.maximum(ordered.mass.sum(axis=0), np.finfo(float).tiny)
    shares: Array = ordered.mass.T @ start.labels[ordered.rows] / weights[:, None]
    return np.minimum(shares, 1.0)


def _received(facts: Facts, ordered: OrderedPlan) -> list[tuple[Any, ...]]:
    """Return the rows of the table: each target component, its weight and its two main classes."""
    shares = _class_shares_received(facts, ordered)
    weights = ordered.mass.sum(axis=0)
    rows: list[tuple[Any, ...]] = []
    for k, j in enumerate(ordered.columns):
        row: list[Any] = [f"{int(j) + 1}", percent(float(weights[k]))]
        if shares is not None:
            for c in np.argsort(-shares[k], kind="stable")[:2]:
                row += [facts.classes[c], percent(float(shares[k, c]))]
        rows.append(tuple(row))
    return rows


def _ambiguous(
    facts: Facts, ordered: OrderedPlan, received: list[tuple[Any, ...]], head: list[str]
) -> Markup:
    """List the components of the target that receive mass from several classes."""
    weights = ordered.mass.sum(axis=0)
    largest = np.asarray(_class_shares_received(facts, ordered)).max(axis=1)
    ambiguous = np.flatnonzero((largest < _MIN_CLASS_MASS) & (weights > 0))
    if not len(ambiguous):
        text = "None. Each component of the target receives nearly all of its mass from one class."
        body = None
    else:
        worst = ambiguous[np.argsort(largest[ambiguous], kind="stable")][:_MAX_AMBIGUOUS_ROWS]
        weight = percent(float(weights[ambiguous].sum() / weights.sum()))
        text = (
            f"{len(ambiguous)} of {len(largest)} components of {facts.target_name} (total weight "
            f"{weight}) receive less than {percent(_MIN_CLASS_MASS)} of their mass from one class. "
            "The most ambiguous:"
        )
        body = table(head, [received[k] for k in worst])
    caption = tag("figcaption", tag("h3", "Ambiguous components"), tag("p", text))
    return tag("figure", caption, body)


def learning(facts: Facts) -> Markup | None:
    """Loss and negative log-likelihood over the iterations."""
    dictionary = facts.model.dictionary
    if dictionary is None or len(dictionary.history.loss) < 2:
        return None
    loss, nll = learning_curves(dictionary, facts.names)
    captions = (
        "Distance between the domains and their reconstructions. Lower is better.",
        "Mean negative log-likelihood of the samples under the reconstructions. Lower is better.",
    )
    figures = [
        figure(
            shown.title,
            caption,
            join([_line_key(shown.total is not None), _charts.curves(shown)]),
            _curve_table(shown),
        )
        for shown, caption in zip((loss, nll), captions, strict=True)
        if shown is not None
    ]
    if nll is not None:
        return tag("div", *figures, class_="pair")
    note = (
        "The likelihood of the samples was not recorded because training saw only mixtures. A "
        "small loss does not prove that the classes are correct."
    )
    return join([tag("div", *figures, class_="pair"), tag("p", note, class_="dim")])


def _curve_table(shown: Curves) -> Markup:
    n = len(shown.values)
    iterations = sorted(
        {int(k) for k in np.linspace(0, n - 1, min(n, _MAX_TABLE_ITERATIONS)).round()}
    )
    totals = [] if shown.total is None else [shown.total]
    values = np.column_stack([*totals, shown.values])
    head = ["iteration", *(["sum"] if totals else []), *shown.domains]
    return table(head, [(k, *(float(x) for x in values[k])) for k in iterations])


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
    """Tables of the settings and versions of the model."""
    model = facts.model
    rows: list[tuple[str, object]] = [("method", model.method)]
    for domain in (*model.sources, model.target):
        size = "" if domain.n_samples is None else f" of {domain.n_samples:,} samples"
        rows.append(
            (f"mixture of {domain.name}", f"{domain.mixture.n_components} components{size}")
        )
    rows.append(("features", _name_list(model.feature_names)))
    rows.append(("classes", _name_list(facts.classes)))
    shown_elsewhere = ("checks", "left_out")
    rows += _flatten({k: v for k, v in model.settings.items() if k not in shown_elsewhere})
    parts = [
        tag(
            "details",
            tag("summary", "Show all"),
            table(["setting", "value"], rows),
        )
    ]
    candidates = () if model.trust is None else model.trust.candidates
    if candidates:
        parts.append(_members(candidates))
    return join(parts)


def _members(candidates: Sequence[dict[str, Any]]) -> Markup:
    """Return the members of a committee, heaviest first, with their held-out accuracy."""

    def share(value: Any) -> str:
        return percent(value) if isinstance(value, float) else ""

    def rank(candidate: dict[str, Any]) -> tuple[bool, float]:
        weight = candidate.get("weight")
        return not candidate.get("chosen"), -weight if isinstance(weight, float) else 0.0

    rows = [
        (
            str(c.get("name", "")),
            share(c.get("weight")),
            share(c.get("score")),
            "best ordinary classifier" if c.get("reference") else "",
        )
        for c in sorted(candidates, key=rank)
    ]
    inside = tag("summary", "Members, their weights, and their accuracy on held-out sources")
    return tag("details", inside, table(["member", "weight", "held-out accuracy", ""], rows))


def _flatten(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for key, value in tree.items():
        name = f"{prefix}{key}"
        rows += (
            _flatten(value, f"{name}: ")
            if isinstance(value, dict)
            else [(name, _format_setting(value))]
        )
    return rows


def _format_setting(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return significant(value)
    return json.dumps(value, ensure_ascii=False, default=str)[:300]


def _name_list(names: tuple[str, ...]) -> str:
    rest = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return f"{len(names):,}: {', '.join(cut(name, 40) for name in names[:_MAX_NAMES])}{rest}"


def figure(title: str, caption: str, picture: Markup, numbers: Markup) -> Markup:
    """Return a picture with its caption and a table of its numbers."""
    return tag(
        "figure",
        tag("figcaption", tag("h3", title), tag("p", caption)),
        picture,
        tag("details", tag("summary", "Numbers"), numbers),
    )
