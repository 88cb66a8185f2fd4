"""What commands print: tables for people, JSON for scripts, a bar while rows go by."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text


class Output:
    """Where results go: `quiet` prints nothing, `as_json` only the result as one JSON object."""

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.shown = not quiet and not as_json
        self._console = Console(highlight=False)

    def say(self, text: str | None) -> None:
        """Print a sentence, if there is one."""
        if self.shown and text is not None:
            self._console.print(Text(text), soft_wrap=True)

    def table(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], words: int = 1
    ) -> None:
        """Print a table; the first `words` columns are words, the others numbers."""
        if not self.shown:
            return
        self._console.print(Text(title, style="bold"), soft_wrap=True)
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for k, name in enumerate(columns):
            table.add_column(Text(name), justify="left" if k < words else "right")
        for row in rows:
            table.add_row(*(Text(_cell(value)) for value in row))
        self._console.print(table)

    def result(self, value: dict[str, Any]) -> None:
        """Print the result for a script, if one is asking."""
        if self.as_json and not self.quiet:
            print(json.dumps(value, default=str))

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


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
