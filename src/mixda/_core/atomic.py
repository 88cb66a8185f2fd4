"""Atomic writes: a reader sees the old file or the new one, never a part of it."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mixda._core.errors import MixdaError

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".mixda-tmp"


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write `data` to a temporary file next to `path`, flush it to disk, and rename it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mixda._core.atomic import write_atomically
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "a.txt", b"whole")
    ...     (Path(folder) / "a.txt").read_bytes()
    b'whole'
    """
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` at the end of the block, unless it raises.

    A symbolic link is followed, and an existing file keeps its permissions. Temporary files that
    killed processes left behind for the same `path` are deleted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mixda._core.atomic import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as file:
    ...         _ = file.write(b"one, ")
    ...         _ = file.write(b"two")
    ...     (Path(folder) / "a.txt").read_bytes()
    b'one, two'
    """
    path = _output_file(path)
    handle, name = _locked_temporary(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.chmod(name, _file_mode(path))
            os.replace(name, path)
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(name)
        if isinstance(error, OSError):
            raise MixdaError(f"{path} cannot be written: {error.strerror}.") from None
        raise
    sweep_leftovers(path.parent, path.name)


def check_output(path: str | Path) -> None:
    """Check that a file can be written before the work is done that it will hold.

    Examples
    --------
    >>> from mixda._core.atomic import check_output
    >>> from mixda._core.errors import MixdaError
    >>> try:
    ...     check_output("no/such/folder/a.csv")
    ... except MixdaError as error:
    ...     print(error)
    no/such/folder/a.csv cannot be written: no/such/folder is not a folder.
    """
    resolved = _output_file(path)
    if not resolved.parent.is_dir():
        raise MixdaError(f"{path} cannot be written: {Path(path).parent} is not a folder.")
    handle, name = _locked_temporary(resolved)  # tells more than the permissions do
    os.close(handle)
    os.unlink(name)


def sweep_leftovers(folder: Path, name: str | None = None) -> None:
    """Delete temporary files, of the output `name` or of all, that no live process is writing.

    A writer holds a lock on its temporary file, which the system releases if it is killed.
    """
    if fcntl is None:
        return
    for path in folder.glob(f".*{_SUFFIX}"):
        output = path.name[1 : -len(_SUFFIX)].rpartition(".")[0]
        if name is not None and output != name:
            continue
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _output_file(path: str | Path) -> Path:
    """Return the file behind symbolic links; reject folders, pipes and devices."""
    resolved = Path(os.path.realpath(path))
    if resolved.exists() and not resolved.is_file():
        raise MixdaError(f"{path} cannot be written: it is not a regular file.")
    return resolved


def _file_mode(path: Path) -> int:
    """Return the permissions of the file that is replaced, or the usual ones of a new file."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask


def _locked_temporary(path: Path) -> tuple[int, str]:
    try:
        while True:
            handle, name = tempfile.mkstemp(_SUFFIX, f".{path.name}.", path.parent)
            if fcntl is not None:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_nlink or os.name == "nt":
                return handle, name
            os.close(handle)  # swept by another process before it was locked
    except OSError as error:
        raise MixdaError(f"{path} cannot be written: {error.strerror}.") from None
