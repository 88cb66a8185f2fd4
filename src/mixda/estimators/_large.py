"""Predictions of data that do not fit in memory: by partition, or as a Dask array."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda.chunks import RowSource, is_dask


def is_large(X: Any) -> bool:
    """Return whether `X` is a `RowSource` or a Dask collection."""
    return isinstance(X, RowSource) or is_dask(X)


def predict_large(estimator: Any, X: Any, sample_domain: Any, method: str) -> Any:
    """Return ``predict`` or ``predict_proba`` of the target's rows of a large source."""
    if sample_domain is not None:
        raise MixdaError(
            "sample_domain must be None for a RowSource or a Dask collection: its rows are those "
            "of the target."
        )
    names = getattr(estimator, "feature_names_in_", None)
    if isinstance(X, RowSource):
        if X.n_features != estimator.n_features_in_:
            raise MixdaError(
                f"X has {X.n_features} features, but the model has {estimator.n_features_in_}."
            )
        if X.feature_names is not None and names is not None and [*X.feature_names] != [*names]:
            raise MixdaError(
                f"X has the features {list(X.feature_names)}, but the model has {list(names)}; "
                "give the columns in this order."
            )
        return _by_partition(estimator, X, method)
    if hasattr(X, "columns"):
        chosen = X.select_dtypes(["number", "bool"]).columns if names is None else names
        X = X[list(chosen)].to_dask_array()
    X = X.rechunk({1: -1})
    function = partial(_predict_block, estimator, method)
    if method == "predict":
        return X.map_blocks(function, drop_axis=1, dtype=estimator.classes_.dtype)
    chunks = (X.chunks[0], (len(estimator.classes_),))
    return X.map_blocks(function, chunks=chunks, dtype=np.float64)


def _by_partition(estimator: Any, source: RowSource, method: str) -> Iterator[Any]:
    for partition in source.partitions:
        parts = [_predict_block(estimator, method, block.X) for block in partition.blocks()]
        if parts:
            yield np.concatenate(parts)


def _predict_block(estimator: Any, method: str, X: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return getattr(estimator, method)(np.ascontiguousarray(X))
