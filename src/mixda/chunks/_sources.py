"""Data of any size as partitions that can be read repeatedly and independently of each other.

A partition is a small description (a file and its row groups, a slice of an array, a Dask graph)
that can be sent to where the data are. Reading it yields blocks of rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.errors import MixdaError
from mixda._core.validation import check_choice, check_names, check_positive_int, check_X
from mixda.chunks._dask import array_partitions, frame_partitions
from mixda.chunks._files import file_partitions
from mixda.chunks._rows import (
    EncodedColumn,
    RowBlock,
    apply_sample_weight,
    column_names,
    encode_column,
    rows_per_block,
)
from mixda.tables import Columns, Table, open_table

Batches = Callable[[], Iterable[Any]]


class Partition(Protocol):
    """Rows that are always read in the same order."""

    def blocks(self) -> Iterator[RowBlock]:
        """Yield the rows, a few megabytes at a time."""
        ...  # pragma: no cover


@dataclass(frozen=True, eq=False)
class RowSource:
    """Rows in partitions, made by `from_files`, `from_arrays`, `from_dask` and `from_batches`.

    Attributes
    ----------
    partitions : tuple
        Each is read independently of the others.
    n_features : int
    feature_names : tuple of str, or None
    has_label, has_domain : bool
        Whether rows have classes, and names of domains.
    nbytes : int or None
        Size of the rows as float64, if known.
    in_memory : bool
        Whether partitions hold the rows themselves rather than a description of where they are.
    text_labels : bool
        Whether classes are read as text and converted to integers if all of them are integers.
    """

    partitions: tuple[Partition, ...]
    n_features: int
    feature_names: tuple[str, ...] | None = None
    has_label: bool = False
    has_domain: bool = False
    nbytes: int | None = None
    in_memory: bool = False
    text_labels: bool = False

    @property
    def parts(self) -> tuple[Partition, ...]:
        """Previous name of `partitions`."""
        return self.partitions


def from_files(
    paths: Any,
    label: str | None = None,
    domain: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    missing: str = "error",
    encoding: Columns | None = None,
) -> RowSource:
    r"""Read rows from csv, parquet, npz or npy files, without holding all of them in memory.

    Parameters
    ----------
    paths : path, pattern, folder, a sequence of these, or Table
        Files of one table, see `mixda.tables.open_table`.
    label, domain : str, optional
        Columns with the classes and with the names of the domains.
    columns, drop : sequence of str
        The features, or columns that are not features. Default: all columns of numbers. Unused
        columns of parquet files are not read.
    missing : {"error", "drop", "mixture"}
        How to treat rows with missing values: raise an error, leave them out, or keep their gaps,
        which the fit of a mixture integrates out. Rows without a class or domain are left out.
    encoding : Columns, optional
        The columns and how they become features, instead of `columns` and `drop`.

    Returns
    -------
    RowSource
        A partition is a row group of a parquet file (small neighbors are combined), a slice of
        an npy file, or a whole file of another format.

    Examples
    --------
    >>> import os, tempfile
    >>> from mixda import chunks, fit_labeled_mixture
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("speed,state\n1,ok\n2,ok\n9,worn\n")
    ...     fit_labeled_mixture(chunks.from_files(path, label="state"))
    Mixture(n_components=2, n_features=1, classes=['ok', 'worn'])
    """
    check_choice(missing, "missing", ("error", "drop", "mixture"))
    table = paths if isinstance(paths, Table) else open_table(paths)
    if encoding is None:
        encoding = Columns.of_numbers(table.features(columns, (label, domain, *drop)))
    else:
        table.check_encoding(encoding)
    features = encoding.feature_names
    partitions = file_partitions(table, encoding, label, domain, missing)
    size = None if table.n_rows is None else 8 * table.n_rows * len(features)
    return RowSource(
        partitions,
        len(features),
        features,
        label is not None,
        domain is not None,
        nbytes=size,
        text_labels=True,
    )


def from_arrays(
    X: ArrayLike,
    y: ArrayLike | None = None,
    domain: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    rows: int | None = None,
) -> RowSource:
    """Split arrays or memory maps into partitions.

    Parameters
    ----------
    X : array-like of shape (n, d)
        A memory map stays on disk unless `sample_weight` is given.
    y, domain : array-like of shape (n,), optional
    sample_weight : array-like of shape (n,), optional
    rows : int, optional
        Rows per partition. Default: 32 MB.

    Returns
    -------
    RowSource

    Examples
    --------
    >>> import numpy as np
    >>> from mixda import chunks
    >>> len(chunks.from_arrays(np.zeros((10, 2)), rows=4).partitions)
    3
    """
    values = (
        X if isinstance(X, np.memmap) and X.ndim == 2 and X.size else check_X(X, allow_nan=True)
    )
    on_disk = isinstance(values, np.memmap)
    if values.dtype.kind not in "fiu":
        raise MixdaError(f"X must hold real numbers, got an array of dtype {values.dtype}.")
    named = {"y": y, "domain": domain}
    given = {name: check_names(v, name) for name, v in named.items() if v is not None}
    for name, column in given.items():
        if len(column) != len(values):
            raise MixdaError(f"{name} has length {len(column)}, but X has {len(values)} samples.")
    values, weight, used = apply_sample_weight(values, sample_weight)
    given = {name: column[used] for name, column in given.items()}
    n, d = values.shape
    step = 4 * rows_per_block(d) if rows is None else check_positive_int(rows, "rows")
    labels, domains = given.get("y"), given.get("domain")
    block = RowBlock(
        values,
        None if labels is None else encode_column(labels),
        None if domains is None else encode_column(domains.astype(str)),
        weight,
    )
    partitions = tuple(_ArrayPartition(block[k : k + step], not on_disk) for k in range(0, n, step))
    return RowSource(
        partitions,
        d,
        column_names(X),
        has_label=labels is not None,
        has_domain=domains is not None,
        nbytes=8 * n * d,
        in_memory=True,
    )


def from_dask(
    X: Any, label: Any = None, domain: Any = None, *, columns: Sequence[str] | None = None
) -> RowSource:
    """Use the blocks of a Dask array or the partitions of a Dask dataframe.

    Parameters
    ----------
    X : dask array of shape (n, d), or dask dataframe
    label, domain : dask array or array-like of shape (n,), or the name of a column of a dataframe
    columns : sequence of str, optional
        Features of a dataframe. Default: all columns of numbers except `label` and `domain`.

    Returns
    -------
    RowSource
        Its partitions are computed on the workers of `client`, or in this process without one.

    Examples
    --------
    >>> import dask.array as da
    >>> from mixda import chunks, fit_mixture
    >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(100, 2))
    >>> fit_mixture(chunks.from_dask(X), 2, random_state=0)
    Mixture(n_components=2, n_features=2)
    """
    if hasattr(X, "partitions") and hasattr(X, "columns"):
        partitions, names = frame_partitions(X, label, domain, columns)
        return RowSource(partitions, len(names), names, label is not None, domain is not None)
    partitions, n_features, size = array_partitions(X, label, domain)
    return RowSource(
        partitions,
        n_features,
        has_label=label is not None,
        has_domain=domain is not None,
        nbytes=size,
    )


def from_batches(batches: Batches | Iterable[Any]) -> RowSource:
    """Read batches ``X``, ``(X, y)`` or ``(X, y, domain)`` from an iterable.

    Parameters
    ----------
    batches : iterable, or function that returns one
        The data are read many times. An iterator, which can be consumed only once, is first
        written to a temporary folder that is deleted with the source.

    Returns
    -------
    RowSource

    Examples
    --------
    >>> import numpy as np
    >>> from mixda import chunks, fit_mixture
    >>> def batches():
    ...     return (np.random.default_rng(i).normal(size=(100, 2)) for i in range(5))
    >>> fit_mixture(chunks.from_batches(batches), random_state=0)
    Mixture(n_components=1, n_features=2)
    """
    if not callable(batches):
        if not hasattr(batches, "__iter__"):
            raise MixdaError(
                "batches must be an iterable of arrays or a function that returns one, got "
                f"{type(batches).__name__}."
            )
        if iter(batches) is batches:
            return _spool(batches)
    partition = _BatchPartition(batches)
    first = next(partition.blocks(), None)
    if first is None:
        raise MixdaError("batches yields nothing; give at least one batch of samples.")
    return RowSource(
        (partition,),
        first.X.shape[1],
        has_label=first.label is not None,
        has_domain=first.domain is not None,
    )


@dataclass(frozen=True, eq=False)
class _ArrayPartition:
    """Rows in memory, or of a memory map, which are checked when they are read."""

    rows: RowBlock
    checked: bool

    def blocks(self) -> Iterator[RowBlock]:
        for block in self.rows.blocks():
            yield block if self.checked else replace(block, X=check_X(block.X, allow_nan=True))


@dataclass(frozen=True, eq=False)
class _BatchPartition:
    batches: Any

    def blocks(self) -> Iterator[RowBlock]:
        n_features = None
        for batch in self.batches() if callable(self.batches) else self.batches:
            given = batch if isinstance(batch, tuple) else (batch,)
            X = check_X(given[0], "a batch", n_features, allow_nan=True)
            n_features = X.shape[1]
            names = [None if c is None else check_names(c, "a batch's y") for c in given[1:3]]
            lengths = {len(c) for c in names if c is not None}
            if lengths - {len(X)}:
                raise MixdaError(
                    f"a batch has {len(X)} samples, but its classes and domains have lengths "
                    f"{sorted(lengths)}; they must be the same."
                )
            label, domain = (*names, None, None)[:2]
            yield from RowBlock(
                X,
                None if label is None else encode_column(label),
                None if domain is None else encode_column(domain.astype(str)),
            ).blocks()


@dataclass(frozen=True, eq=False)
class _SpooledPartition:
    """A batch in a temporary folder, which exists as long as one of its partitions."""

    path: Path
    label: EncodedColumn | None
    domain: EncodedColumn | None
    folder: tempfile.TemporaryDirectory[str]

    def blocks(self) -> Iterator[RowBlock]:
        X = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return _ArrayPartition(RowBlock(X, self.label, self.domain), checked=False).blocks()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "folder": None}  # only the process that made it deletes it


def _spool(batches: Iterable[Any]) -> RowSource:
    folder = tempfile.TemporaryDirectory(prefix="mixda-")
    partitions: list[_SpooledPartition] = []
    size = 0
    for rows in _BatchPartition(batches).blocks():
        path = Path(folder.name, f"{len(partitions)}.npy")
        np.save(path, rows.X)
        size += rows.X.nbytes
        partitions.append(_SpooledPartition(path, rows.label, rows.domain, folder))
    if not partitions:
        raise MixdaError("batches yields nothing; give at least one batch of samples.")
    return RowSource(
        tuple(partitions),
        rows.X.shape[1],
        has_label=rows.label is not None,
        has_domain=rows.domain is not None,
        nbytes=size,
    )
