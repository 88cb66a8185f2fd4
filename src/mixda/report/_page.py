"""The page: sections in reading order, without those that have no content."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib.resources import files

from mixda.report import _sentences
from mixda.report._checks import checks
from mixda.report._facts import Facts
from mixda.report._html import Markup, join, tag
from mixda.report._marks import definitions
from mixda.report._prediction_sections import predictions
from mixda.report._reader_sections import domains, drift, reasons, shifts
from mixda.report._sections import components, distances, learning, plan, settings

_Sections = tuple[tuple[str, str, Callable[[Facts], Markup | None]], ...]
_SECTIONS: _Sections = (
    ("predictions", "Predictions", predictions),
    ("reasons", "Why rows got their class", reasons),
    ("shifts", "What moved", shifts),
    ("domains", "Domains", domains),
    ("monitor", "Change since the adaptation", drift),
    ("checks", "Checks before the fit", checks),
)
_EXPERT_SECTIONS: _Sections = (
    ("distances", "Distances", distances),
    ("components", "Components", components),
    ("plan", "Transport plan", plan),
    ("learning", "Training", learning),
    ("settings", "Settings and versions", settings),
)


def render(facts: Facts, title: str | None = None) -> str:
    """Return the page as text."""
    heading = _sentences.heading(facts) if title is None else str(title)
    sections = _filled(facts, _SECTIONS)
    links = [("summary", "Summary"), *((name, text) for name, text, _ in sections)]
    links.append(("experts", "For experts"))
    body = [
        tag("a", "Skip to content", href="#content", class_="skip"),
        definitions(),
        _header(facts, heading),
        _contents(links),
        tag(
            "main",
            _section("summary", "Summary", _summary(facts)),
            *(_section(*section) for section in sections),
            _experts(facts),
            id="content",
        ),
        _footer(facts),
    ]
    script = _asset("_script.js") if facts.frames else ""
    if script:
        body.append(tag("script", Markup(script)))
    page = tag("html", _head(heading, script), tag("body", *body), lang="en")
    return f"<!doctype html>\n{page}\n"


def _filled(facts: Facts, sections: _Sections) -> list[tuple[str, str, Markup]]:
    """Return name, heading and body of the sections that have a body."""
    bodies = [(name, text, make(facts)) for name, text, make in sections]
    return [(name, text, body) for name, text, body in bodies if body is not None]


def _experts(facts: Facts) -> Markup:
    """Return the fold with mixtures, transport and settings, which is closed at first."""
    summary = tag(
        "summary",
        tag("h2", "For experts"),
        tag("p", "Mixtures, distances, transport, training and settings. Not needed to use it."),
    )
    sign = _sentences.shared_atoms(facts)
    body = (_section(*section) for section in _filled(facts, _EXPERT_SECTIONS))
    signs = None if sign is None else _signs([sign])
    return tag("details", summary, signs, *body, class_="experts", id="experts")


def _head(heading: str, script: str) -> Markup:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        # the page fetches nothing and runs only its own script, whatever names contain
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{heading} – mixda report"),
        tag("style", Markup(_asset("_style.css"))),
    )


def _asset(name: str) -> str:
    return files("mixda.report").joinpath(name).read_text(encoding="utf-8")


def _header(facts: Facts, heading: str) -> Markup:
    created = str(facts.model.settings.get("created", ""))[:10]
    kicker = "Domain adaptation report" + (f" · model created {created}" if created else "")
    return tag(
        "header",
        tag("p", kicker, class_="kicker"),
        tag("h1", heading),
        tag("p", _sentences.lede(facts), class_="lede"),
    )


def _contents(links: list[tuple[str, str]]) -> Markup:
    items = (tag("li", tag("a", text, href=f"#{name}")) for name, text in links)
    return tag("nav", tag("ul", *items), aria_label="Contents")


def _section(name: str, text: str, body: Markup) -> Markup:
    heading = tag("h2", text, id=f"{name}-title")
    return tag("section", heading, body, id=name, aria_labelledby=f"{name}-title")


def _summary(facts: Facts) -> Markup:
    cards = (
        tag(
            "div",
            tag("dt", card.name),
            tag("dd", card.value, class_="value"),
            tag("dd", card.note),
        )
        for card in _sentences.cards(facts)
    )
    steps = (tag("li", step) for step in _sentences.next_steps(facts))
    parts = [
        tag("dl", *cards, class_="cards"),
        tag(
            "div",
            tag("div", tag("h3", "How far to trust it"), *_paragraphs(facts)),
            tag("div", tag("h3", "What to do next"), tag("ol", *steps)),
            class_="pair",
        ),
    ]
    signs = _sentences.signs(facts)
    if signs:
        parts += [tag("h3", "Diagnostics without target labels"), _signs(signs)]
    return join(parts)


def _paragraphs(facts: Facts) -> list[Markup]:
    texts = [*_sentences.reliability(facts), _sentences.distance_summary(facts)]
    return [tag("p", text) for text in texts]


def _signs(signs: list[_sentences.Sign]) -> Markup:
    symbols = {"good": "✓ good", "bad": "! warning", "note": "· note"}
    items = (tag("li", tag("b", symbols[s.kind]), s.text, class_=s.kind) for s in signs)
    return tag("ul", *items, class_="signs")


def _footer(facts: Facts) -> Markup:
    versions = facts.model.settings.get("versions") or {}
    version = versions.get("mixda", "") if isinstance(versions, dict) else ""
    created_with = f"Created with mixda {version}".rstrip()
    contents = "parameters of mixtures"
    if facts.predictions is not None:
        contents += ", row numbers of the given samples"
    if facts.reasons:
        contents += f", explanations of {len(facts.reasons)} of them without their values"
    return tag(
        "footer",
        f"{created_with}. This page is a single file that neither loads nor sends data. It "
        f"contains {contents}, but no samples.",
    )
