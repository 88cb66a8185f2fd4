"""Reading benchmark files: one npz with samples, class codes, domain codes and their names."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda.datasets._base import DomainDataset

LAYOUT = ("X", "y", "d", "doms")


def read_domains(
    path: Path, description: str, class_names: Sequence[str] | None = None
) -> DomainDataset:
    """Read a file of the layout ``X (n, …), y (n,), d (n,), doms (N,)`` and perhaps ``cls (nc,)``.

    Names of classes are the file's own ``cls``, else `class_names`, else the codes as words.
    """
    arrays = read_arrays(path, LAYOUT, optional=("cls",))
    X, y = arrays["X"], arrays["y"]
    if X.ndim < 2 or y.shape != (len(X),) or y.dtype.kind not in "iu" or not len(X):
        raise ValueError(
            f"{path} does not hold samples X (n, …) with integer codes y (n,): X has shape "
            f"{X.shape}, y has shape {y.shape} and dtype {y.dtype}; put the original file there."
        )
    names = arrays.get("cls", class_names)
    if names is None:
        names = [str(code) for code in range(int(y.max()) + 1)]
    try:
        return DomainDataset(
            X=X.reshape(len(X), -1).astype(np.float64),
            y=y,
            domain=arrays["d"],
            domain_names=tuple(arrays["doms"].ravel()),
            class_names=tuple(names),
            description=description,
            sample_shape=X.shape[1:],
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_arrays(
    path: Path, required: Iterable[str], optional: Iterable[str] = ()
) -> dict[str, NDArray[Any]]:
    """Return named arrays of an npz file (never pickles); `optional` ones only if they are there.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from mixda.datasets._npz import read_arrays
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.npz"
    ...     np.savez(path, X=[1.0, 2.0], more=3)
    ...     read_arrays(path, ["X"], optional=["y"])
    {'X': array([1., 2.])}
    """
    arrays = read_all_arrays(path, [*required, *optional])
    missing = [name for name in required if name not in arrays]
    if missing:
        held = ", ".join(read_all_arrays(path)) or "nothing"
        raise ValueError(
            f"{path} lacks the array(s) {', '.join(missing)}; it holds {held}, so it is another "
            "file: put the original one there."
        )
    return arrays


def read_all_arrays(path: Path, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npz file, or those of `names` that it has."""
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise zipfile.BadZipFile("one bare array")
        with archive:
            wanted = archive.files if names is None else names
            return {name: archive[name] for name in wanted if name in archive.files}
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError) as error:
        raise ValueError(
            f"{path} is not a readable npz file of numbers and names ({error}); it is damaged or "
            "something else, put the original file there."
        ) from None
