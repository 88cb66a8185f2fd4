"""Validation of the parts of a mixture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_array, check_names


def check_labels(
    labels: ArrayLike | None, classes: ArrayLike | None, n_components: int
) -> tuple[Array | None, NDArray[Any] | None]:
    """Return the labels of K components and the names of their classes."""
    if labels is None:
        if classes is not None:
            raise MixdaError("classes requires labels; pass labels of shape (K, nc) as well.")
        return None, None
    labels = check_array(labels, "labels", ndim=2)
    if labels.shape[0] != n_components or labels.shape[1] == 0:
        raise MixdaError(
            f"labels has shape {labels.shape}, but there are {n_components} components; "
            "its rows are components and its columns are classes."
        )
    if (labels < 0).any() or np.abs(labels.sum(axis=1) - 1.0).max() > 1e-6:
        raise MixdaError("every row of labels must be non-negative and sum to one.")
    names = check_names(np.arange(labels.shape[1]) if classes is None else classes, "classes")
    if len(names) != labels.shape[1] or len(np.unique(names)) != len(names):
        raise MixdaError(
            f"classes must be {labels.shape[1]} distinct names, one per column of labels, "
            f"got {names.tolist()!r}."
        )
    return labels, names


def check_feature_names(given: Iterable[Any] | None, n_features: int) -> tuple[str, ...] | None:
    """Return distinct names as strings, one per feature."""
    if given is None:
        return None
    if not isinstance(given, Iterable):
        raise MixdaError(
            f"feature_names must be {n_features} distinct names, one per feature, got {given!r}."
        )
    names = tuple(str(name) for name in given)
    if len(names) != n_features or len(set(names)) != n_features:
        raise MixdaError(
            f"feature_names must be {n_features} distinct names, one per feature, got {names!r}."
        )
    return names


def frozen(array: Any) -> Any:
    """Return a read-only array that nobody else can write to; None stays None."""
    if array is None or not (array.flags.writeable or array.base is not None):
        return array
    array = array.copy()  # even of a read-only view, whose owner may still write
    array.flags.writeable = False
    return array
