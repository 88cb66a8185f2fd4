"""The page itself: sections in reading order, each of them left out when it has nothing to say."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib.resources import files

from mixda.report import _sentences as _words
from mixda.report._facts import Facts
from mixda.report._html import Markup, join, tag
from mixda.report._marks import definitions
from mixda.report._sections import components, domains, learning, plan, predictions, settings

_SECTIONS: tuple[tuple[str, str, Callable[[Facts], Markup | None]], ...] = (
    ("domains", "The domains", domains),
    ("components", "The components", components),
    ("plan", "Who labels whom", plan),
    ("predictions", "The predictions", predictions),
    ("learning", "The learning", learning),
    ("settings", "Settings and versions", settings),
)


def render(facts: Facts, title: str | None = None) -> str:
    """Return the page as text."""
    heading = _words.heading(facts) if title is None else str(title)
    found = [(name, words, make(facts)) for name, words, make in _SECTIONS]
    sections = [(name, words, body) for name, words, body in found if body is not None]
    links = [("short", "In short"), *((name, words) for name, words, _ in sections)]
    body = [
        tag("a", "Skip to the content", href="#content", class_="skip"),
        definitions(),
        _header(facts, heading),
        _contents(links),
        tag(
            "main",
            _section("short", "In short", _short(facts)),
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
        # the page runs its own script and nothing else, and fetches nothing, whatever the names say
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
    kicker = "Report of a domain adaptation" + (f" · model of {created}" if created else "")
    return tag(
        "header",
        tag("p", kicker, class_="kicker"),
        tag("h1", heading),
        tag("p", _words.lede(facts), class_="lede"),
    )


def _contents(links: list[tuple[str, str]]) -> Markup:
    items = (tag("li", tag("a", words, href=f"#{name}")) for name, words in links)
    return tag("nav", tag("ul", *items), aria_label="Contents")


def _section(name: str, words: str, body: Markup) -> Markup:
    heading = tag("h2", words, id=f"{name}-title")
    return tag("section", heading, body, id=name, aria_labeledby=f"{name}-title")


def _short(facts: Facts) -> Markup:
    cards = (
        tag(
            "div",
            tag("dt", card.name),
            tag("dd", card.value, class_="value"),
            tag("dd", card.note),
        )
        for card in _words.cards(facts)
    )
    parts = [
        tag("dl", *cards, class_="cards"),
        tag(
            "div",
            tag("div", tag("h3", "How far to trust it"), *paragraphs(_words.trust_words(facts))),
            tag("div", tag("h3", "How far apart"), *paragraphs([_words.distance_words(facts)])),
            class_="pair",
        ),
    ]
    signs = _words.signs(facts)
    if signs:
        parts += [tag("h3", "Signs that need no labels"), _signs(signs)]
    return join(parts)


def paragraphs(texts: list[str]) -> list[Markup]:
    """Return every text as a paragraph."""
    return [tag("p", text) for text in texts]


def _signs(signs: list[_words.Sign]) -> Markup:
    words = {"good": "✓ good", "bad": "! beware", "note": "· note"}
    items = (tag("li", tag("b", words[s.kind]), s.text, class_=s.kind) for s in signs)
    return tag("ul", *items, class_="signs")


def _footer(facts: Facts) -> Markup:
    versions = facts.model.settings.get("versions") or {}
    version = versions.get("mixda", "") if isinstance(versions, dict) else ""
    made = f"Made with mixda {version}".rstrip()
    return tag(
        "footer",
        f"{made}. This page is one file: it fetches nothing and sends nothing. It holds numbers of "
        "mixtures"
        + (" and row numbers of the given samples" if facts.predictions is not None else "")
        + ", no sample of any domain.",
    )
