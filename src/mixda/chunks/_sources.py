"""Data of any size as a sequence of parts that can be read again, each on its own, anywhere.

A part is a small description (a file and its row groups, a slice, a block of Dask), so it can be
sent to where the data are. Read, it gives blocks of rows with their classes and domains.
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
from mixda.chunks._files import file_parts
from mixda.chunks._rows import Column, Rows, column_names, encode, rows_per_block, weighed

Batches = Callable[[], Iterable[Any]]


class Part(Protocol):
    """Some rows that are always read in the same order."""

    def blocks(self) -> Iterator[Rows]:
        """Read the rows, a few megabytes at a time."""
        ...  # pragma: no cover


@dataclass(frozen=True, eq=False)
class ChunkSource:
    """Rows in parts. Made by `from_files`, `from_arrays`, `from_dask` and `from_batches`.

    Attributes
    ----------
    parts : tuple
        What is read independently of each other; a part of an executor's task.
    n_features : int
    feature_names : tuple of str, or None
    has_label, has_domain : bool
        Whether rows come with classes, and with names of domains.
    nbytes : int or None
        Size of the rows as float64, if known.
    in_memory : bool
        Whether parts hold the rows themselves rather than say where they are.
    text_labels : bool
        Whether classes are read as text, and are integers if all of them look so.
    """

    parts: tuple[Part, ...]
    n_features: int
    feature_names: tuple[str, ...] | None = None
    has_label: bool = False
    has_domain: bool = False
    nbytes: int | None = None
    in_memory: bool = False
    text_labels: bool = False


def from_files(
    paths: Any,
    label: str | None = None,
    domain: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    missing: str = "error",
) -> ChunkSource:
    r"""Take rows from csv, parquet, npz or npy files, never all in memory.

    Parameters
    ----------
    paths : path, pattern, folder, or a sequence of these
        Files of one table, see `mixda.tables.open_table`.
    label, domain : str, optional
        Columns of the classes and of the names of the domains.
    columns, drop : sequence of str
        The features, or columns that are none. Default: all columns of numbers. Of a parquet file
        only the columns in use are read.
    missing : "error" or "drop"
        What to do with rows that miss a value.

    Returns
    -------
    ChunkSource
        A part is a row group of a parquet file (small neighbors are taken together), some rows
        of an npy file, or a whole file of another kind.

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
    from mixda.tables import open_table

    check_choice(missing, "missing", ("error", "drop"))
    table = open_table(paths)
    features = table.features(columns, (label, domain, *drop))
    parts = file_parts(table, features, label, domain, missing)
    size = None if table.n_rows is None else 8 * table.n_rows * len(features)
    return ChunkSource(
        parts,
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
) -> ChunkSource:
    """Cut arrays, or memory maps, into parts.

    Parameters
    ----------
    X : array-like of shape (n, d)
        A memory map stays on disk, unless there are weights.
    y, domain : array-like of shape (n,), optional
    sample_weight : array-like of shape (n,), optional
    rows : int, optional
        Rows per part. Default: 32 MB.

    Returns
    -------
    ChunkSource

    Examples
    --------
    >>> import numpy as np
    >>> from mixda import chunks
    >>> len(chunks.from_arrays(np.zeros((10, 2)), rows=4).parts)
    3
    """
    values = X if isinstance(X, np.memmap) and X.ndim == 2 and X.size else check_X(X)
    on_disk = isinstance(values, np.memmap)
    if values.dtype.kind not in "fiu":
        raise MixdaError(f"X must be real numbers, got an array of dtype {values.dtype}.")
    named = {"y": y, "domain": domain}
    given = {name: check_names(v, name) for name, v in named.items() if v is not None}
    for name, column in given.items():
        if len(column) != len(values):
            raise MixdaError(f"{name} has length {len(column)}, but X has {len(values)} samples.")
    values, weight, kept = weighed(values, sample_weight)
    given = {name: column[kept] for name, column in given.items()}
    n, d = values.shape
    step = 4 * rows_per_block(d) if rows is None else check_positive_int(rows, "rows")
    labels, domains = given.get("y"), given.get("domain")
    rows_of = Rows(
        values,
        None if labels is None else encode(labels),
        None if domains is None else encode(domains.astype(str)),
        weight,
    )
    parts = tuple(_ArrayPart(rows_of[k : k + step], not on_disk) for k in range(0, n, step))
    return ChunkSource(
        parts,
        d,
        column_names(X),
        has_label=labels is not None,
        has_domain=domains is not None,
        nbytes=8 * n * d,
        in_memory=True,
    )


def from_dask(
    X: Any, label: Any = None, domain: Any = None, *, columns: Sequence[str] | None = None
) -> ChunkSource:
    """Take the blocks of a Dask array, or the partitions of a Dask dataframe.

    Parameters
    ----------
    X : dask array of shape (n, d), or dask dataframe
    label, domain : dask array or array-like of shape (n,), or the name of a column of a dataframe
    columns : sequence of str, optional
        Features of a dataframe. Default: all columns of numbers but `label` and `domain`.

    Returns
    -------
    ChunkSource
        Its parts are computed on the workers of `client`, or here if there is none.

    Examples
    --------
    >>> import dask.array as da
    >>> from mixda import chunks, fit_mixture
    >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(100, 2))
    >>> fit_mixture(chunks.from_dask(X), 2, random_state=0)
    Mixture(n_components=2, n_features=2)
    """
    from mixda.chunks._dask import array_parts, frame_parts

    if hasattr(X, "partitions") and hasattr(X, "columns"):
        parts, names, size = frame_parts(X, label, domain, columns)
        return ChunkSource(
            parts, len(names), names, label is not None, domain is not None, nbytes=size
        )
    parts, n_features, size = array_parts(X, label, domain)
    return ChunkSource(
        parts,
        n_features,
        has_label=label is not None,
        has_domain=domain is not None,
        nbytes=size,
    )


def from_batches(batches: Batches | Iterable[Any]) -> ChunkSource:
    """Take batches ``X``, ``(X, y)`` or ``(X, y, domain)`` from anything that yields them.

    Parameters
    ----------
    batches : iterable, or function that returns one
        The data are read many times. What can be iterated only once is therefore first written
        to a temporary folder, which goes away with the source.

    Returns
    -------
    ChunkSource

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
                f"batches must yield arrays, got {type(batches).__name__}; give an iterable or a "
                "function that returns one."
            )
        if iter(batches) is batches:
            return _spooled(batches)
    part = _BatchPart(batches)
    first = next(part.blocks(), None)
    if first is None:
        raise MixdaError("batches yields nothing; at least one batch of samples is needed.")
    return ChunkSource(
        (part,),
        first.X.shape[1],
        has_label=first.label is not None,
        has_domain=first.domain is not None,
    )


@dataclass(frozen=True, eq=False)
class _ArrayPart:
    """Rows in memory, or those of a memory map, which are checked when they are read."""

    rows: Rows
    checked: bool

    def blocks(self) -> Iterator[Rows]:
        for block in self.rows.blocks():
            yield block if self.checked else replace(block, X=check_X(block.X))


@dataclass(frozen=True, eq=False)
class _BatchPart:
    batches: Any

    def blocks(self) -> Iterator[Rows]:
        n_features = None
        for batch in self.batches() if callable(self.batches) else self.batches:
            given = batch if isinstance(batch, tuple) else (batch,)
            X = check_X(given[0], "a batch", n_features)
            n_features = X.shape[1]
            names = [None if c is None else check_names(c, "a batch's y") for c in given[1:3]]
            if any(c is not None and len(c) != len(X) for c in names):
                raise MixdaError(f"a batch has {len(X)} samples, but not as many classes.")
            label, domain = (*names, None, None)[:2]
            yield from Rows(
                X,
                None if label is None else encode(label),
                None if domain is None else encode(domain.astype(str)),
            ).blocks()


@dataclass(frozen=True, eq=False)
class _SpooledPart:
    """One batch in a temporary folder, which lives as long as a part of it."""

    path: Path
    label: Column | None
    domain: Column | None
    folder: tempfile.TemporaryDirectory[str]

    def blocks(self) -> Iterator[Rows]:
        X = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return _ArrayPart(Rows(X, self.label, self.domain), checked=False).blocks()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "folder": None}  # only this process deletes it


def _spooled(batches: Iterable[Any]) -> ChunkSource:
    folder = tempfile.TemporaryDirectory(prefix="mixda-")
    parts: list[_SpooledPart] = []
    size = 0
    for rows in _BatchPart(batches).blocks():
        path = Path(folder.name, f"{len(parts)}.npy")
        np.save(path, rows.X)
        size += rows.X.nbytes
        parts.append(_SpooledPart(path, rows.label, rows.domain, folder))
    if not parts:
        raise MixdaError("batches yields nothing; at least one batch of samples is needed.")
    return ChunkSource(
        tuple(parts),
        rows.X.shape[1],
        has_label=rows.label is not None,
        has_domain=rows.domain is not None,
        nbytes=size,
    )
