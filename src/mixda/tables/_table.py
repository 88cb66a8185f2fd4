"""Tables in one or several csv, parquet, npz and npy files, read in batches.

Only `Table.read` loads all rows. Errors name the file, the column, the row and the remedy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.text import did_you_mean, listed
from mixda._core.typing import Array
from mixda._core.validation import check_choice, check_positive_int
from mixda.tables._cells import MISSING_NAMES
from mixda.tables._columns import Columns
from mixda.tables._file import TableFile, pyarrow
from mixda.tables._names import class_names, domain_names
from mixda.tables._paths import PathArgument, expand_paths, open_file
from mixda.tables._text_columns import check_text_columns

_ROWS_PER_BATCH = 65_536


def open_table(paths: PathArgument | Sequence[PathArgument]) -> Table:
    r"""Open a table stored in one or several files.

    Parameters
    ----------
    paths : path, pattern, folder, or a sequence of these
        Patterns such as ``"runs/*.csv"`` are expanded. A folder stands for all tables in it.
        All files must have the same columns, in any order.

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
    table_files = tuple(open_file(path) for path in expand_paths(paths))
    first = table_files[0]
    for other in table_files[1:]:
        if set(other.kinds) != set(first.kinds):
            name = sorted(set(other.kinds) ^ set(first.kinds))[0]
            with_it, without = (other, first) if name in other.kinds else (first, other)
            raise MixdaError(
                f"{without.path} has no column {name!r}, which {with_it.path} has; files of one "
                "table must have the same columns."
            )
    return Table(table_files)


@dataclass(frozen=True)
class Samples:
    """Rows of a table as arrays.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,), or None
        Classes: integers if all classes are integers, else strings.
    domain : ndarray of shape (n,), or None
        Names of the domains, strings.
    feature_names : tuple of str
        Names of the columns of `X`.
    rows : ndarray of int of shape (n,)
        Row numbers in the table, from 1. They continue from file to file.
    dropped : dict of str to int
        Number of rows, per file, that were left out because a value is missing.
    n_usable : int or None
        Number of usable rows, if only every k-th of them was kept; else None.
    """

    X: Array
    y: NDArray[Any] | None
    domain: NDArray[Any] | None
    feature_names: tuple[str, ...]
    rows: NDArray[np.intp]
    dropped: dict[str, int]
    n_usable: int | None = None


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of one file.

    `first_row` is the number of its first row, from 0; `record` is a pyarrow record batch.
    """

    file: Path
    first_row: int
    record: Any

    def __len__(self) -> int:
        return int(self.record.num_rows)

    def values(self, name: str) -> NDArray[Any]:
        """Return one column: float64 with NaN for missing numbers, or objects with None."""
        column = self.record.column(name)
        pa = pyarrow()
        if pa.types.is_floating(column.type):
            return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
        if pa.types.is_integer(column.type) and column.null_count == 0:
            return np.asarray(column.to_numpy(zero_copy_only=False))
        values = np.empty(len(column), dtype=object)
        values[:] = [None if value in MISSING_NAMES else value for value in column.to_pylist()]
        return values

    def matrix(self, names: Sequence[str]) -> Array:
        """Return numeric columns as an array of shape (n, d), with NaN for missing values."""
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

    def encoded(self, encoding: Columns) -> Array:
        """Return the features of an encoding, shape (n, d), with NaN for missing values."""
        if encoding.numeric:
            return self.matrix(encoding.names)
        text = encoding.text_names
        return encoding.encode(
            lambda name: self.values(name) if name in text else self.matrix([name])[:, 0]
        )


@dataclass(frozen=True)
class Table:
    """Files with the same columns, whose rows are not read yet. Made by `open_table`."""

    table_files: tuple[TableFile, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of the files, in the order in which they are read."""
        return tuple(file.path for file in self.table_files)

    @property
    def parts(self) -> tuple[TableFile, ...]:
        """Previous name of `table_files`."""
        return self.table_files

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in the order of the first file."""
        return tuple(self.table_files[0].kinds)

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each column: "number", "bool", "text", "other" (such as a date) or "empty".

        The arrays `y` and `d` of an npz file are "label" and "domain".
        """
        return dict(self.table_files[0].kinds)

    @property
    def n_rows(self) -> int | None:
        """Number of rows, or None if the files must be read to know."""
        counts = [file.n_rows for file in self.table_files]
        return None if None in counts else sum(n for n in counts if n is not None)

    def partitions(self) -> list[Table]:
        """Return the row groups of parquet files and other files as tables of their own.

        Small neighboring row groups are combined.
        """
        return [Table((part,)) for file in self.table_files for part in file.partitions()]

    def features(
        self,
        chosen: Sequence[str] | None = None,
        without: Collection[str | None] = (),
    ) -> tuple[str, ...]:
        """Return the names of the features: `chosen`, or all numeric columns not in `without`."""
        for name in (*(chosen or ()), *(name for name in without if name is not None)):
            self._check_column(name)
        names = [name for name in (chosen or self.columns) if name not in without]
        if chosen is None:
            check_text_columns(
                self.table_files, [name for name in names if not self.is_numeric(name)]
            )
            names = [name for name in names if self.is_numeric(name)]
        for name in names:
            self._check_numeric(name)
        if not names:
            raise MixdaError(
                f"{self.files[0]} has no column of numbers to use as a feature; its columns are "
                f"{listed([repr(name) for name in self.columns])}."
            )
        return tuple(names)

    def check_encoding(self, encoding: Columns) -> None:
        """Check that the table has the columns of an encoding, with numbers where needed."""
        for column in encoding.columns:
            self._check_column(column.name)
            if column.kind == "number":
                self._check_numeric(column.name)

    def is_numeric(self, name: str) -> bool:
        """Return whether a column holds numbers or booleans in at least one of the files."""
        return any(file.kinds.get(name) in ("number", "bool") for file in self.table_files)

    def batches(
        self,
        columns: Sequence[str],
        rows: int = _ROWS_PER_BATCH,
        *,
        as_written: Collection[str] = (),
    ) -> Iterator[Batch]:
        """Yield batches of at most `rows` rows of some columns.

        Numeric columns are float64, the others text. Columns in `as_written` keep the type they
        have in the file, which suits labels and columns that are only copied.
        """
        rows = check_positive_int(rows, "rows")
        for name in columns:
            self._check_column(name)
        for file in self.table_files:
            first_row = 0
            for record in file.record_batches(list(columns), as_written, rows):
                yield Batch(file.path, first_row, record)
                first_row += record.num_rows

    def read(
        self,
        features: Sequence[str] | None = None,
        label: str | None = None,
        domain: str | None = None,
        drop: Collection[str] = (),
        missing: str = "error",
        domains: Collection[str] | None = None,
        rows: int = _ROWS_PER_BATCH,
        *,
        encoding: Columns | None = None,
        max_rows: int | None = None,
    ) -> Samples:
        """Read all rows into arrays.

        Parameters
        ----------
        features : sequence of str, optional
            Columns of `X`, in this order. Default: all columns of numbers and booleans except
            `label`, `domain` and `drop`.
        label, domain : str, optional
            Columns with the classes and with the names of the domains.
        drop : collection of str
            Columns that are not features.
        missing : {"error", "drop", "mixture"}
            How to treat rows in which a feature, the label or the domain is missing or infinite:
            raise an error, leave them out, or keep missing features as NaN for the fit of a
            mixture. In the last case, rows without a label or domain are left out, and infinite
            values are an error.
        domains : collection of str, optional
            Read only the rows of these domains. Other rows are not checked.
        rows : int
            Number of rows read at a time.
        encoding : Columns, optional
            Encode these columns, instead of `features`.
        max_rows : int, optional
            Keep every k-th usable row only, with the smallest power of two k for which these are
            at most `max_rows`.

        Returns
        -------
        Samples
        """
        check_choice(missing, "missing", ("error", "drop", "mixture"))
        check_different(label, domain)
        if encoding is None:
            encoding = Columns.of_numbers(self.features(features, (label, domain, *drop)))
        else:
            self.check_encoding(encoding)
        names, text = encoding.names, encoding.text_names
        extra = [name for name in (label, domain) if name is not None]
        kept, dropped = _KeptRows(extra, max_rows), dict.fromkeys(map(str, self.files), 0)
        requested = list(dict.fromkeys([*names, *extra]))
        for batch in self.batches(requested, rows, as_written=[*extra, *text]):
            X, values = batch.encoded(encoding), {name: batch.values(name) for name in extra}
            wanted = np.ones(len(X), dtype=bool)
            if domain is not None and domains is not None:
                wanted = np.isin(domain_names(values[domain]), list(domains))
            incomplete = _incomplete_rows(batch, X, values, wanted, encoding, missing)
            dropped[str(batch.file)] += int(incomplete.sum())
            kept.add(X, values, np.flatnonzero(wanted & ~incomplete))
        if not kept.n_kept:
            raise MixdaError(
                f"{self.files[0]}: no row has values in all required columns; fill them in, or "
                "leave out the columns that are mostly empty."
            )
        return Samples(
            np.concatenate(kept.matrices),
            None if label is None else class_names(np.concatenate(kept.columns[label])),
            None if domain is None else domain_names(np.concatenate(kept.columns[domain])),
            encoding.feature_names,
            np.concatenate(kept.row_numbers),
            {file: n for file, n in dropped.items() if n},
            kept.n_usable if kept.step > 1 else None,
        )

    def distinct(self, column: str) -> list[str]:
        """Return the distinct values of a column as sorted strings, without missing values."""
        pa = pyarrow()
        names: set[str] = set()
        for batch in self.batches([column], as_written=[column]):
            unique = batch.record.column(column).unique()
            record = pa.RecordBatch.from_arrays([unique], [column])
            values = Batch(batch.file, 0, record).values(column)
            names.update(domain_names(values[~_is_missing(values)]).tolist())
        return sorted(names)

    def _check_column(self, name: str) -> None:
        if name not in self.table_files[0].kinds:
            raise MixdaError(
                f"{self.files[0]} has no column {name!r};{did_you_mean(name, self.columns)} its "
                f"columns are {listed([repr(column) for column in self.columns])}."
            )

    def _check_numeric(self, name: str) -> None:
        for file in self.table_files:
            if file.kinds[name] not in ("number", "bool", "empty", "label", "domain"):
                raise MixdaError(
                    f"{file.path}: column {name!r} is not made of numbers{file.evidence(name)}; "
                    "correct it, encode it as numbers, or leave it out."
                )


class _KeptRows:
    """The rows that are kept while a table is read: all usable ones, or every k-th of them."""

    def __init__(self, names: Sequence[str], max_rows: int | None) -> None:
        self.matrices: list[Array] = []
        self.columns: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
        self.row_numbers: list[NDArray[np.intp]] = []
        self.n_usable, self.n_kept, self.step = 0, 0, 1
        self._max_rows, self._n_read = max_rows, 0

    def add(self, X: Array, values: Mapping[str, NDArray[Any]], usable: NDArray[np.intp]) -> None:
        """Add the usable rows of a batch; if they are too many, keep every second one of all."""
        kept = usable[-self.n_usable % self.step :: self.step]
        self.row_numbers.append(self._n_read + 1 + kept)
        self._n_read += len(X)
        self.n_usable += len(usable)
        self.n_kept += len(kept)
        self.matrices.append(X if len(kept) == len(X) else X[kept])
        for name, parts in self.columns.items():
            parts.append(values[name][kept])
        while self._max_rows is not None and self.n_kept > self._max_rows:
            held: tuple[list[Any], ...] = (self.matrices, self.row_numbers, *self.columns.values())
            for parts in held:
                parts[:] = [np.concatenate(parts)[::2].copy()]
            self.n_kept, self.step = len(self.row_numbers[0]), 2 * self.step


def _incomplete_rows(
    batch: Batch,
    X: Array,
    values: Mapping[str, NDArray[Any]],
    wanted: NDArray[np.bool_],
    encoding: Columns,
    missing: str,
) -> NDArray[np.bool_]:
    """Return which of the wanted rows lack a value; raise an error if `missing` asks for it."""
    unusable = np.isinf(X) if missing == "mixture" else ~np.isfinite(X)
    incomplete = wanted & unusable.any(axis=1)
    if incomplete.any() and missing == "mixture":
        _raise_for_missing(batch, int(incomplete.argmax()), encoding, unusable, {})
    for column in values.values():
        incomplete |= wanted & _is_missing(column)
    if incomplete.any() and missing == "error":
        _raise_for_missing(batch, int(incomplete.argmax()), encoding, unusable, values)
    return incomplete


def check_different(label: str | None, domain: str | None) -> None:
    """Check that classes and domains come from different columns."""
    if label is not None and label == domain:
        raise MixdaError(
            f"column {label!r} is given for the classes and for the domains; name two different "
            "columns."
        )


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.asarray(~np.isfinite(values))
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    return np.array([v is None or v != v for v in values.tolist()], dtype=bool)


def _raise_for_missing(
    batch: Batch,
    row: int,
    encoding: Columns,
    unusable: NDArray[np.bool_],
    values: Mapping[str, NDArray[Any]],
) -> None:
    incomplete = [name for name, column in values.items() if _is_missing(column)[row]]
    if incomplete:
        column = incomplete[0]
        cell = batch.record.column(column)[row].as_py()
        is_mark = isinstance(cell, str) and cell != ""
        problem = f"{cell!r}, which means no value," if is_mark else "no value"
    else:
        k = int(unusable[row].argmax())
        owners = [part.name for part in encoding.columns for _ in part.feature_names]
        cell = batch.record.column(owners[k])[row].as_py()
        infinite = isinstance(cell, float) and np.isinf(cell)
        column, problem = owners[k], "an infinite value" if infinite else "no value"
    raise MixdaError(
        f"{batch.file}: column {column!r} has {problem} in row {batch.first_row + row + 1}; "
        "correct it, leave the column out, or skip such rows (missing='drop' in Python, --missing "
        "drop on the command line)."
    )
