"""Files from which an interrupted computation resumes: arrays in a .npz, never a pickle."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixda._core.archive import check_npz
from mixda._core.atomic import sweep_leftovers, write_atomically
from mixda._core.errors import MixdaError
from mixda._core.typing import PathArgument

T = TypeVar("T")
Folder = PathArgument

_CACHE_FILE = re.compile(r"[0-9a-f]{64}\.(gmm|em|dictionary|trial)")


def fingerprint(arrays: Iterable[Any], settings: Any) -> str:
    """Return 64 hexadecimal digits that identify a problem: its arrays and its settings.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda._core.resume import fingerprint
    >>> fingerprint([np.zeros((2, 3))], "fit") == fingerprint([np.zeros((3, 2))], "fit")
    False
    """
    digest = hashlib.sha256(repr(settings).encode())
    for given in arrays:
        array = np.asarray(given)
        array = array.astype(str) if array.dtype.hasobject else np.ascontiguousarray(array)
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


class ResumeFile:
    """Arrays of one problem under one path; a file of another problem raises an error."""

    def __init__(self, path: str | Path, arrays: Iterable[Any], settings: Any) -> None:
        self.path = Path(path)
        self.problem = fingerprint(arrays, settings)
        if not os.access(self.path.parent, os.W_OK):  # fail now, not after hours
            raise MixdaError(f"{self.path} cannot be written; choose a writable folder.")

    def load(self, unpack: Callable[[dict[str, NDArray[Any]]], T]) -> T | None:
        """Return the arrays saved last, unpacked, or None if there is no file."""
        if not self.path.exists():
            return None
        try:
            check_npz(self.path)
            with np.load(self.path, allow_pickle=False) as archive:
                saved = {name: archive[name] for name in archive.files}
            if str(saved.pop("problem")) == self.problem:
                return unpack(saved)
        except Exception:
            raise MixdaError(
                f"{self.path} is not a checkpoint of mixda; delete it or choose another path."
            ) from None
        raise MixdaError(
            f"{self.path} belongs to other data or settings; delete it or choose another path."
        )

    def save(self, arrays: Mapping[str, Any]) -> None:
        """Replace the file."""
        buffer = io.BytesIO()
        np.savez(buffer, problem=np.array(self.problem), **arrays)
        write_atomically(self.path, buffer.getvalue())

    def remove(self) -> None:
        """Delete the file because the computation has ended."""
        self.path.unlink(missing_ok=True)
        sweep_leftovers(self.path.parent, self.path.name)


def open_cache_folder(folder: PathArgument) -> Path:
    """Create the folder, and those above it, if they do not exist."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MixdaError(
            f"{folder} cannot be used as the checkpoint folder: {error.strerror}."
        ) from None
    return Path(folder)


@contextmanager
def cache_until_done(folder: PathArgument) -> Iterator[Path]:
    """Delete the cached files once the block ends; an interrupted block leaves them for the next.

    Other files are left alone, and so is a folder that contains any.
    """
    folder = Path(folder)
    done = False
    try:
        yield folder
        done = True
    finally:
        cached = [path for path in folder.glob("*") if _CACHE_FILE.fullmatch(path.name)]
        for path in cached if done else []:
            path.unlink()
        if done and folder.is_dir():
            sweep_leftovers(folder)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
