"""Reading benchmark files: one npz with samples, class codes, domain codes and their names."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import check_choice
from mixda.datasets._dataset import DomainDataset

LAYOUT = ("X", "y", "d", "doms")


def read_domains(
    path: Path,
    description: str,
    class_names: Sequence[str] | None = None,
    *,
    features: Sequence[str] | None = None,
    drop: Collection[str] = (),
    missing: str = "error",
) -> DomainDataset:
    """Read a file of the layout ``X (n, …), y (n,), d (n,), doms (N,)`` and perhaps ``cls (nc,)``.

    ``y`` and ``d`` are codes, or names. Names of classes are the file's own ``cls``, else
    `class_names`, else what ``y`` holds. The columns of a flat ``X`` are called by the file's
    ``feature_names``, else x0, x1, …; `features`, `drop` and `missing` are those of a table.
    """
    check_choice(missing, "missing", ("error", "drop"))
    arrays = read_arrays(path, LAYOUT, optional=("cls", "feature_names"))
    X, y, d = arrays["X"], arrays["y"], arrays["d"]
    fits = X.ndim > 1 and y.shape == d.shape == (len(X),) and len(X)
    if not fits or X.dtype.kind not in "fiub" or {y.dtype.kind, d.dtype.kind} - set("iuU"):
        shown = ", ".join(f"{name} {arrays[name].dtype} {arrays[name].shape}" for name in "Xyd")
        raise MixdaError(
            f"{path} does not hold numbers X (n, …) with integer codes or names y (n,) and d (n,): "
            f"it holds {shown}; put the original file there."
        )
    names: tuple[str, ...] = ()
    if X.ndim == 2:
        names = tuple(str(n) for n in arrays.get("feature_names", _numbered(X)).ravel())
        X, names = _chosen(path, X, names, features, drop)
    elif features or drop:
        raise MixdaError(f"{path} holds samples of shape {X.shape[1:]}, which have no columns.")
    kept = np.isfinite(X).all(axis=tuple(range(1, X.ndim))) | (missing == "error")
    try:
        labels, known = _coded(y, arrays.get("cls", class_names))
        domain, domain_names = _coded(d, arrays["doms"].ravel())
        return DomainDataset(
            X=X[kept].reshape(int(kept.sum()), -1).astype(np.float64),
            y=labels[kept],
            domain=domain[kept],
            domain_names=domain_names,
            class_names=known,
            description=description,
            sample_shape=X.shape[1:],
            feature_names=names,
        )
    except ValueError as error:
        raise MixdaError(f"{path}: {error}") from None


def _numbered(X: NDArray[Any]) -> NDArray[Any]:
    return np.array([f"x{k}" for k in range(X.shape[1])])


def _chosen(
    path: Path,
    X: NDArray[Any],
    names: tuple[str, ...],
    features: Sequence[str] | None,
    drop: Collection[str],
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Keep the columns of `features`, else all, but not those of `drop`."""
    if len(names) != X.shape[1]:
        raise MixdaError(f"{path} has {len(names)} feature_names for {X.shape[1]} columns of X.")
    unknown = [name for name in (*(features or ()), *drop) if name not in names]
    wanted = tuple(name for name in (features or names) if name not in drop)
    if unknown or not wanted:
        what = f"no column {unknown[0]!r}" if unknown else "no column left to use as a feature"
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        raise MixdaError(f"{path} has {what}; its columns are {shown}.")
    return X[:, [names.index(name) for name in wanted]], wanted


def _coded(values: NDArray[Any], names: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Return codes and what they stand for; values that are no codes are names themselves."""
    if values.dtype.kind in "iu":
        n = int(values.max()) + 1
        return values, tuple(str(name) for name in (range(n) if names is None else names))
    found = tuple(str(name) for name in (np.unique(values) if names is None else names))
    place = {name: code for code, name in enumerate(found)}
    lost = sorted({str(value) for value in values} - set(found))
    if lost:
        raise MixdaError(f"{lost[0]!r} is not among the names {', '.join(found[:12])}.")
    return np.array([place[str(value)] for value in values], dtype=np.int64), found


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
        raise MixdaError(
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
        raise MixdaError(
            f"{path} is not a readable npz file of numbers and names ({error}); it is damaged or "
            "something else, put the original file there."
        ) from None
