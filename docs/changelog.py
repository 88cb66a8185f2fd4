"""Sphinx directive ``.. mixda-changelog::``: insert CHANGELOG.md, without its title."""

import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

CHANGELOG = Path(__file__).parent.parent / "CHANGELOG.md"


def as_rst(text):
    """Return the Markdown of a changelog (headings, lists, code, links) as reStructuredText."""
    text = re.sub(r"^# .*\n", "", text)
    text = re.sub(r"^## (.*)$", lambda m: f"{m[1].strip('[')}\n{'-' * len(m[1])}", text, flags=re.M)
    text = re.sub(r"^### (.*)$", r"**\1**", text, flags=re.M).replace("] - ", " – ")
    text = re.sub(r"`([^`\n]+)`", r"``\1``", text)
    return re.sub(r"\[([^]\n]+)\]\((http[^)]+)\)", r"`\1 <\2>`__", text)


class Changelog(Directive):
    """Parse the changelog where the directive stands."""

    def run(self):
        self.state.document.settings.env.note_dependency(str(CHANGELOG))
        lines = as_rst(CHANGELOG.read_text(encoding="utf-8")).splitlines()
        section = nodes.section()
        section.document = self.state.document
        content = StringList(lines, source=str(CHANGELOG))
        self.state.nested_parse(content, 0, section, match_titles=True)
        return section.children


def setup(app):
    app.add_directive("mixda-changelog", Changelog)
    return {"parallel_read_safe": True}
