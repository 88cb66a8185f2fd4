"""A progress bar on terminals; elsewhere, as in a pipe or a log file, a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_SECONDS_BETWEEN_LINES = 15.0
_SECONDS_BETWEEN_STEPS = 2.0  # after which the next step is new work


class LineClock:
    """Prints a line now and then, where standard error is not a terminal.

    Short steps in sequence share the clock of the process. It starts again with new work.
    """

    _last = _seen = float("-inf")

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        if enabled:
            now = time.monotonic()
            if now - LineClock._seen > _SECONDS_BETWEEN_STEPS:
                LineClock._last = now
            LineClock._seen = now

    def write(self, line: str) -> None:
        """Print the line if the last one is old enough."""
        if not self._enabled:
            return
        LineClock._seen = now = time.monotonic()
        if now - LineClock._last > _SECONDS_BETWEEN_LINES:
            LineClock._last = now
            print(f"mixda: {line.rstrip()}", file=sys.stderr, flush=True)


class Progress:
    """One line that is rewritten at most ten times per second.

    Where standard error is not a terminal, a new line is printed every 15 seconds at most.

    Examples
    --------
    >>> from mixda._core.progress import Progress
    >>> with Progress(10, "working", verbose=False) as progress:
    ...     progress.update(3, "loss 0.3")
    """

    def __init__(self, total: int, what: str, verbose: bool) -> None:
        self._total, self._what = total, what
        self._shown = verbose and sys.stderr.isatty()
        self._lines = LineClock(verbose and not self._shown)
        self._last = 0.0

    def __enter__(self) -> Progress:
        return self

    def update(self, done: int, note: str = "") -> None:
        """Show that `done` units of the total are done."""
        now = time.monotonic()
        self._lines.write(f"{self._what} {done}/{self._total} {note}")
        if not self._shown or (now - self._last < 0.1 and done < self._total):
            return
        self._last = now
        filled = int(24 * done / self._total)
        bar = "█" * filled + "░" * (24 - filled)
        sys.stderr.write(f"\r{self._what} {bar} {done}/{self._total} {note}\x1b[K")
        sys.stderr.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            sys.stderr.write("\n")
