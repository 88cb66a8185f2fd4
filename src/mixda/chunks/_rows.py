"""Blocks of rows with their classes, domains and weights, and the grouping of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._core.errors import MixdaError
from mixda._core.namespace import namespace, take, to_numpy
from mixda._core.typing import Array
from mixda._core.validation import check_array

GroupKey = tuple[Any, Any]  # domain and class; None where rows are not grouped by it

_VALUES_PER_BLOCK = 1 << 20  # 8 MB as float64


@dataclass(frozen=True)
class Grouping:
    """Which rows share a mixture: those of the same class, the same domain, both, or all rows."""

    by_label: bool = False
    by_domain: bool = False


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """A column of names: the distinct names, and the index of each row's name among them."""

    names: list[Any]
    codes: NDArray[np.intp]

    def __getitem__(self, rows: Any) -> EncodedColumn:
        return EncodedColumn(self.names, self.codes[rows])


def encode_column(values: NDArray[Any]) -> EncodedColumn:
    """Encode names by their rank among the sorted distinct names."""
    names, codes = np.unique(values, return_inverse=True)
    return EncodedColumn(names.tolist(), codes)


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Samples of shape (n, d) with their classes, domains and weights."""

    X: Array
    label: EncodedColumn | None = None
    domain: EncodedColumn | None = None
    weight: Array | None = None
    n_left_out: int = 0  # rows that were read with these, but have no usable value

    def __getitem__(self, rows: Any) -> RowBlock:
        columns = (self.label, self.domain, self.weight)
        label, domain, weight = (None if column is None else column[rows] for column in columns)
        return RowBlock(self.X[rows], label, domain, weight)  # type: ignore[arg-type]

    def blocks(self) -> Iterator[RowBlock]:
        """Yield smaller blocks of a few megabytes."""
        step = rows_per_block(self.X.shape[1])
        for start in range(0, len(self.X), step):
            yield self[start : start + step]

    def groups(self, grouping: Grouping) -> Iterator[tuple[GroupKey, Array, Array | None]]:
        """Yield key, samples and weights of every group that has rows in this block."""
        label = self.label if grouping.by_label else None
        domain = self.domain if grouping.by_domain else None
        if label is None and domain is None:
            yield (None, None), self.X, self.weight
            return
        single = EncodedColumn([None], np.zeros(1, int))
        labels, domains = label or single, domain or single
        codes = domains.codes * len(labels.names) + labels.codes
        order = np.argsort(codes, kind="stable")
        present, starts = np.unique(codes[order], return_index=True)
        for code, rows in zip(present, np.split(order, starts[1:]), strict=True):
            domain_code, label_code = divmod(int(code), len(labels.names))
            weight = None if self.weight is None else self.weight[rows]
            yield (domains.names[domain_code], labels.names[label_code]), take(self.X, rows), weight


def rows_per_block(n_features: int) -> int:
    """Return the number of rows that are read at a time."""
    return max(256, _VALUES_PER_BLOCK // n_features)


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the column names of a dataframe if they are distinct strings, else None."""
    columns = list(getattr(X, "columns", ()))
    named = columns and all(isinstance(name, str) for name in columns)
    return tuple(columns) if named and len(set(columns)) == len(columns) else None


def apply_sample_weight(
    X: Array, sample_weight: ArrayLike | None
) -> tuple[Array, Array | None, Any]:
    """Return the samples of positive weight, their weights scaled to mean one, and their index."""
    if sample_weight is None:
        return X, None, slice(None)
    if namespace(X) is not np:
        sample_weight = to_numpy(sample_weight)
    weight = check_array(sample_weight, "sample_weight", ndim=1)
    if len(weight) != len(X):
        raise MixdaError(f"sample_weight has length {len(weight)}, but X has {len(X)} samples.")
    if (weight < 0).any() or not weight.any():
        raise MixdaError(
            f"sample_weight must be non-negative and not all zero, got a minimum of "
            f"{weight.min():.6g} and a sum of {weight.sum():.6g}."
        )
    positive = weight > 0
    weight = weight[positive] / weight.max()
    return take(X, positive), weight / weight.mean(), positive
