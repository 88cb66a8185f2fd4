"""A progress bar on terminals; elsewhere, as in a pipe or a log file, a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_SECONDS_BETWEEN_LINES = 15.0

_last_line = [time.monotonic()]  # of this process: short steps in sequence share the clock


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
        self._lines = verbose and not self._shown
        self._last = 0.0

    def __enter__(self) -> Progress:
        return self

    def update(self, done: int, note: str = "") -> None:
        """Show that `done` units of the total are done."""
        now = time.monotonic()
        if self._lines and now - _last_line[0] > _SECONDS_BETWEEN_LINES:
            _last_line[0] = now
            note = f" {note}" if note else ""
            sys.stderr.write(f"mixda: {self._what} {done}/{self._total}{note}\n")
            sys.stderr.flush()
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
