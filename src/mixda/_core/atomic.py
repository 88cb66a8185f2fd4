"""Atomic writes: a reader sees the old file or the new one, never a part of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mixda._core.errors import MixdaError


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
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise MixdaError(f"{path} cannot be written: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, OSError):
            raise MixdaError(f"{path} cannot be written: {error.strerror}.") from None
        raise
