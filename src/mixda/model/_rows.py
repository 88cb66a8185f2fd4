"""The rows that users give to a model: arrays, or tables with columns of its names."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_X
from mixda.tables import Columns


def as_rows(X: Any, feature_names: tuple[str, ...], encoded: Columns | None) -> Array:
    """Return `X` as an array with the columns of `feature_names`; see `AdaptedModel.samples`.

    `encoded` says how the columns of a table become features, where they are not numbers.
    """
    columns = [name if isinstance(name, str) else None for name in getattr(X, "columns", ())]
    unnamed = feature_names == default_names(len(feature_names))
    named = bool(columns) and None not in columns
    if encoded is not None and named and set(encoded.names) <= set(columns):
        return check_X(encoded.encode(partial(_cells, X, encoded)), allow_nan=True)
    if named and not (unnamed and not set(columns) & set(feature_names)):
        missing = [name for name in feature_names if name not in columns]
        if missing:
            raise MixdaError(
                f"X has no column {missing[0]!r} ({len(missing)} of {len(feature_names)} "
                f"features are missing); the model needs {', '.join(feature_names[:20])}."
            )
        X = X[list(feature_names)]
    return check_X(X, n_features=len(feature_names), allow_nan=True)


def default_names(n_features: int) -> tuple[str, ...]:
    """Return names for features without names: "x0", "x1", …."""
    return tuple(f"x{i}" for i in range(n_features))


def _cells(frame: Any, columns: Columns, name: str) -> NDArray[Any]:
    """Return a column of a dataframe: numbers as floats, others as objects with None."""
    if name not in columns.text_names:
        return np.asarray(frame[name], dtype=np.float64)
    values = np.array(frame[name], dtype=object)
    values[[value is None or value != value for value in values.tolist()]] = None
    return values
