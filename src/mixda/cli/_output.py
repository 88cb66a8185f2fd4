"""What commands print: tables for people, JSON for scripts, a bar while rows go by."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from mixda._core.text import printable


class Output:
    """Where results go: `quiet` prints nothing, `as_json` only the result as one JSON object.

    Warnings are notes: on standard error, and in the JSON object.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.shown = not quiet and not as_json
        self.notes: list[str] = []
        self._console = _Console(highlight=False)
        warnings.showwarning = self._note  # type: ignore[assignment]  # `run` puts it back

    def say(self, text: str | None) -> None:
        """Print a sentence, if there is one."""
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
        """Print a table; the first `words` columns are words, the others numbers.

        A line `below` stands under the title.
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
        """Print the result for a script, if one is asking."""
        if self.as_json and not self.quiet:
            notes = {"notes": self.notes} if self.notes else {}
            self._console.out(json.dumps({**value, **notes}, default=str), highlight=False)

    def _note(self, message: Any, *_: Any) -> None:
        self.notes.append(" ".join(str(message).split()))
        if not self.quiet:
            print(f"mixda: note: {printable(self.notes[-1])}", file=sys.stderr)

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int | None], None]]:
        """Show rows done and rows per second on a terminal, after two seconds of work."""
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
        task = bar.add_task(what, total=None, speed="")

        def update(done: int, total: int | None) -> None:
            seconds = time.monotonic() - start
            if seconds > 2.0 and not bar.live.is_started:
                bar.start()
            speed = f"{done:,} rows, {done / max(seconds, 1e-9):,.0f} rows/s"
            bar.update(task, completed=done, total=total, speed=speed)

        try:
            yield update
        finally:
            bar.stop()


class _Console(Console):  # type: ignore[misc]
    def on_broken_pipe(self) -> None:
        """Leave it to `mixda.cli.run`: Rich would exit with 1, and so would Typer for an EPIPE."""
        raise BrokenPipeError


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))
