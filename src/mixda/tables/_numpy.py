"""Numpy files: an npz with X and optionally y, d and feature_names, or an npy with X alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.archive import check_npz
from mixda._core.errors import MixdaError
from mixda.tables._file import TableFile, check_column_names, pyarrow

NUMPY_SUFFIXES = (".npz", ".npy")


def open_numpy(path: Path) -> TableFile:
    """Read names and shapes of the arrays."""
    X, others = _checked_arrays(path)
    names = _feature_names(path, X, others)
    check_column_names(path, [*names, *(name for name in ("y", "d") if name in others)])
    kinds = dict.fromkeys(names, "bool" if X.dtype.kind == "b" else "number")
    kinds.update({name: kind for name, kind in (("y", "label"), ("d", "domain")) if name in others})
    return _NumpyFile(path, kinds, len(X))


@dataclass(frozen=True)
class _NumpyFile(TableFile):
    """The arrays of an npz file are loaded; that of an npy file is mapped into memory."""

    def _records(
        self, columns: Sequence[str], as_written: Collection[str], rows: int
    ) -> Iterator[Any]:
        pa = pyarrow()
        X, others = _checked_arrays(self.path)
        indices = {name: k for k, name in enumerate(_feature_names(self.path, X, others))}
        for start in range(0, len(X), rows):
            batch = slice(start, start + rows)
            arrays = [
                pa.array(np.asarray(X[batch, indices[name]], dtype=np.float64))
                if name in indices
                else pa.array(others[name][batch])
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, list(columns))


def _checked_arrays(path: Path) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Return X of shape (n, d), and those of y, d and feature_names that the file holds."""
    arrays = _load(path)
    if "X" not in arrays:
        raise MixdaError(
            f"{path} has no array X; save samples with numpy.savez(path, X=X, y=y), where X has "
            "shape (n, d)."
        )
    X = arrays.pop("X")
    if X.ndim != 2 or X.dtype.kind not in "fiub" or 0 in X.shape:
        raise MixdaError(
            f"{path}: X must be numbers of shape (n, d), got {X.dtype} of shape {X.shape}."
        )
    for name in ("y", "d"):
        if name in arrays and arrays[name].shape != (len(X),):
            raise MixdaError(
                f"{path}: {name} has shape {arrays[name].shape}, but X has {len(X)} rows."
            )
    return X, arrays


def _load(path: Path) -> dict[str, NDArray[Any]]:
    try:
        if path.suffix.lower() == ".npy":
            return {"X": np.load(path, mmap_mode="r", allow_pickle=False)}
        check_npz(path)
        with np.load(path, allow_pickle=False) as archive:
            names = [name for name in ("X", "y", "d", "feature_names") if name in archive]
            return {name: _load_array(path, archive, name) for name in names}
    except (OSError, MixdaError):
        raise
    except Exception as error:  # damaged files raise errors of zipfile, zlib, struct and tokenize
        raise ValueError(str(error)) from None


def _load_array(path: Path, archive: Any, name: str) -> NDArray[Any]:
    """Return one array. Python objects are pickled in the file, and pickles are never loaded."""
    try:
        return np.asarray(archive[name])
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        what, kind = ("numbers", "float") if name == "X" else ("strings", "str")
        raise MixdaError(
            f"{path}: {name} is an array of Python objects; save it as {what}: "
            f"{name}.astype({kind})."
        ) from None


def _feature_names(path: Path, X: NDArray[Any], others: dict[str, NDArray[Any]]) -> list[str]:
    if "feature_names" not in others:
        return [f"x{k}" for k in range(X.shape[1])]
    names = [str(name) for name in others["feature_names"].ravel()]
    if len(names) != X.shape[1]:
        raise MixdaError(f"{path} has {len(names)} feature_names for {X.shape[1]} columns of X.")
    return names
