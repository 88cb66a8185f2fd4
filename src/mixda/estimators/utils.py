"""What the authors of methods need: domain ids, labels, pooled sources and heads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from mixda._core.errors import MixdaError
from mixda._core.validation import Array
from mixda.estimators.encoders import seeded

Codes = NDArray[np.intp]
Source = tuple[Array, Codes]

_FLOOR = 0.1  # of a feature's spread: 0.001 costs GMM-DaDiL up to half its accuracy on MLP features


def train_head(
    classifier: Any, seed: int, Z: Array, codes: Codes, sample_weight: Array | None = None
) -> Any:
    """Fit a clone of any scikit-learn classifier (default a logistic regression) on `codes`."""
    if classifier is None:
        classifier = LogisticRegression(max_iter=1000)
    if not hasattr(classifier, "fit"):
        raise MixdaError(
            f"classifier must be a scikit-learn classifier or None, got {classifier!r}."
        )
    if len(np.unique(codes)) == 1:
        return DummyClassifier(strategy="most_frequent").fit(Z, codes)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return seeded(classifier, seed).fit(Z, codes, **weights)


def head_proba(head: Any, Z: Array, n_classes: int) -> Array:
    """Probabilities (n, n_classes) of a head that may know fewer classes, or only decide."""
    proba = np.zeros((len(Z), n_classes))
    if hasattr(head, "predict_proba"):
        proba[:, head.classes_] = head.predict_proba(Z)
    else:
        proba[np.arange(len(Z)), head.predict(Z)] = 1.0
    return proba


def std_floor(variances: list[Array], largest: float) -> Array:
    """Smallest standard deviation of each feature: a share of its spread within the domains.

    `variances` are those of the features, one array per domain; `largest` is the largest absolute
    value anywhere, in case that all is constant.
    """
    spread = np.sqrt(np.mean(variances, axis=0))
    least = 1e-12 * largest or 1e-6  # all is constant, or zero
    floor: Array = np.maximum(_FLOOR * np.maximum(spread, spread.mean()), least)
    return floor


def pool(sources: list[Source]) -> Source:
    """All sources as one."""
    return np.vstack([Z for Z, _ in sources]), np.concatenate([codes for _, codes in sources])


def check_domains(sample_domain: Any, n: int, default: int) -> NDArray[np.int64]:
    """Return one id per row: those given, one for all, or the default."""
    if sample_domain is None:
        return np.full(n, default)
    ids = np.asarray(sample_domain)
    if ids.ndim == 0:
        ids = np.full(n, ids)
    if ids.shape != (n,):
        raise MixdaError(
            f"sample_domain must hold one id per row of X ({n}), got an array of shape {ids.shape}."
        )
    try:
        numbers = ids.astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.full(n, np.nan)
    if not ((np.abs(numbers) < 2**53) & (numbers == np.round(numbers))).all():
        raise MixdaError(
            "sample_domain must hold integers: 0 or more for sources, negative for the target; "
            "number the domains that have names."
        )
    return numbers.astype(np.int64)


def encode_labels(
    y: Any, is_source: NDArray[np.bool_], ids: NDArray[np.int64]
) -> tuple[NDArray[Any], Codes]:
    """Names of the classes and the code of every source row; target rows go before all else."""
    if isinstance(y, (list, tuple)):  # not as one array: target values would choose its dtype
        y = [label for label, kept in zip(y, is_source, strict=True) if kept]
        labels = np.asarray(y)
    else:
        labels = np.asarray(y)[is_source]
    labels = column_or_1d(labels, warn=True)
    missing = _is_missing(labels)
    if missing.any():
        domain = ids[is_source][missing][0]
        raise MixdaError(
            f"y contains NaN, infinity or None on {missing.sum()} row(s) of source domains (the "
            f"first in domain {domain}); drop them, or mark them as target with a negative id."
        )
    if labels.dtype.kind == "O" and not all(isinstance(label, str) for label in labels):
        labels = np.array(labels.tolist())
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise MixdaError(
            f"the source rows of y hold one class only ({classes.tolist()[0]!r}); a classifier "
            "needs at least two classes."
        )
    return classes, codes


def _is_missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    if labels.dtype.kind == "f":
        missing: NDArray[np.bool_] = ~np.isfinite(labels)
        return missing
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), dtype=bool)
    return np.array([label is None or label != label for label in labels], dtype=bool)
