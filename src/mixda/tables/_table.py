"""Users' tables: csv, parquet, npz and npy files, alone or many at once, read in batches.

Nothing here holds a whole file in memory but `Table.read`, which is asked to. Every mistake is one
sentence that names the file, the column, the row and what to do.
"""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.atomic import replacing
from mixda._core.errors import MixdaError
from mixda._core.text import listed
from mixda._core.validation import Array, check_choice, check_positive_int
from mixda.tables._cells import NO_NAME
from mixda.tables._files import SUFFIXES, TableFile, open_file, pyarrow
from mixda.tables._names import class_names as class_names
from mixda.tables._names import domain_names
from mixda.tables._text_columns import check_left_out

ROWS = 65_536

PathArgument = str | PathLike[str]


def open_table(paths: PathArgument | Sequence[PathArgument]) -> Table:
    r"""Open one table that lies in one or several files.

    Parameters
    ----------
    paths : path, pattern, folder, or a sequence of these
        Patterns such as ``"runs/*.csv"`` are expanded; a folder stands for all tables in it.
        Files read together need the same columns, in any order.

    Returns
    -------
    Table

    Examples
    --------
    >>> import os, tempfile
    >>> from mixda.tables import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("speed;load;state\n1,5;3;ok\n2,5;4;worn\n")
    ...     table = open_table(path)
    ...     samples = table.read(label="state")
    >>> table.kinds
    {'speed': 'number', 'load': 'number', 'state': 'text'}
    >>> samples.X
    array([[1.5, 3. ],
           [2.5, 4. ]])
    >>> samples.y
    array(['ok', 'worn'], dtype='<U4')
    """
    parts = tuple(open_file(path) for path in expand_paths(paths))
    first = parts[0]
    for part in parts[1:]:
        if set(part.kinds) != set(first.kinds):
            name = sorted(set(part.kinds) ^ set(first.kinds))[0]
            has, lacks = (part, first) if name in part.kinds else (first, part)
            raise MixdaError(
                f"{lacks.path} has no column {name!r}, which {has.path} has; files read together "
                "need the same columns."
            )
    return Table(parts)


def expand_paths(paths: PathArgument | Sequence[PathArgument]) -> list[Path]:
    """Return the files that paths, patterns and folders stand for, each once, in order.

    Examples
    --------
    >>> from mixda.tables import expand_paths
    >>> expand_paths("no/such/file.csv")
    Traceback (most recent call last):
    ValueError: no/such/file.csv does not exist.
    """
    given = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    found: dict[Path, None] = {}
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
                what = "matches no file" if is_pattern else "does not exist"
                raise MixdaError(f"{path} {what}.")
        found.update(dict.fromkeys(files))
    if not found:
        raise MixdaError("no file was given; give at least one csv, parquet, npz or npy file.")
    return list(found)


@dataclass(frozen=True)
class Samples:
    """Rows of a table as arrays.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,), or None
        Classes: integers if all are, else strings.
    domain : ndarray of shape (n,), or None
        Names of the domains, strings.
    feature_names : tuple of str
        Of the columns of `X`.
    rows : ndarray of int of shape (n,)
        Where the rows of `X` stand in the table, from 1; several files are counted through.
    dropped : dict of str to int
        How many rows of which file were left out because a value was missing.
    """

    X: Array
    y: NDArray[Any] | None
    domain: NDArray[Any] | None
    feature_names: tuple[str, ...]
    rows: NDArray[np.intp]
    dropped: dict[str, int]


@dataclass(frozen=True)
class Batch:
    """Some rows of one file; `first_row` counts from 0, `record` is what pyarrow read."""

    file: Path
    first_row: int
    record: Any

    def __len__(self) -> int:
        return int(self.record.num_rows)

    def values(self, name: str) -> NDArray[Any]:
        """One column: float64 with NaN for missing numbers, or objects with None for the rest."""
        column = self.record.column(name)
        pa = pyarrow()
        if pa.types.is_floating(column.type):
            return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
        if pa.types.is_integer(column.type) and column.null_count == 0:
            return np.asarray(column.to_numpy(zero_copy_only=False))
        values = np.empty(len(column), dtype=object)
        values[:] = [None if value in NO_NAME else value for value in column.to_pylist()]
        return values

    def matrix(self, names: Sequence[str]) -> Array:
        """Columns of numbers side by side, shape (n, d), NaN where a value is missing."""
        pa = pyarrow()
        X = np.empty((len(self), len(names)))
        for k, name in enumerate(names):
            column = self.record.column(name)
            if pa.types.is_boolean(column.type):
                column = column.cast(pa.int8())
            if not pa.types.is_floating(column.type):
                column = column.cast(pa.float64(), safe=False)
            X[:, k] = column.to_numpy(zero_copy_only=False)
        return X


@dataclass(frozen=True)
class Table:
    """Files with the same columns, not read yet. Made by `open_table`."""

    parts: tuple[TableFile, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files, in the order in which they are read."""
        return tuple(part.path for part in self.parts)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in the order of the first file."""
        return tuple(self.parts[0].kinds)

    @property
    def kinds(self) -> dict[str, str]:
        """What each column holds: "number", "bool", "text", "other" (a date, …) or "empty".

        `y` and `d` of an npz are "label" and "domain".
        """
        return dict(self.parts[0].kinds)

    @property
    def n_rows(self) -> int | None:
        """Number of rows, or None if only reading would tell."""
        counts = [part.n_rows for part in self.parts]
        return None if None in counts else sum(n for n in counts if n is not None)

    def features(
        self,
        chosen: Sequence[str] | None = None,
        without: Collection[str | None] = (),
    ) -> tuple[str, ...]:
        """Return the columns of numbers to use: those chosen, else all but those in `without`."""
        for name in (*(chosen or ()), *(name for name in without if name is not None)):
            self._check_column(name)
        names = [name for name in (chosen or self.columns) if name not in without]
        if chosen is None:
            check_left_out(self.parts, [name for name in names if not self.is_numeric(name)])
            names = [name for name in names if self.is_numeric(name)]
        for name in names:
            self._check_number(name)
        if not names:
            raise MixdaError(
                f"{self.files[0]} has no column of numbers to use as a feature; its columns are "
                f"{listed([repr(name) for name in self.columns])}."
            )
        return tuple(names)

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers or truth values, in one of the files at least."""
        return any(part.kinds.get(name) in ("number", "bool") for part in self.parts)

    def batches(
        self, columns: Sequence[str], rows: int = ROWS, *, as_written: Collection[str] = ()
    ) -> Iterator[Batch]:
        """Stream the rows of some columns, at most `rows` at a time.

        Columns of numbers come as float64, the others as text; columns of `as_written` come as
        the file has them, for labels and for columns that are only copied.
        """
        rows = check_positive_int(rows, "rows")
        for name in columns:
            self._check_column(name)
        for part in self.parts:
            first = 0
            for record in part.record_batches(list(columns), as_written, rows):
                yield Batch(part.path, first, record)
                first += record.num_rows

    def read(
        self,
        features: Sequence[str] | None = None,
        label: str | None = None,
        domain: str | None = None,
        drop: Collection[str] = (),
        missing: str = "error",
        domains: Collection[str] | None = None,
        rows: int = ROWS,
    ) -> Samples:
        """Read all rows into arrays.

        Parameters
        ----------
        features : sequence of str, optional
            Columns of `X`, in this order. Default: all numbers and truth values but the columns
            of the next three parameters.
        label, domain : str, optional
            Columns of the classes and of the names of the domains.
        drop : collection of str
            Columns that are no features.
        missing : "error" or "drop"
            What to do with rows where a feature, the label or the domain is missing or infinite.
        domains : collection of str, optional
            Rows of other domains than these are passed over, whatever they hold.
        rows : int
            Rows read at a time.

        Returns
        -------
        Samples
        """
        check_choice(missing, "missing", ("error", "drop"))
        check_different(label, domain)
        names = self.features(features, (label, domain, *drop))
        extra = [name for name in (label, domain) if name is not None]
        blocks: list[Array] = []
        columns: dict[str, list[NDArray[Any]]] = {name: [] for name in extra}
        places: list[NDArray[np.intp]] = []
        seen, dropped = 0, dict.fromkeys(map(str, self.files), 0)
        for batch in self.batches(list(dict.fromkeys([*names, *extra])), rows, as_written=extra):
            X, values = batch.matrix(names), {name: batch.values(name) for name in extra}
            wanted = np.ones(len(X), dtype=bool)
            if domain is not None and domains is not None:
                wanted = np.isin(domain_names(values[domain]), list(domains))
            bad = wanted & ~np.isfinite(X).all(axis=1)
            for name in extra:
                bad |= wanted & _is_missing(values[name])
            if bad.any() and missing == "error":
                _refuse(batch, int(bad.argmax()), names, X, values)
            dropped[str(batch.file)] += int(bad.sum())
            kept = wanted & ~bad
            places.append(seen + 1 + np.flatnonzero(kept))
            seen += len(X)
            blocks.append(X if kept.all() else X[kept])
            for name in extra:
                columns[name].append(values[name][kept])
        if not sum(len(X) for X in blocks):
            raise MixdaError(
                f"{self.files[0]}: no row has all the values that are asked for; fill them in, or "
                "leave out the columns that are mostly empty."
            )
        y = None if label is None else class_names(np.concatenate(columns[label]))
        of = None if domain is None else domain_names(np.concatenate(columns[domain]))
        left_out = {file: n for file, n in dropped.items() if n}
        return Samples(np.concatenate(blocks), y, of, names, np.concatenate(places), left_out)

    def distinct(self, column: str) -> list[str]:
        """Return the different values of a column as names, sorted; missing ones not counted."""
        pa = pyarrow()
        found: set[str] = set()
        for batch in self.batches([column], as_written=[column]):
            once = batch.record.column(column).unique()
            record = pa.RecordBatch.from_arrays([once], [column])
            values = Batch(batch.file, 0, record).values(column)
            found.update(domain_names(values[~_is_missing(values)]).tolist())
        return sorted(found)

    def _check_column(self, name: str) -> None:
        if name not in self.parts[0].kinds:
            raise MixdaError(
                f"{self.files[0]} has no column {name!r}; its columns are "
                f"{listed([repr(column) for column in self.columns])}."
            )

    def _check_number(self, name: str) -> None:
        for part in self.parts:
            if part.kinds[name] not in ("number", "bool", "empty", "label", "domain"):
                raise MixdaError(
                    f"{part.path}: column {name!r} is not made of numbers{part.proof(name)}; "
                    "correct it, encode it as numbers, or leave it out."
                )


def check_different(label: str | None, domain: str | None) -> None:
    """Refuse one column for two purposes."""
    if label is not None and label == domain:
        raise MixdaError(
            f"column {label!r} is given for the classes and for the domains; name two different "
            "columns."
        )


def write_table(path: PathArgument, batches: Iterable[Any]) -> int:
    r"""Write a csv or parquet file (by suffix) from batches, atomically; return the rows written.

    Parameters
    ----------
    path : path
        Ends in ``.csv`` or ``.parquet``. Whatever goes wrong, an older file stays as it was.
    batches : iterable of dict of arrays, or of pyarrow record batches
        All with the same columns. At least one.

    Returns
    -------
    int

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mixda.tables import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "out.csv")
    ...     n = write_table(path, [{"label": ["ok"], "p": [0.5]}, {"label": ["no"], "p": [0.25]}])
    ...     path.read_text(), n
    ('"label","p"\n"ok",0.5\n"no",0.25\n', 2)
    """
    pa = pyarrow()
    path = Path(path)
    check_writable(path)
    n_rows, writer, schema = 0, None, None
    with replacing(path) as file:
        try:
            for batch in batches:  # what goes wrong here is not the writer's fault
                try:
                    record = _record(batch)
                    if writer is None:
                        schema = record.schema
                        writer = _writer(path, file, schema)
                    writer.write_batch(record if record.schema == schema else record.cast(schema))
                except pa.ArrowException as error:
                    raise MixdaError(f"{path} cannot be written: {error}") from None
                n_rows += record.num_rows
            if writer is None:
                raise MixdaError(f"there is nothing to write to {path}.")
        finally:
            if writer is not None:
                writer.close()
    return n_rows


def check_writable(path: Path) -> None:
    """Refuse an output whose suffix or folder will not do, before any work is done."""
    if path.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise MixdaError(f"{path} must end in .csv or .parquet, so that its kind is known.")
    if not path.parent.is_dir():
        raise MixdaError(f"{path} cannot be written: the folder {path.parent} does not exist.")


def _is_table(file: Path, folder: Path) -> bool:
    hidden = any(part[0] in "._" for part in file.relative_to(folder).parts)
    return file.is_file() and not hidden and file.name.lower().endswith(SUFFIXES)


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.asarray(~np.isfinite(values))
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    return np.array([v is None or v != v for v in values.tolist()], dtype=bool)


def _refuse(
    batch: Batch, row: int, names: Sequence[str], X: Array, values: Mapping[str, NDArray[Any]]
) -> None:
    wrong = [name for name, column in values.items() if _is_missing(column)[row]]
    if wrong:
        written = batch.record.column(wrong[0])[row].as_py()
        mark = isinstance(written, str) and written != ""
        what = f"{written!r}, which means no value," if mark else "no value"
    else:
        place = int((~np.isfinite(X[row])).argmax())
        wrong, what = [names[place]], "no value" if np.isnan(X[row, place]) else "an infinite value"
    raise MixdaError(
        f"{batch.file}: column {wrong[0]!r} has {what} in row {batch.first_row + row + 1}; correct "
        "it, leave the column out, or skip such rows (missing='drop' in Python, --missing drop on "
        "the command line)."
    )


def _record(batch: Any) -> Any:
    pa = pyarrow()
    if isinstance(batch, Mapping):
        return pa.RecordBatch.from_pydict({name: pa.array(v) for name, v in batch.items()})
    return batch


def _writer(path: Path, file: Any, schema: Any) -> Any:
    pa = pyarrow()
    if path.suffix.lower() == ".csv":
        return pa.csv.CSVWriter(file, schema)
    return pa.parquet.ParquetWriter(file, schema)
