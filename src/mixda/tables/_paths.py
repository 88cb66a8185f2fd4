"""Which files a path, pattern or folder stands for, and the reader of each."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from mixda._core.errors import MixdaError
from mixda.tables._csv import CSV_SUFFIXES, open_csv
from mixda.tables._file import TableFile, errors_naming
from mixda.tables._numpy import NUMPY_SUFFIXES, open_numpy
from mixda.tables._parquet import PARQUET_SUFFIXES, open_parquet

PathArgument = str | PathLike[str]

SUFFIXES = (*CSV_SUFFIXES, *PARQUET_SUFFIXES, *NUMPY_SUFFIXES)


def expand_paths(paths: PathArgument | Sequence[PathArgument]) -> list[Path]:
    """Expand patterns and folders into a list of distinct files, in order.

    Examples
    --------
    >>> from mixda.tables import expand_paths
    >>> expand_paths("no/such/file.csv")
    Traceback (most recent call last):
    mixda.MixdaError: no/such/file.csv does not exist.
    """
    given = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    expanded: dict[Path, None] = {}
    for path in (Path(p) for p in given):
        if path.is_dir():
            files = [file for file in sorted(path.rglob("*")) if _is_table(file, path)]
            if not files:
                raise MixdaError(f"{path} is a folder without csv, parquet, npz or npy files.")
        elif path.exists():
            files = [path]
        else:
            files = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
            if not files:
                is_pattern = glob.has_magic(str(path))
                problem = "matches no file" if is_pattern else "does not exist"
                raise MixdaError(f"{path} {problem}.")
        expanded.update(dict.fromkeys(files))
    if not expanded:
        raise MixdaError("paths is empty; give at least one csv, parquet, npz or npy file.")
    return list(expanded)


def open_file(path: Path) -> TableFile:
    """Open a file with the reader of its suffix."""
    name = path.name.lower()
    with errors_naming(path):
        if name.endswith(PARQUET_SUFFIXES):
            return open_parquet(path)
        if name.endswith(NUMPY_SUFFIXES):
            return open_numpy(path)
        if name.endswith(CSV_SUFFIXES):
            return open_csv(path)
    raise MixdaError(
        f"{path} is of an unknown kind; tables are read from csv, parquet, npz and npy files "
        "(save spreadsheets as csv)."
    )


def _is_table(file: Path, folder: Path) -> bool:
    hidden = any(part[0] in "._" for part in file.relative_to(folder).parts)
    return file.is_file() and not hidden and file.name.lower().endswith(SUFFIXES)
