"""Benchmark files: an npz with samples, class codes, domain codes and their names."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.archive import check_npz
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

    ``y`` and ``d`` are codes or names. The class names are ``cls``, else `class_names`, else the
    values of ``y``. The columns of a two-dimensional ``X`` are named by ``feature_names``, else x0,
    x1, …; `features`, `drop` and `missing` are those of a table.
    """
    check_choice(missing, "missing", ("error", "drop"))
    arrays = read_arrays(path, LAYOUT, optional=("cls", "feature_names"))
    X, y, d = arrays["X"], arrays["y"], arrays["d"]
    fits = X.ndim > 1 and y.shape == d.shape == (len(X),) and len(X)
    if not fits or X.dtype.kind not in "fiub" or {y.dtype.kind, d.dtype.kind} - set("iuU"):
        shown = ", ".join(f"{name} {arrays[name].dtype} {arrays[name].shape}" for name in "Xyd")
        raise MixdaError(
            f"{path} must contain numbers X (n, …) and integer codes or names y (n,) and d (n,), "
            f"but contains {shown}. Replace it with the original file."
        )
    names: tuple[str, ...] = ()
    if X.ndim == 2:
        names = tuple(str(n) for n in arrays.get("feature_names", _default_names(X)).ravel())
        X, names = _select_columns(path, X, names, features, drop)
    elif features or drop:
        raise MixdaError(
            f"{path} has samples of shape {X.shape[1:]}, so features and drop do not apply."
        )
    kept = np.isfinite(X).all(axis=tuple(range(1, X.ndim))) | (missing == "error")
    try:
        labels, known = _encode(y, arrays.get("cls", class_names))
        domain, domain_names = _encode(d, arrays["doms"].ravel())
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


def _default_names(X: NDArray[Any]) -> NDArray[Any]:
    return np.array([f"x{k}" for k in range(X.shape[1])])


def _select_columns(
    path: Path,
    X: NDArray[Any],
    names: tuple[str, ...],
    features: Sequence[str] | None,
    drop: Collection[str],
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Keep the columns in `features` (by default all) that are not in `drop`."""
    if len(names) != X.shape[1]:
        raise MixdaError(f"{path} has {len(names)} feature_names for {X.shape[1]} columns of X.")
    unknown = [name for name in (*(features or ()), *drop) if name not in names]
    wanted = tuple(name for name in (features or names) if name not in drop)
    if unknown or not wanted:
        problem = f"no column {unknown[0]!r}" if unknown else "no column left to use as a feature"
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        raise MixdaError(f"{path} has {problem}. Its columns are {shown}.")
    return X[:, [names.index(name) for name in wanted]], wanted


def _encode(values: NDArray[Any], names: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Return codes and their names; values that are not integers are names."""
    if values.dtype.kind in "iu":
        n = int(values.max()) + 1
        return values, tuple(str(name) for name in (range(n) if names is None else names))
    known = tuple(str(name) for name in (np.unique(values) if names is None else names))
    code = {name: k for k, name in enumerate(known)}
    unknown = sorted({str(value) for value in values} - set(known))
    if unknown:
        raise MixdaError(f"{unknown[0]!r} is not one of the names {', '.join(known[:12])}.")
    return np.array([code[str(value)] for value in values], dtype=np.int64), known


def read_arrays(
    path: Path, required: Iterable[str], optional: Iterable[str] = ()
) -> dict[str, NDArray[Any]]:
    """Read arrays of an npz file without unpickling; those in `optional` may be absent.

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
        present = ", ".join(read_all_arrays(path)) or "none"
        raise MixdaError(
            f"{path} lacks the array(s) {', '.join(missing)}; its arrays are {present}. Replace it "
            "with the original file."
        )
    return arrays


def read_all_arrays(path: Path, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read all arrays of an npz file, or those in `names` that are present."""
    try:
        check_npz(path)
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise zipfile.BadZipFile("a single array")
        with archive:
            wanted = archive.files if names is None else names
            return {name: archive[name] for name in wanted if name in archive.files}
    except MixdaError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError) as error:
        raise MixdaError(
            f"{path} is not a readable npz file of numbers and names ({error}). Replace it with "
            "the original file."
        ) from None
