"""Run all checks on the domains of a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mixda._core.errors import MixdaError
from mixda._core.text import suggestion
from mixda.checks._columns import ColumnUse, Request, decide_columns
from mixda.checks._findings import SEVERITIES, CheckReport, Finding
from mixda.checks._frames import Frame
from mixda.checks._labels import class_counts, label_findings
from mixda.checks._values import (
    distance_findings,
    domain_distances,
    duplicate_findings,
    level_findings,
    missing_findings,
    missing_shares,
    unit_findings,
)
from mixda.tables import Columns, check_ordinals


def examine(
    frames: Sequence[Frame],
    request: Request,
    *,
    encoding: Columns | None = None,
    measure_distances: bool = True,
) -> CheckReport:
    """Check the domains of a task before any fit.

    Parameters
    ----------
    frames : sequence of Frame
        Sources, and the target if it is a table.
    request : Request
    encoding : Columns, optional
        The columns, if they are fixed already, for example by mixtures among the domains.
    measure_distances : bool
        Whether to measure how far the domains are from each other.

    Returns
    -------
    CheckReport
    """
    names = {name for frame in frames for name in frame.kinds}
    check_ordinals(request.ordinal, sorted(names))
    _check_dropped(request, frames)
    findings: list[Finding] = []
    uses: tuple[ColumnUse, ...] = ()
    if encoding is None:
        chosen = choose_columns(frames, request)
        encoding, uses, findings = chosen.encoding, chosen.columns, list(chosen.findings)
    findings += label_findings(frames)
    missing, distances = {}, None
    complete = [f for f in frames if encoding and set(encoding.names) <= set(f.kinds)]
    if encoding is not None and complete:
        missing = missing_shares(complete, encoding)
        findings += _value_findings(complete, encoding, missing)
        if measure_distances and any(not frame.is_target for frame in complete):
            distances = domain_distances(complete, encoding)
            findings += distance_findings(distances, complete)
    return CheckReport(
        tuple(_by_severity(findings)),
        uses,
        encoding,
        tuple(
            {
                "domain": frame.name,
                "role": "target" if frame.is_target else "source",
                "rows": frame.n_rows,
                "classes": None if frame.y is None else class_counts(frame),
            }
            for frame in frames
        ),
        missing,
        distances,
    )


def choose_columns(frames: Sequence[Frame], request: Request) -> CheckReport:
    """Decide which columns are features; the report has findings about columns only."""
    decisions = decide_columns(frames, request)
    columns = tuple(d.column for d in decisions if d.column is not None)
    findings = [Finding(*d.finding) for d in decisions if d.finding is not None]
    if not columns and not any(finding.severity == "blocker" for finding in findings):
        findings.append(_no_features(frames))
    uses = tuple(d.use for d in decisions)
    encoding = Columns(columns) if columns else None
    return CheckReport(tuple(_by_severity(findings)), uses, encoding, (), {})


def _by_severity(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def _value_findings(
    frames: Sequence[Frame], encoding: Columns, missing: dict[str, dict[str, float]]
) -> Iterator[Finding]:
    yield from missing_findings(missing, frames, encoding)
    yield from level_findings(frames, encoding)
    yield from unit_findings(frames, encoding)
    yield from duplicate_findings(frames, encoding)


def _check_dropped(request: Request, frames: Sequence[Frame]) -> None:
    known = {name for frame in frames for name in frame.table.columns}
    for name in request.drop:
        if name not in known:
            raise MixdaError(
                f"drop (--drop) names {name!r}, but no data file has such a column"
                f"{suggestion(name, known)}"
            )


def _no_features(frames: Sequence[Frame]) -> Finding:
    columns = ", ".join(repr(name) for name in frames[0].table.columns[:12])
    sentence = f"{frames[0].files[0]} has no column to use as a feature; its columns are {columns}"
    return Finding("blocker", "no-features", sentence, "name columns with --columns")
