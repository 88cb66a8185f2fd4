"""Rows of each domain, column by column, as the checks see them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda.tables import Batch, Table, domain_names

_MAX_ROWS = 100_000  # per table; the checks need no more
_ROWS_PER_BATCH = 65_536


@dataclass(frozen=True, eq=False)
class Frame:
    """Rows of a domain.

    Attributes
    ----------
    name : str
    is_target : bool
    files : tuple of Path
    kinds : dict of str to str
        As in `mixda.tables.Table.kinds`, without the columns of classes and domains.
    values : dict of str to ndarray
        Floats with NaN for numbers and booleans, objects with None for others.
    y : ndarray of str, or None
        Classes, "" where missing; None for the target, whose classes are never read.
    table : Table
    """

    name: str
    is_target: bool
    files: tuple[Path, ...]
    kinds: dict[str, str]
    values: dict[str, NDArray[Any]]
    y: NDArray[Any] | None
    table: Table

    @property
    def n_rows(self) -> int:
        """Number of rows that were read."""
        return len(next(iter(self.values.values()))) if self.values else 0


def read_frames(
    name: str,
    table: Table,
    *,
    label: str | None,
    hidden: Collection[str],
    domain: str | None = None,
    target_names: Collection[str] = (),
    is_target: bool = False,
) -> list[Frame]:
    """Return one frame per domain of a table.

    Parameters
    ----------
    name : str
        Of the domain, if there is no column of domain names.
    table : Table
    label : str or None
        Column of the classes. It is not read in rows of the target.
    hidden : collection of str
        Further columns that are not features in any table, such as label columns of other files.
    domain : str, optional
        Column of the domain names.
    target_names : collection of str
        Values of `domain` that are the target.
    is_target : bool
        Whether all rows are the target's.
    """
    left_out = {*hidden, domain, label}
    kinds = {
        column: "number" if table.is_numeric(column) and kind != "bool" else kind
        for column, kind in table.kinds.items()
        if column not in left_out
    }
    numeric = [column for column, kind in kinds.items() if kind in ("number", "bool", "empty")]
    read_label = label is not None and not is_target
    extra = [column for column in (label if read_label else None, domain) if column is not None]
    parts = _read(table, kinds, numeric, extra)
    ids = None if domain is None else domain_names(parts.pop(domain))
    y = None if not read_label else _class_names(parts.pop(str(label)))
    if ids is None:
        return [Frame(name, is_target, table.files, kinds, parts, y, table)]
    frames = []
    for part in np.unique(ids[ids != "None"]):
        rows, is_goal = ids == part, part in target_names
        values = {column: cells[rows] for column, cells in parts.items()}
        classes = None if y is None or is_goal else y[rows]
        frames.append(Frame(str(part), is_goal, table.files, kinds, values, classes, table))
    return frames


def _read(
    table: Table, columns: Collection[str], numeric: Sequence[str], extra: Sequence[str]
) -> dict[str, NDArray[Any]]:
    names = [*columns, *extra]
    text = [column for column in names if column not in numeric]
    parts: dict[str, list[NDArray[Any]]] = {column: [] for column in names}
    for batch in _spread_batches(table, names, text):
        for column in names:
            if column in numeric:
                parts[column].append(batch.matrix([column])[:, 0])
            else:
                parts[column].append(batch.values(column).astype(object))
    return {column: np.concatenate(cells) for column, cells in parts.items()}


def _spread_batches(table: Table, names: Sequence[str], text: Sequence[str]) -> Iterator[Batch]:
    """Yield the first rows of all partitions, about `_MAX_ROWS` in all: files may be sorted."""
    partitions = table.partitions()
    most = max(1, -(-_MAX_ROWS // len(partitions)))
    for partition in partitions if (table.n_rows or 0) > _MAX_ROWS else [table]:
        n_rows, limit = 0, _MAX_ROWS if partition is table else most
        for batch in partition.batches(names, min(limit, _ROWS_PER_BATCH), as_written=text):
            yield batch
            n_rows += len(batch)
            if n_rows >= limit:
                break


def _class_names(values: NDArray[Any]) -> NDArray[Any]:
    missing = np.array([v is None or v != v for v in values.tolist()], dtype=bool)
    return np.where(missing, "", domain_names(values))
