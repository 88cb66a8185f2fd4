"""What commands print: tables for people, JSON for scripts, a progress bar."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from mixda._core.progress import LineClock
from mixda._core.text import listed, plural, printable

if TYPE_CHECKING:
    from mixda.checks import CheckReport
    from mixda.mixture import Mixture
    from mixda.model import AdaptedModel


class Output:
    """Prints results: nothing if `quiet`, only the result as one JSON object if `as_json`.

    Warnings are printed to standard error as notes and added to the JSON object.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.shown = not quiet and not as_json
        self.notes: list[str] = []
        self._console = _Console(highlight=False)
        warnings.showwarning = self._note  # type: ignore[assignment]  # `run` puts it back

    def say(self, text: str | None) -> None:
        """Print a sentence, unless it is None."""
        if self.shown and text is not None:
            self._console.print(Text(printable(text, keep="\n")), soft_wrap=True)

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        words: int = 1,
        below: str | None = None,
    ) -> None:
        """Print a table whose first `words` columns are text; the others are right-aligned.

        `below` is a line under the title.
        """
        if not self.shown:
            return
        self._console.print(Text(printable(title), style="bold"), soft_wrap=True)
        self.say(below)
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for k, name in enumerate(columns):
            table.add_column(Text(printable(name)), justify="left" if k < words else "right")
        for row in rows:
            table.add_row(*(Text(_cell(value)) for value in row))
        self._console.print(table)

    def result(self, value: dict[str, Any]) -> None:
        """Print the result as JSON, if asked for."""
        if self.as_json and not self.quiet:
            notes = {"notes": self.notes} if self.notes else {}
            self._console.out(json.dumps({**value, **notes}, default=str), highlight=False)

    def _note(self, message: Any, *_: Any) -> None:
        self.notes.append(" ".join(str(message).split()))
        if not self.quiet:
            print(f"mixda: note: {printable(self.notes[-1])}", file=sys.stderr)

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int | None], None]]:
        """Show rows done and rows per second after two seconds; not on a terminal, now and then."""
        console = Console(stderr=True)
        bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not (self.shown and console.is_terminal),
        )
        start = time.monotonic()
        lines = LineClock(self.shown and not console.is_terminal)
        task = bar.add_task(what, total=None, speed="")

        def update(done: int, total: int | None) -> None:
            seconds = time.monotonic() - start
            if seconds > 2.0 and not bar.live.is_started:
                bar.start()
            speed = f"{done:,} rows, {done / max(seconds, 1e-9):,.0f} rows/s"
            bar.update(task, completed=done, total=total, speed=speed)
            of_total = "" if total is None else f" of {total:,}"
            lines.write(f"{what}: {done:,}{of_total} rows, {done / max(seconds, 1e-9):,.0f} rows/s")

        try:
            yield update
        finally:
            bar.stop()


def show_report(out: Output, report: CheckReport) -> None:
    """Print a `mixda.checks.CheckReport` as tables."""
    domains = [(d["domain"], d["role"], _counts(d["classes"]), d["rows"]) for d in report.domains]
    out.table("domains", ["domain", "role", "classes", "rows"], domains, words=3)
    uses = [(u.name, u.kind, "yes" if u.used else "no", u.reason) for u in report.columns]
    out.table("columns", ["column", "kind", "used", "reason"], uses, words=4)
    if report.missing:
        names = [d["domain"] for d in report.domains]
        shares = [
            (column, *(f"{by_domain.get(name, 0.0):.0%}" for name in names))
            for column, by_domain in report.missing.items()
        ]
        out.table("missing values", ["column", *names], shares)
    if report.distances:
        rows = [(a, *row.values()) for a, row in report.distances.items()]
        out.table("distances between domains (MW2)", ["", *report.distances], rows)
    if not report.findings:
        out.say("nothing was found that could do harm.")
    for finding in report.findings:
        out.say(f"{finding.severity}: {finding}.")


def show_mixtures(out: Output, mixtures: Mapping[str, Mixture], paths: Sequence[Path]) -> None:
    """Print what the files of the mixtures of domains hold."""
    rows = [
        {
            "file": str(path),
            "domain": name,
            "rows": mixture.info["n_samples"],
            "features": mixture.n_features,
            "classes": 0 if mixture.classes is None else len(mixture.classes),
            "components": mixture.n_components,
        }
        for (name, mixture), path in zip(mixtures.items(), paths, strict=True)
    ]
    names = list(next(iter(mixtures.values())).feature_names or ())
    cells = [list(row.values()) for row in rows]
    out.table("written", list(rows[0]), cells, words=2, below=f"features: {listed(names)}")
    out.result({"written": rows, "features": names})


def show_model(out: Output, model: AdaptedModel, summary: dict[str, Any]) -> None:
    """Print the domains, the features and the space of a model; see `describe_model`."""
    domains = summary["domains"]
    features = plural(len(summary["features"]), "feature")
    title = f"{model.method}: {len(model.classes)} classes, {features}"
    cells = [list(domain.values()) for domain in domains]
    below = f"features: {listed(model.feature_names)}"
    left_out = summary["left out"]
    if left_out:
        below += f"\nleft out: {listed([f'{n} ({why})' for n, why in left_out.items()])}"
    if summary["space"]:
        below += f"\nadapted in: {summary['space']}"
    out.table(title, list(domains[0]), cells, words=2, below=below)


def _counts(classes: dict[str, int] | None) -> str:
    if classes is None:
        return ""
    shown = [f"{name} {n:,}" for name, n in list(classes.items())[:6]]
    return ", ".join(shown) + (", …" if len(classes) > 6 else "")


class _Console(Console):  # type: ignore[misc]
    def on_broken_pipe(self) -> None:
        """Leave it to `mixda.cli.run`; Rich and Typer would exit with code 1."""
        raise BrokenPipeError


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))
