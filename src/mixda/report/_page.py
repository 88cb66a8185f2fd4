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
from mixda.report._sections import components, domains, learning, plan, settings

_SECTIONS: tuple[tuple[str, str, Callable[[Facts], Markup | None]], ...] = (
    ("domains", "Domains", domains),
    ("components", "Components", components),
    ("plan", "Transport plan", plan),
    ("predictions", "Predictions", predictions),
    ("learning", "Training", learning),
    ("checks", "Checks before the fit", checks),
    ("settings", "Settings and versions", settings),
)


def render(facts: Facts, title: str | None = None) -> str:
    """Return the page as text."""
    heading = _sentences.heading(facts) if title is None else str(title)
    bodies = [(name, text, make(facts)) for name, text, make in _SECTIONS]
    sections = [(name, text, body) for name, text, body in bodies if body is not None]
    links = [("summary", "Summary"), *((name, text) for name, text, _ in sections)]
    body = [
        tag("a", "Skip to content", href="#content", class_="skip"),
        definitions(),
        _header(facts, heading),
        _contents(links),
        tag(
            "main",
            _section("summary", "Summary", _summary(facts)),
            *(_section(*section) for section in sections),
            id="content",
        ),
        _footer(facts),
    ]
    script = _asset("_script.js") if facts.frames else ""
    if script:
        body.append(tag("script", Markup(script)))
    page = tag("html", _head(heading, script), tag("body", *body), lang="en")
    return f"<!doctype html>\n{page}\n"


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
    parts = [
        tag("dl", *cards, class_="cards"),
        tag(
            "div",
            tag("div", tag("h3", "Reliability"), *_paragraphs(_sentences.reliability(facts))),
            tag("div", tag("h3", "Distances"), *_paragraphs([_sentences.distance_summary(facts)])),
            class_="pair",
        ),
    ]
    signs = _sentences.signs(facts)
    if signs:
        parts += [tag("h3", "Diagnostics without target labels"), _signs(signs)]
    return join(parts)


def _paragraphs(texts: list[str]) -> list[Markup]:
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
        contents += " and row numbers of the given samples"
    return tag(
        "footer",
        f"{created_with}. This page is a single file that neither loads nor sends data. It "
        f"contains {contents}, but no samples.",
    )
