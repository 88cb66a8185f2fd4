"""No target or several of them: what `sample_domain` can mean besides sources and one target."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from mixda._core.errors import MixdaError, NoTargetWarning
from mixda._core.typing import Array, Ids

# The registry of `warnings` forgets what it showed whenever a library changes the filters, as fits
# do, so that every fit of a search would warn.
_WARNED: set[str] = set()


def fit_each_target(
    estimator: Any,
    X: Any,
    y: Any,
    ids: Ids,
    sample_weight: Any,
    options_of: Callable[[NDArray[np.intp], Ids], dict[str, Any]],
) -> dict[int, Any]:
    """Return a clone for each negative id, fitted to all sources and the rows of this target."""
    targets: dict[int, Any] = {}
    for target in np.unique(ids[ids < 0])[::-1]:
        rows = np.flatnonzero((ids >= 0) | (ids == target))
        options = options_of(rows, ids)
        if sample_weight is not None:
            options["sample_weight"] = np.asarray(sample_weight)[rows]
        targets[int(target)] = clone(estimator).fit(
            _safe_indexing(X, rows), _safe_indexing(y, rows), sample_domain=ids[rows], **options
        )
    return targets


def predict_each_target(targets: Mapping[int, Any], X: Any, ids: Ids) -> Array:
    """Return the probabilities of each row by the estimator of its target.

    Rows of sources belong to no target and get the mean of all estimators.
    """
    unknown = np.setdiff1d(ids[ids < 0], list(targets))
    if len(unknown):
        raise MixdaError(
            f"sample_domain names target {unknown[0]}, but fit had {name_targets(targets)}."
        )
    proba = np.zeros((len(ids), len(next(iter(targets.values())).classes_)))
    for target, estimator in targets.items():
        for rows, share in ((ids == target, 1.0), (ids >= 0, 1.0 / len(targets))):
            if rows.any():
                part = _safe_indexing(X, np.flatnonzero(rows))
                proba[rows] += share * estimator.predict_proba(part, ids[rows])
    return proba


def name_targets(targets: Mapping[int, Any]) -> str:
    """Return the ids of several targets, for a message."""
    return f"{len(targets)} targets ({', '.join(map(str, targets))})"


def check_forgotten_domains(kind: str, y: Any) -> None:
    """Warn that nothing is adapted; reject -1 as a class, because SKADA masks target rows so."""
    labels = np.asarray(y)
    classes = np.unique(labels) if labels.dtype.kind in "iuf" else np.array([])
    if len(classes) > 2 and classes[0] == -1 and (classes[1:] >= 0).all():
        raise MixdaError(
            f"y is -1 in {(labels == -1).sum()} rows, which marks unlabeled rows, but "
            "sample_domain is None; give sample_domain (negative for these rows), or rename the "
            "class."
        )
    message = (
        f"{kind}.fit has no sample_domain, so all rows are one source and nothing is adapted; give "
        "sample_domain with negative ids for the target."
    )
    if _action(NoTargetWarning) in ("always", "all", "error") or message not in _WARNED:
        _WARNED.add(message)
        warnings.warn(message, NoTargetWarning, stacklevel=_level_of_the_caller())


def _action(category: type[Warning]) -> str:
    """Return what the filters of `warnings` do with a category."""
    matching = (f[0] for f in warnings.filters if issubclass(category, f[2]) and f[1] is None)
    return next(matching, "default")


def _level_of_the_caller() -> int:
    """Return how many frames the caller of mixda is above the caller of this function."""
    level, frame = 0, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("mixda."):
        level, frame = level + 1, frame.f_back
    return level + 1
