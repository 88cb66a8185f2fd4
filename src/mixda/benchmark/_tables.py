"""Tables as Markdown, LaTeX or CSV: `table` of a run, `compare` with the published results."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_choice
from mixda.benchmark._cells import read_records
from mixda.benchmark._paper_tables import PAPER_TABLES, paper_accuracy
from mixda.benchmark._summary import (
    Ranking,
    ResultTable,
    Row,
    one_per_suite,
    rank_methods,
    summarize,
)

FORMATS = ("markdown", "latex", "csv")
BELOW = "▼"
_ORACLE = "(oracle) is trained on target labels: an upper bound, not ranked."

Lines = list[list[str]]


def table(folder: str | Path, format: str = "markdown", score: str = "both") -> str:
    """Return the tables of a run: accuracy in %, mean ± standard deviation over seeds.

    Best in bold and second underlined (upper bounds aside), methods below source-only marked with
    ▼, average ranks with the tests of Friedman and Nemenyi, and what is missing or failed. A
    method counts once in ranks and tests, see `summarize`.

    Parameters
    ----------
    folder : str or Path
        The ``out`` of `run`.
    format : {"markdown", "latex", "csv"}
    score : {"both", "map", "head"}
        Lines of the methods that have two decisions, see `summarize`.

    Examples
    --------
    >>> import tempfile
    >>> from mixda import benchmark
    >>> with tempfile.TemporaryDirectory() as out:
    ...     _ = benchmark.run("toy", ["SourceOnly"], seeds=2, out=out, rows=60)
    ...     print(benchmark.table(out).splitlines()[2])
    | method | target | average | rank | cpu s per fit |
    """
    check_choice(format, "format", FORMATS)
    tables = summarize(read_records(folder), score)
    if not tables:
        raise MixdaError(f"{folder} contains only ablations. Draw them with mixda bench figure.")
    if format == "csv":
        return _csv(_tidy(tables))
    style = _Style(format)
    parts = [_formatted(one, rank_methods([one]), style) for one in tables]
    chosen = one_per_suite(tables)
    if len(chosen) > 1:
        names = "; ".join(f"{one.suite}, {one.features}" for one in chosen)
        words = f"All targets together ({names}): {_tests(rank_methods(chosen))}"
        parts.append(style.text(words))
    return style.document(parts)


def compare(folder: str | Path, format: str = "markdown", score: str = "both") -> str:
    """Return ours / published (difference) per method and target, and gains over source-only.

    Parameters are those of `table`. A figure that was not published is a dash.
    """
    check_choice(format, "format", FORMATS)
    tables = [t for t in summarize(read_records(folder), score) if t.suite in PAPER_TABLES]
    if not tables:
        raise MixdaError(
            f"{folder} contains no suite with published results, which are "
            f"{', '.join(PAPER_TABLES)}."
        )
    if format == "csv":
        return _csv(_tidy_comparison(tables))
    style = _Style(format)
    return style.document([_comparison(one, style) for one in tables])


def _formatted(one: ResultTable, ranking: Ranking, style: _Style) -> str:
    """Return the title, the grid and the notes of a table."""
    means = np.array([[*row.means, row.average] for row in one.lines])
    contest = np.array([not row.oracle for row in one.lines])
    best = [_first_two(column, contest) for column in means.T]
    base = one.source_only
    baseline = None if base is None else np.array([*base.means, base.average])
    header = ["method", *one.targets, "average", "rank", "cpu s per fit"]
    ranks = dict(zip(ranking.names, ranking.ranks, strict=True))
    any_below, body = False, []
    for i, row in enumerate(one.lines):
        cells = [_entry(row, t, one.n_seeds, style) for t in range(len(one.targets))]
        cells.append(style.text(_number(row.average)))
        for j, text in enumerate(cells):
            if not np.isnan(means[i, j]):
                cells[j] = style.emphasize(text, np.round(means[i, j], 2), best[j], row.oracle)
                if baseline is not None and means[i, j] < baseline[j] - 1e-9:
                    cells[j] += style.below
                    any_below = True
        ends = [style.text(_number(x)) for x in (ranks.get(row.name, np.nan), row.seconds)]
        body.append([style.text(_shown(row)), *cells, *ends])
    return style.page(_title(one), header, body, _notes(one, ranking, any_below))


def _notes(one: ResultTable, ranking: Ranking, any_below: bool) -> list[str]:
    notes = []
    if any_below:
        notes.append(f"{BELOW} below source-only: adaptation hurt.")
    if any(row.oracle for row in one.lines):
        notes.append(_ORACLE)
    if any(not row.ranked for row in one.lines):
        notes.append(
            "Ranks and tests include each method once: mixture methods with the classifier trained "
            "on samples of the mixture. Their other rows have no rank."
        )
    incomplete = [row for row in one.lines if np.isnan(row.values).any()]
    if incomplete:
        notes.append(
            f"Some cells are missing: (n of {one.n_seeds}) is the number of seeds of a mean. Rows "
            "without a result on every target have no average and no rank."
        )
    errors = {r["cell"]["method"]: r["error"] for r in one.records if "error" in r}
    notes += [f"{method} failed: {reason}" for method, reason in errors.items()]
    if one.n_outdated:
        notes.append(f"Omitted: {one.n_outdated} cells with outdated defaults.")
    notes.append(_tests(ranking))
    notes.append(_origin(one))
    return notes


def _tests(ranking: Ranking) -> str:
    k, n = len(ranking.names), ranking.n_targets
    if np.isnan(ranking.critical_difference):
        return f"No test: three methods and two targets are required, got {k} and {n}."
    if np.isnan(ranking.statistic):
        return f"No test: all {k} methods are equal on each of the {n} targets."
    return (
        f"Friedman test of {k} methods on {n} targets: χ² = {ranking.statistic:.2f}, "
        f"p = {ranking.p_value:.2g}. Critical difference of average ranks (Nemenyi, 5 %): "
        f"{ranking.critical_difference:.2f}."
    )


def _origin(one: ResultTable) -> str:
    cores = ", ".join(sorted({str(record.get("cores")) for record in one.records}))
    dates = sorted(record["date"][:10] for record in one.records if "date" in record)
    dates = dates or ["at an unknown date"]  # failed cells of older runs are not dated
    span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    commits = {record.get("commit") for record in one.records}
    code = ", ".join(sorted(f"commit {c}" if c else "an installed mixda" for c in commits))
    return f"Computed {span} with {code} on {cores} cores, one thread per cell."


def _title(one: ResultTable) -> str:
    reduced = f", at most {one.rows} rows per domain" if one.rows else ""
    seeds = "one seed" if one.n_seeds == 1 else f"mean ± std over {one.n_seeds} seeds"
    return f"{one.suite}: accuracy in %, {seeds}, features {one.features}{reduced}"


def _shown(row: Row) -> str:
    """Return the name of a row; upper bounds are marked."""
    return f"{row.name} (oracle)" if row.oracle else row.name


def _entry(row: Row, t: int, n_seeds: int, style: _Style) -> str:
    n = int((~np.isnan(row.values[t])).sum())
    if n == 0:
        return "failed" if row.failed[t] else style.text("–")
    partial = "" if n == n_seeds else f" ({n} of {n_seeds})"
    spread = "" if n_seeds == 1 else f"{style.plus_minus}{row.stds[t]:.2f}"
    return f"{row.means[t]:.2f}{spread}{partial}"


def _first_two(column: Array, contest: Any) -> list[float]:
    """Return the highest and the second highest value, as printed."""
    shown = np.unique(np.round(column[contest & ~np.isnan(column)], 2))
    return list(shown[::-1][:2])


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


class _Style:
    """Notation of a format."""

    def __init__(self, format: str) -> None:
        self.latex = format == "latex"
        self.plus_minus = r" $\pm$ " if self.latex else " ± "
        self.below = r" $\blacktriangledown$" if self.latex else f" {BELOW}"
        self._bold = r"\textbf{%s}" if self.latex else "**%s**"
        self._underlined = r"\underline{%s}" if self.latex else "<u>%s</u>"

    def emphasize(self, text: str, value: float, best: list[float], oracle: bool) -> str:
        if oracle or value not in best:
            return text
        return (self._bold if value == best[0] else self._underlined) % text

    def text(self, text: str) -> str:
        """Escape text for a table."""
        text = " ".join(text.split())
        if not self.latex:
            return text.replace("|", r"\|")
        return _LATEX.sub(lambda match: _LATEX_WORDS[match.group()], text)

    def document(self, parts: list[str]) -> str:
        needs = [r"% in the preamble: \usepackage{booktabs,amssymb}"] if self.latex else []
        return "\n\n".join([*needs, *parts]) + "\n"

    def page(self, title: str, header: list[str], body: Lines, notes: list[str]) -> str:
        title, header = self.text(title), [self.text(name) for name in header]
        notes = [self.text(note) for note in notes]
        if not self.latex:
            grid = [header, ["---"] * len(header), *body]
            lines = [f"**{title}**", "", *("| " + " | ".join(row) + " |" for row in grid), ""]
            return "\n".join([*lines, *(f"{note}\n" for note in notes)]).rstrip("\n")
        rows = [" & ".join(row) + r" \\" for row in [header, *body]]
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{title}}}"]
        lines += [rf"\begin{{tabular}}{{l{'c' * (len(header) - 1)}}}", r"\toprule", rows[0]]
        lines += [r"\midrule", *rows[1:], r"\bottomrule", r"\end{tabular}"]
        lines += [rf"\par\footnotesize {note}" for note in notes]
        return "\n".join([*lines, r"\end{table}"])


_LATEX_WORDS = {sign: rf"\{sign}" for sign in "{}$#%&_"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "±": r"$\pm$",
    BELOW: r"$\blacktriangledown$",
    "χ²": r"$\chi^2$",
    "–": "--",
    "−": "$-$",
    "…": r"\dots{}",
}
_LATEX = re.compile("|".join(re.escape(sign) for sign in _LATEX_WORDS))


def _comparison(one: ResultTable, style: _Style) -> str:
    base = one.source_only
    body = []
    for row in one.lines:
        cells = [
            _beside(mean, paper_accuracy(one.suite, row.method, target))
            for mean, target in zip(row.means, one.targets, strict=True)
        ]
        figure = paper_accuracy(one.suite, row.method)
        gain = row.average - base.average if base is not None else np.nan
        plain = paper_accuracy(one.suite, "SourceOnly")
        published_gain = None if figure is None or plain is None else figure - plain
        cells += [_beside(row.average, figure), _beside(gain, published_gain)]
        body.append([style.text(text) for text in (_shown(row), *cells)])
    header = ["method", *one.targets, "average", "gain over source-only"]
    notes = ["Ours / published (difference), in points. Published: table 2 of the GMM-DaDiL paper."]
    notes.append(PAPER_TABLES[one.suite].note)
    if any(row.oracle for row in one.lines):
        notes.append(_ORACLE)
    notes.append("The published deep methods are end-to-end; ours work on frozen features.")
    notes.append(_origin(one))
    return style.page(_title(one), header, body, [note for note in notes if note])


def _beside(ours: float, published: float | None) -> str:
    if np.isnan(ours):
        return "–" if published is None else f"– / {published:.2f}"
    if published is None:
        return f"{ours:.2f} / –".replace("-", "−")
    return f"{ours:.2f} / {published:.2f} ({ours - published:+.2f})".replace("-", "−")


def _tidy(tables: Sequence[ResultTable]) -> list[dict[str, Any]]:
    """Return one row per suite, method and target, and one for the average."""
    lines = []
    for one in tables:
        ranking = rank_methods([one])
        ranks = dict(zip(ranking.names, ranking.ranks, strict=True))
        base = one.source_only
        for row in one.lines:
            shared = {"suite": one.suite, "features": one.features, "rows": one.rows or ""}
            shared["method"] = _shown(row)
            for t, target in enumerate([*one.targets, "average"]):
                last = t == len(one.targets)
                mean = row.average if last else row.means[t]
                plain = np.nan if base is None else base.average if last else base.means[t]
                lines.append(
                    {
                        **shared,
                        "target": target,
                        "mean": _plain(mean),
                        "std": "" if last else _plain(row.stds[t]),
                        "seeds": int((~np.isnan(row.values if last else row.values[t])).sum()),
                        "failed": int(row.failed.sum() if last else row.failed[t]),
                        "below_source_only": int(mean < plain - 1e-9),
                        "rank": _plain(ranks.get(row.name, np.nan)) if last else "",
                        "cpu_seconds_per_fit": _plain(row.seconds) if last else "",
                    }
                )
    return lines


def _tidy_comparison(tables: Sequence[ResultTable]) -> list[dict[str, Any]]:
    lines = []
    for one in tables:
        for row in one.lines:
            for t, target in enumerate([*one.targets, None]):
                ours = row.average if target is None else row.means[t]
                figure = paper_accuracy(one.suite, row.method, target)
                lines.append(
                    {
                        "suite": one.suite,
                        "method": _shown(row),
                        "target": target or "average",
                        "ours": _plain(ours),
                        "published": "" if figure is None else figure,
                        "difference": "" if figure is None else _plain(ours - figure),
                    }
                )
    return lines


def _plain(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"


def _csv(lines: list[dict[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()
