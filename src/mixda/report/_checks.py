"""What the checks before the fit found, as the model keeps it: findings and columns left out."""

from __future__ import annotations

from mixda.checks import Finding, read_findings
from mixda.report._facts import Facts
from mixda.report._html import Markup, join, table, tag


def checks(facts: Facts) -> Markup | None:
    """Return the findings, most severe first, and the columns that are not used; None without."""
    rows = [(f.severity, f.sentence, f.remedy) for f in findings(facts)]
    columns = facts.model.settings.get("left_out")
    left_out = [(n, str(why)) for n, why in columns.items()] if isinstance(columns, dict) else []
    if not rows and not left_out:
        return None
    parts = []
    if rows:
        parts.append(table(["severity", "finding", "remedy"], rows))
    if left_out:
        names = table(["column", "reason"], left_out)
        parts.append(tag("details", tag("summary", "Columns left out"), names))
    return join(parts)


def findings(facts: Facts) -> list[Finding]:
    """Return what the checks found before the model was fitted."""
    return read_findings(facts.model.settings.get("checks"))
