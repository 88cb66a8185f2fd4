"""Blocks of rows, their classes and domains: what every part of a `ChunkSource` yields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import Array, check_array

Key = tuple[Any, Any]  # domain and class of a mixture; None where they are not told apart

_BLOCK_VALUES = 1 << 20  # 8 MB as float64


def rows_per_block(n_features: int) -> int:
    """Rows that are read at a time."""
    return max(256, _BLOCK_VALUES // n_features)


@dataclass(frozen=True, eq=False)
class Column:
    """Names and, for each row, the place of its name among them."""

    names: list[Any]
    codes: NDArray[np.intp]

    def __getitem__(self, rows: Any) -> Column:
        return Column(self.names, self.codes[rows])


def encode(values: NDArray[Any]) -> Column:
    """Return the distinct values, sorted, and where each row's stands."""
    names, codes = np.unique(values, return_inverse=True)
    return Column(names.tolist(), codes)


@dataclass(frozen=True, eq=False)
class Rows:
    """Some samples of shape (n, d), their classes, domains and weights."""

    X: Array
    label: Column | None = None
    domain: Column | None = None
    weight: Array | None = None

    def __getitem__(self, rows: Any) -> Rows:
        columns = (self.label, self.domain, self.weight)
        label, domain, weight = (None if column is None else column[rows] for column in columns)
        return Rows(self.X[rows], label, domain, weight)  # type: ignore[arg-type]

    def blocks(self) -> Iterator[Rows]:
        """Cut into pieces of a few megabytes."""
        step = rows_per_block(self.X.shape[1])
        for start in range(0, len(self.X), step):
            yield self[start : start + step]

    def groups(self, by_label: bool, by_domain: bool) -> Iterator[tuple[Key, Array, Any]]:
        """Yield domain and class, samples and weights of every mixture that has rows here."""
        label = self.label if by_label else None
        domain = self.domain if by_domain else None
        if label is None and domain is None:
            yield (None, None), self.X, self.weight
            return
        labels, domains = (column or Column([None], np.zeros(1, int)) for column in (label, domain))
        codes = domains.codes * len(labels.names) + labels.codes
        order = np.argsort(codes, kind="stable")
        present, starts = np.unique(codes[order], return_index=True)
        for code, rows in zip(present, np.split(order, starts[1:]), strict=True):
            of, name = divmod(int(code), len(labels.names))
            weight = None if self.weight is None else self.weight[rows]
            yield (domains.names[of], labels.names[name]), self.X[rows], weight


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a dataframe, if they are texts and all different."""
    columns = list(getattr(X, "columns", ()))
    named = columns and all(isinstance(name, str) for name in columns)
    return tuple(columns) if named and len(set(columns)) == len(columns) else None


def weighed(X: Array, sample_weight: ArrayLike | None) -> tuple[Array, Array | None, Any]:
    """Return the samples of positive weight, weights of mean one, and which rows were kept."""
    if sample_weight is None:
        return X, None, slice(None)
    weight = check_array(sample_weight, "sample_weight", ndim=1)
    if len(weight) != len(X):
        raise MixdaError(f"sample_weight has length {len(weight)}, but X has {len(X)} samples.")
    if (weight < 0).any() or not weight.any():
        raise MixdaError(
            f"sample_weight must be non-negative with a positive sum, got a minimum of "
            f"{weight.min():.6g} and a sum of {weight.sum():.6g}."
        )
    kept = weight > 0
    weight = weight[kept] / weight.max()
    return X[kept], weight / weight.mean(), kept
