"""Findings of the checks, and the report that holds them: as text, JSON and a page of HTML."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from mixda._core.errors import MixdaError
from mixda._core.validation import check_choice
from mixda.checks._columns import ColumnUse
from mixda.tables import Columns

SEVERITIES = ("blocker", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """Something that a check found.

    Attributes
    ----------
    severity : {"blocker", "warning", "note"}
        A blocker stops `adapt` unless it is forced.
    code : str
        What kind of finding it is, such as "label-spelling".
    sentence : str
    remedy : str
        What to do, usually an option to pass.
    """

    severity: str
    code: str
    sentence: str
    remedy: str = ""

    def __post_init__(self) -> None:
        check_choice(self.severity, "severity", SEVERITIES)

    def __str__(self) -> str:
        return f"{self.sentence.rstrip('.')}; {self.remedy}" if self.remedy else self.sentence


def read_findings(stored: Any) -> list[Finding]:
    """Return the findings that a model keeps, most severe first.

    What is not a finding, in a forged file, is left out.

    Examples
    --------
    >>> from mixda.checks import read_findings
    >>> read_findings([{"severity": "note", "code": "c", "sentence": "s", "remedy": ""}, 5])
    [Finding(severity='note', code='c', sentence='s', remedy='')]
    """
    names = ("severity", "code", "sentence", "remedy")
    parts = [part for part in stored if isinstance(part, dict)] if isinstance(stored, list) else []
    findings = [
        Finding(**{name: part[name] for name in names})
        for part in parts
        if all(isinstance(part.get(name), str) for name in names) and part["severity"] in SEVERITIES
    ]
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


@dataclass(frozen=True)
class CheckReport:
    """What the checks found before any fit.

    Attributes
    ----------
    findings : tuple of Finding
        Blockers first.
    columns : tuple of ColumnUse
        Which columns are used, which are left out, and why.
    encoding : Columns or None
        How the columns that are used become features; None if no column is left.
    domains : tuple of dict
        Name, role, rows and class counts of each domain. Target labels are never read.
    missing : dict of str to dict
        Share of missing values by column and domain, where there are any.
    distances : dict of str to dict, or None
        Mixture-Wasserstein distances between domains, in standard deviations of the sources.
    """

    findings: tuple[Finding, ...]
    columns: tuple[ColumnUse, ...]
    encoding: Columns | None
    domains: tuple[dict[str, Any], ...]
    missing: dict[str, dict[str, float]]
    distances: dict[str, dict[str, float]] | None = None

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """Findings that stop `adapt`."""
        return tuple(finding for finding in self.findings if finding.severity == "blocker")

    @property
    def left_out(self) -> dict[str, str]:
        """Why each column that is not used is left out."""
        return {use.name: use.reason for use in self.columns if not use.used and use.reason}

    def raise_for_blockers(self, alternative: str = "") -> None:
        """Raise a `MixdaError` about the first blocker, with what else the user can do."""
        if self.blockers:
            parts = [str(self.blockers[0]).rstrip("."), *([alternative] if alternative else [])]
            n_more = len(self.blockers) - 1
            more = f" ({n_more} more: mixda check)" if n_more else ""
            raise MixdaError(f"{'; '.join(parts)}{more}.")

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "findings": [vars(finding) for finding in self.findings],
            "columns": [vars(use) for use in self.columns],
            "features": [] if self.encoding is None else list(self.encoding.feature_names),
            "domains": list(self.domains),
            "missing": self.missing,
            "distances": self.distances,
        }

    def to_html(self) -> str:
        """Return the report as one HTML page."""
        shares = [
            (column, domain, f"{share:.0%}")
            for column, by_domain in self.missing.items()
            for domain, share in by_domain.items()
        ]
        parts = [
            _table(
                "Findings",
                ("severity", "finding", "remedy"),
                [(f.severity, f.sentence, f.remedy) for f in self.findings],
            ),
            _table(
                "Columns",
                ("column", "kind", "used", "reason"),
                [(u.name, u.kind, "yes" if u.used else "no", u.reason) for u in self.columns],
            ),
            _table(
                "Domains",
                ("domain", "role", "rows", "classes"),
                [
                    (
                        *(domain[key] for key in ("domain", "role", "rows")),
                        ", ".join(f"{k}: {n}" for k, n in (domain["classes"] or {}).items()),
                    )
                    for domain in self.domains
                ],
            ),
            _table("Missing values", ("column", "domain", "share"), shares),
        ]
        if self.distances is not None:
            names = list(self.distances)
            rows = [(a, *(f"{self.distances[a][b]:.2f}" for b in names)) for a in names]
            parts.append(_table("Distances between domains", ("", *names), rows))
        return _PAGE.format(body="\n".join(parts))


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>mixda check</title>
<style>body {{ font: 15px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }}
table {{ border-collapse: collapse; }} td, th {{ text-align: left; vertical-align: top;
padding: .2em .8em .2em 0; border-bottom: 1px solid #ddd; }}
.blocker {{ color: #b00020; font-weight: bold; }} .warning {{ color: #8a5a00; }}</style></head>
<body><h1>Checks before the fit</h1>
{body}
</body></html>
"""


def _table(title: str, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    lines = "\n".join(
        f'<tr class="{escape(str(row[0]))}">'
        + "".join(f"<td>{escape(str(cell))}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return f"<h2>{escape(title)}</h2>\n<table><tr>{head}</tr>\n{lines}</table>"
