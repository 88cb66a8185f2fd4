"""Partitions of Dask collections: blocks of an array, partitions of a dataframe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.validation import check_names, check_X
from mixda.chunks._rows import RowBlock, encode_column


@dataclass(frozen=True, eq=False)
class DaskPartition:
    """Rows that a Dask graph computes, by ``load(*arguments)`` if that is known."""

    delayed: Any
    load: Any = None
    arguments: tuple[Any, ...] = ()

    @classmethod
    def of(cls, load: Any, *arguments: Any, **options: Any) -> DaskPartition:
        """Return a partition that is loaded from delayed arguments."""
        import dask

        make = dask.delayed(load, pure=False)
        return cls(make(*arguments, **options), load, arguments)

    def select_domains(self, domains: frozenset[str] | None, labeled: bool) -> DaskPartition:
        """Return the rows of some domains (None: of all), without classes unless `labeled`."""
        return DaskPartition.of(self.load, *self.arguments, selection=(domains, labeled))

    def blocks(self) -> Iterator[RowBlock]:
        """Compute the rows in this process."""
        loaded: LoadedPartition = self.delayed.compute(scheduler="synchronous")
        return loaded.blocks()


@dataclass(frozen=True, eq=False)
class LoadedPartition:
    """Rows in memory."""

    row_blocks: tuple[RowBlock, ...]

    def blocks(self) -> Iterator[RowBlock]:
        """Yield the rows."""
        return iter(self.row_blocks)


def load_partition(partition: Any) -> LoadedPartition:
    """Read all rows of a partition into memory."""
    return LoadedPartition(tuple(partition.blocks()))


def array_partitions(
    X: Any, label: Any, domain: Any
) -> tuple[tuple[DaskPartition, ...], int, int | None]:
    """Return the partitions of a Dask array, its number of features, and its size if known."""
    try:
        import dask
        import dask.array
    except ImportError:
        raise MixdaError("Dask collections require Dask; pip install 'mixda[scale]'") from None
    if not isinstance(X, dask.array.Array) or X.ndim != 2:
        raise MixdaError(
            "X must be a Dask dataframe or a Dask array of shape (n, d), got "
            f"{type(X).__name__}{getattr(X, 'shape', '')}."
        )
    X = X.rechunk({1: -1})
    columns = [X.to_delayed().ravel()]
    for name, values in (("label", label), ("domain", domain)):
        columns.append(_column_blocks(X, name, values))
    partitions = tuple(
        DaskPartition.of(_load_arrays, *blocks, k)
        for k, blocks in enumerate(zip(*columns, strict=True))
    )
    return partitions, int(X.shape[1]), _nbytes(X.shape[0], X.shape[1])


def frame_partitions(
    frame: Any, label: str | None, domain: str | None, columns: Sequence[str] | None
) -> tuple[tuple[DaskPartition, ...], tuple[str, ...]]:
    """Return the partitions of a Dask dataframe and the names of its features."""
    for name in (*(columns or ()), label, domain):
        if name is not None and name not in frame.columns:
            raise MixdaError(
                f"the dataframe has no column {name!r}; its columns are {list(frame.columns)}."
            )
    given = columns or frame.select_dtypes(["number", "bool"]).columns
    names = tuple(name for name in given if columns or name not in (label, domain))
    if not names:
        raise MixdaError(
            "the dataframe has no column of numbers to use as a feature; its columns are "
            f"{list(frame.columns)}."
        )
    partitions = tuple(
        DaskPartition.of(_load_frame, delayed, names, label, domain, k)
        for k, delayed in enumerate(frame.to_delayed())
    )
    return partitions, names


def _column_blocks(X: Any, name: str, column: Any) -> Sequence[Any]:
    """Split a column into blocks that match the rows of the blocks of X."""
    import dask.array

    if column is None:
        return [None] * X.numblocks[0]
    if not isinstance(column, dask.array.Array):
        column = dask.array.from_array(check_names(column, name), chunks=-1)
    unknown = np.isnan(X.shape[0]) or np.isnan(column.shape[0])
    if unknown and column.numblocks == X.numblocks[:1]:
        return list(column.to_delayed())
    if unknown or column.shape != X.shape[:1]:
        raise MixdaError(f"{name} has shape {column.shape}, but X has shape {X.shape}.")
    return list(column.rechunk((X.chunks[0],)).to_delayed())


def _nbytes(n: float, d: int) -> int | None:
    return None if np.isnan(n) else 8 * int(n) * d


def is_dask(X: Any) -> bool:
    """Return whether `X` is a Dask collection."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr")


Selection = tuple[frozenset[str] | None, bool]  # domains (None: all), and whether to keep classes


def _load_arrays(
    X: Any, label: Any, domain: Any, index: int, selection: Selection | None = None
) -> LoadedPartition:
    return _checked(X, label, domain, f"block {index + 1} of the Dask array", selection)


def _load_frame(
    frame: Any,
    names: tuple[str, ...],
    label: str | None,
    domain: str | None,
    index: int,
    selection: Selection | None = None,
) -> LoadedPartition:
    labels, domains = (None if n is None else np.asarray(frame[n]) for n in (label, domain))
    place = f"partition {index + 1} of the Dask dataframe"
    return _checked(frame[list(names)].to_numpy(), labels, domains, place, selection)


def _checked(
    X: Any, label: Any, domain: Any, place: str, selection: Selection | None
) -> LoadedPartition:
    if domain is not None:
        domain = check_names(domain, "domain").astype(str)
    if selection is not None:
        names, labeled = selection
        rows: Any = slice(None)
        if names is not None:
            if domain is None:
                raise MixdaError("the data have no names of domains; make them with a domain.")
            rows = np.isin(domain, list(names))
        X, domain = X[rows], None
        label = label[rows] if label is not None and labeled else None
    if not len(X):
        return LoadedPartition(())
    block = RowBlock(
        check_X(X, place),
        None if label is None else encode_column(check_names(label, f"the label of {place}")),
        None if domain is None else encode_column(domain),
    )
    return LoadedPartition(tuple(block.blocks()))
