"""Parts of Dask collections: a block of an array, a partition of a dataframe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.validation import check_names, check_X
from mixda.chunks._rows import Rows, encode


@dataclass(frozen=True, eq=False)
class DaskPart:
    """Rows that a graph of Dask makes; `delayed` is that graph."""

    delayed: Any

    def blocks(self) -> Iterator[Rows]:
        """Compute the rows here."""
        loaded: LoadedPart = self.delayed.compute(scheduler="synchronous")
        return loaded.blocks()


@dataclass(frozen=True, eq=False)
class LoadedPart:
    """Rows in the memory of whoever computed them."""

    rows: tuple[Rows, ...]

    def blocks(self) -> Iterator[Rows]:
        """Give the rows."""
        return iter(self.rows)


def load(part: Any) -> LoadedPart:
    """Read all rows of a part."""
    return LoadedPart(tuple(part.blocks()))


def array_parts(X: Any, label: Any, domain: Any) -> tuple[tuple[DaskPart, ...], int, int | None]:
    """Return the parts of a Dask array, the number of features, and the size if it is known."""
    try:
        import dask
        import dask.array
    except ImportError:
        raise MixdaError("Dask collections need Dask; pip install 'mixda[scale]'") from None
    if not isinstance(X, dask.array.Array) or X.ndim != 2:
        raise MixdaError(
            "X must be a Dask dataframe or a Dask array of shape (n, d), got "
            f"{type(X).__name__}{getattr(X, 'shape', '')}."
        )
    X = X.rechunk({1: -1})
    blocks = [X.to_delayed().ravel()]
    for name, column in (("label", label), ("domain", domain)):
        blocks.append(_column_blocks(X, name, column))
    pieces = zip(*blocks, strict=True)
    make = dask.delayed(_rows_of_arrays, pure=False)
    parts = tuple(DaskPart(make(*piece, k)) for k, piece in enumerate(pieces))
    return parts, int(X.shape[1]), _size(X.shape[0], X.shape[1])


def frame_parts(
    frame: Any, label: str | None, domain: str | None, columns: Sequence[str] | None
) -> tuple[tuple[DaskPart, ...], tuple[str, ...], int | None]:
    """Return the parts of a Dask dataframe and the names of the features."""
    import dask

    for name in (*(columns or ()), label, domain):
        if name is not None and name not in frame.columns:
            raise MixdaError(
                f"the dataframe has no column {name!r}; its columns are {list(frame.columns)}."
            )
    given = columns or frame.select_dtypes(["number", "bool"]).columns
    names = tuple(name for name in given if columns or name not in (label, domain))
    if not names:
        raise MixdaError("the dataframe has no column of numbers to use as a feature.")
    make = dask.delayed(_rows_of_frame, pure=False)
    pieces = enumerate(frame.to_delayed())
    parts = tuple(DaskPart(make(piece, names, label, domain, k)) for k, piece in pieces)
    return parts, names, None


def _column_blocks(X: Any, name: str, column: Any) -> Sequence[Any]:
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


def _size(n: float, d: int) -> int | None:
    return None if np.isnan(n) else 8 * int(n) * d


def _rows_of_arrays(X: Any, label: Any, domain: Any, block: int) -> LoadedPart:
    return _cut(X, label, domain, f"block {block + 1} of the Dask array")


def _rows_of_frame(
    frame: Any, names: tuple[str, ...], label: str | None, domain: str | None, block: int
) -> LoadedPart:
    of_rows, of_domain = (None if n is None else np.asarray(frame[n]) for n in (label, domain))
    place = f"partition {block + 1} of the Dask dataframe"
    return _cut(frame[list(names)].to_numpy(), of_rows, of_domain, place)


def _cut(X: Any, label: Any, domain: Any, place: str) -> LoadedPart:
    if not len(X):
        return LoadedPart(())
    values = check_X(X, place)
    rows = Rows(
        values,
        None if label is None else encode(check_names(label, f"the label of {place}")),
        None if domain is None else encode(check_names(domain, "domain").astype(str)),
    )
    return LoadedPart(tuple(rows.blocks()))
