"""The command line: ``mixda fit``, ``adapt``, ``predict``, ``report``, ``info`` and others.

Commands parse, call `mixda.workflow` and print; they decide nothing. Here is the way in and out.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

BAD_INPUT = 2
BUG = 1
STOPPED = 130


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command: 0, or 2 and one sentence if the input is at fault, or 1 for a bug.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> from mixda.cli import run
    >>> run(["info", "no-such-file.gmm"])  # the sentence goes to standard error
    2
    """
    try:
        from mixda.cli._commands import command
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pyarrow"):
            raise
        return _fail(f"the command line needs {error.name}; pip install 'mixda[cli]'")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note  # type: ignore[assignment]
            code = command().main(arguments, prog_name="mixda", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except KeyboardInterrupt:
        return STOPPED
    except BrokenPipeError:  # as in ``mixda info m.mixda | head -1``
        return _leave_pipe()
    except Exception as error:
        return _explain(error)


def _leave_pipe() -> int:
    """Say nothing more, also not at the very end: the reader had enough, which is no mistake."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _explain(error: Exception) -> int:
    if type(error).__name__ == "Abort":
        return STOPPED
    if type(error).__name__ == "NoArgsIsHelpError":
        print(getattr(error, "message", ""))  # the help, unless it is printed already
        return BAD_INPUT
    if hasattr(error, "format_message"):  # of Typer's parser, wherever its class lives
        context = getattr(error, "ctx", None)
        path = "mixda" if context is None else context.command_path
        return _fail(f"{error.format_message().rstrip('.')}; see {path} --help")
    if isinstance(error, ValueError):
        return _fail(str(error))
    if isinstance(error, OSError) and error.strerror:
        return _fail(f"{error.filename}: {error.strerror}.")
    if isinstance(error, MemoryError):
        return _fail("there is not enough memory for this; give fewer rows or columns.")
    traceback.print_exception(error)
    print("mixda: this is a bug of mixda, please report the lines above.", file=sys.stderr)
    return BUG


def _fail(sentence: str) -> int:
    print(f"mixda: {' '.join(sentence.split())}", file=sys.stderr)
    return BAD_INPUT


def _note(message: Any, *_: Any) -> None:
    print(f"mixda: note: {' '.join(str(message).split())}", file=sys.stderr)
