"""How columns of a table become features: numbers as they are, categories one-hot, ordinals ranked.

`Columns` is a value that a model stores, so that raw tables with the same columns can be predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.text import suggestion
from mixda._core.typing import Array
from mixda._core.validation import check_choice
from mixda.tables._names import domain_names

KINDS = ("number", "category", "ordinal")


@dataclass(frozen=True)
class Column:
    """A column and how it is encoded.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "ordinal"}
        A number or boolean is one feature; a category is one feature per level, 1 in rows of that
        level and else 0; an ordinal is one feature, the rank of its level from 0.
    levels : tuple of str
        Of a category or an ordinal, in order. Other levels have zeros in all features of a
        category, and are missing values of an ordinal.
    """

    name: str
    kind: str = "number"
    levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", KINDS)
        levels = tuple(self.levels)
        if not isinstance(self.name, str) or not all(isinstance(v, str) for v in levels):
            raise MixdaError(f"name and levels of column {self.name!r} must be strings.")
        if bool(levels) == (self.kind == "number") or len(set(levels)) < len(levels):
            raise MixdaError(
                f"levels of column {self.name!r} ({self.kind}) must be distinct strings, and none "
                f"for a number, got {levels!r}."
            )
        object.__setattr__(self, "levels", levels)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features of this column, such as "color=red"."""
        if self.kind != "category":
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels)

    def encode(self, values: NDArray[Any]) -> Array:
        """Return the features of some cells, shape (n, number of features).

        Numbers are floats with NaN for missing values. Other cells are objects, None if missing.
        """
        if self.kind == "number":
            return np.asarray(values, dtype=np.float64)[:, None]
        missing = np.array([v is None or v != v for v in values.tolist()], dtype=bool)
        names = domain_names(values)
        matches = names[:, None] == np.array(self.levels)[None, :]
        if self.kind == "category":
            return np.where(missing[:, None], np.nan, matches.astype(np.float64))
        known = matches.any(axis=1) & ~missing
        return np.where(known, matches.argmax(axis=1), np.nan)[:, None]


@dataclass(frozen=True)
class Columns:
    """The columns that are features, with their encodings.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.tables import Column, Columns
    >>> columns = Columns((Column("speed"), Column("state", "category", ("ok", "worn"))))
    >>> columns.feature_names
    ('speed', 'state=ok', 'state=worn')
    >>> cells = {"speed": np.array([1.5, 2.0]), "state": np.array(["worn", "new"], dtype=object)}
    >>> columns.encode(cells.__getitem__)
    array([[1.5, 0. , 1. ],
           [2. , 0. , 0. ]])
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        columns = tuple(self.columns)
        if not columns or not all(isinstance(column, Column) for column in columns):
            raise MixdaError("columns must be at least one Column.")
        object.__setattr__(self, "columns", columns)
        features = self.feature_names
        if len(set(features)) < len(features):
            repeated = next(name for name in features if features.count(name) > 1)
            raise MixdaError(f"two features would be called {repeated!r}; rename a column.")

    @classmethod
    def of_numbers(cls, names: Sequence[str]) -> Columns:
        """Return columns of numbers."""
        return cls(tuple(Column(name) for name in names))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns in the table."""
        return tuple(column.name for column in self.columns)

    @property
    def numeric(self) -> bool:
        """Whether all columns are numbers, so that features are the columns themselves."""
        return all(column.kind == "number" for column in self.columns)

    @property
    def text_names(self) -> tuple[str, ...]:
        """Names of the columns whose cells are read as text."""
        return tuple(column.name for column in self.columns if column.kind != "number")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns of `encode`."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def encode(self, values_of: Callable[[str], NDArray[Any]]) -> Array:
        """Return the features, shape (n, d), of cells that `values_of` gives by column name."""
        return np.hstack([column.encode(values_of(column.name)) for column in self.columns])


def ordinal_levels(values: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parse ``column=lowest,…,highest``.

    Examples
    --------
    >>> from mixda.tables import ordinal_levels
    >>> ordinal_levels(["grade=low,mid,high"])
    {'grade': ('low', 'mid', 'high')}
    """
    ordinals: dict[str, tuple[str, ...]] = {}
    for value in values:
        name, sign, text = value.partition("=")
        levels = tuple(level.strip() for level in text.split(",") if level.strip())
        if not sign or len(levels) < 2:
            raise MixdaError(
                f"ordinal (--ordinal) {value!r} must be column=lowest,…,highest, such as "
                "grade=low,mid,high."
            )
        ordinals[name.strip()] = levels
    return ordinals


def check_ordinals(ordinals: Mapping[str, Sequence[str]], names: Sequence[str]) -> None:
    """Check that the ordinals are columns."""
    for name in ordinals:
        if name not in names:
            raise MixdaError(
                f"ordinal (--ordinal) names {name!r}, but no file has such a column"
                f"{suggestion(name, names)}"
            )
