"""The entry point: run a command and turn what happens into an exit code."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from mixda._core.errors import MixdaError
from mixda._core.text import printable
from mixda._version import __version__

BUG = 1
BAD_INPUT = 2
INTERRUPTED = 130

_EXTRAS = ("typer", "rich", "pyarrow")  # what ``pip install 'mixda[cli]'`` adds


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    The code is 0 on success, 2 after a mistake of the user, explained in one sentence on standard
    error, and 1 after a bug of mixda, with a traceback.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int

    Examples
    --------
    >>> from mixda.cli import run
    >>> run(["info", "no-such-file.gmm"])  # the sentence goes to standard error
    2
    """
    try:
        from mixda.cli._app import run_command
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        return _fail(f"the command line needs {error.name}; pip install 'mixda[cli]'")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note  # type: ignore[assignment]
            code = run_command(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # as in ``mixda info m.mixda | head -1``
        return _close_pipe()
    except Exception as error:
        return _explain(error)


def _close_pipe() -> int:
    """Discard the rest of the output: the reader has what it wanted, which is not an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _explain(error: Exception) -> int:
    """Print one sentence about a mistake of the user, or the traceback of a bug."""
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    if type(error).__name__ == "NoArgsIsHelpError":
        print(getattr(error, "message", ""))  # the help, unless it was printed already
        return BAD_INPUT
    if hasattr(error, "format_message"):  # raised by the parser; its class depends on the version
        context = getattr(error, "ctx", None)
        path = "mixda" if context is None else context.command_path
        return _fail(f"{error.format_message().rstrip('.')}; see {path} --help")
    if isinstance(error, MixdaError):
        return _fail(str(error))
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return _fail(f"{error.filename}: {error.strerror}.")
    if isinstance(error, MemoryError):
        return _fail("not enough memory; give fewer rows or columns.")
    print(printable("".join(traceback.format_exception(error)), keep="\n\t"), file=sys.stderr)
    print(
        f"mixda: this is a bug in mixda {__version__}. Please open an issue in its issue tracker "
        "with the command and the traceback above.",
        file=sys.stderr,
    )
    return BUG


def _fail(sentence: str) -> int:
    print(f"mixda: {printable(' '.join(sentence.split()))}", file=sys.stderr)
    return BAD_INPUT


def _note(message: Any, *_: Any) -> None:
    print(f"mixda: note: {printable(' '.join(str(message).split()))}", file=sys.stderr)
