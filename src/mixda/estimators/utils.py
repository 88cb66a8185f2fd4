"""Building blocks for authors of methods: checks of the input, pooled sources, heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from mixda._core.errors import MixdaError
from mixda._core.namespace import check_numpy, is_dispatched
from mixda._core.text import listed
from mixda._core.typing import Array, Codes, Source
from mixda._core.validation import check_magnitude
from mixda.chunks import apply_sample_weight
from mixda.estimators._canonical import CanonicalOrder
from mixda.estimators._large import is_large as is_large
from mixda.estimators.encoders import check_takes_weights, seeded

__all__ = [
    "check_domains",
    "check_samples",
    "encode_labels",
    "head_proba",
    "pool",
    "std_floor",
    "train_head",
]


# A floor of 0.001 instead costs GMM-DaDiL up to half its accuracy on features of a network.
_FLOOR_SHARE = 0.1


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn the ValueErrors of scikit-learn's checks into `MixdaError`, with the same message."""
    try:
        yield
    except MixdaError:
        raise
    except ValueError as error:
        raise MixdaError(str(error)) from None


def check_samples(estimator: Any, X: Any, reset: bool) -> Array:
    """Return `X` as a float64 array of shape (n, d), and keep its feature names.

    NaN marks a missing value; infinite values are an error.

    Parameters
    ----------
    estimator : estimator
        In `fit`, it gets `n_features_in_` and, if `X` has column names, `feature_names_in_`; in
        `predict`, `X` must agree with these.
    X : array-like of shape (n, d)
    reset : bool
        Whether this is a fit.

    Returns
    -------
    ndarray of shape (n, d)

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from mixda.estimators.utils import check_samples
    >>> check_samples(BaseEstimator(), [[1, 2], [3, 4]], reset=True)
    array([[1., 2.],
           [3., 4.]])
    """
    if is_dispatched(X):
        check_numpy(X, f"{type(estimator).__name__}.fit")  # predictions do not come here
    try:
        with user_errors():
            array: Array = validate_data(
                estimator, X, dtype=np.float64, reset=reset, ensure_all_finite=False
            )
    except MixdaError as error:
        if "could not convert string" not in str(error):
            raise
        raise MixdaError(
            f"X must hold numbers, but has text{_text_columns(X)} ({error}); encode it (such as "
            "with sklearn.preprocessing.OneHotEncoder), leave it out, or adapt from files "
            "(mixda.workflow.adapt_files), which encodes columns of text."
        ) from None
    infinite = np.isinf(array)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise MixdaError(
            f"X contains infinite values in {infinite.any(axis=1).sum()} of {len(array)} rows (the "
            f"first in row {row}, column {column}); correct them, or mark them as missing (NaN)."
        )
    check_magnitude(array, "X")
    return array


def check_domains(sample_domain: Any, n: int, default: int) -> NDArray[np.int64]:
    """Return one domain id per row.

    Parameters
    ----------
    sample_domain : array-like of shape (n,), int or None
        Ids of at least 0 for sources, negative ids for the target; one id counts for all rows.
    n : int
        Number of rows.
    default : int
        The id of all rows if `sample_domain` is None.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from mixda.estimators.utils import check_domains
    >>> check_domains([0, 1, -1], 3, default=0)
    array([ 0,  1, -1])
    >>> check_domains(None, 2, default=-1)
    array([-1, -1])
    """
    if sample_domain is None:
        return np.full(n, default)
    ids = np.asarray(sample_domain)
    if ids.ndim == 0:
        ids = np.full(n, ids)
    if ids.shape != (n,):
        raise MixdaError(
            f"sample_domain must have one id per row of X ({n}), got an array of shape {ids.shape}."
        )
    try:
        numbers = ids.astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.full(n, np.nan)
    if not ((np.abs(numbers) < 2**53) & (numbers == np.round(numbers))).all():
        raise MixdaError(
            "sample_domain must be integers, at least 0 for sources and negative for the target, "
            f"got {ids[:3].tolist()!r}…; replace names by numbers."
        )
    return numbers.astype(np.int64)


def encode_labels(
    y: Any, is_source: NDArray[np.bool_], ids: NDArray[np.int64]
) -> tuple[NDArray[Any], Codes]:
    """Return the classes and the code of every source row. Target rows of `y` are never read.

    Parameters
    ----------
    y : array-like of shape (n,)
        Classes: strings or numbers.
    is_source : ndarray of bool, shape (n,)
    ids : ndarray of int, shape (n,)
        Domain ids, for the error messages.

    Returns
    -------
    classes : ndarray of shape (nc,)
        Sorted.
    codes : ndarray of int, shape (number of source rows,)
        Positions in `classes`.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.estimators.utils import encode_labels
    >>> ids = np.array([0, 0, 1, -1])
    >>> encode_labels(["worn", "ok", "ok", None], ids >= 0, ids)
    (array(['ok', 'worn'], dtype='<U4'), array([1, 0, 0]))
    """
    if isinstance(y, (list, tuple)):  # not as one array: target values would decide its dtype
        y = [label for label, kept in zip(y, is_source, strict=True) if kept]
        labels = np.asarray(y)
    else:
        labels = np.asarray(y)[is_source]
    with user_errors():
        labels = column_or_1d(labels, warn=True)
    missing = _is_missing(labels)
    if missing.any():
        domain = ids[is_source][missing][0]
        raise MixdaError(
            f"y contains NaN, infinity or None on {missing.sum()} row(s) of source domains (the "
            f"first in domain {domain}); drop these rows, or give them a negative id (target)."
        )
    if labels.dtype.kind == "O" and not all(isinstance(label, str) for label in labels):
        labels = np.array(labels.tolist())
    with user_errors():
        check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise MixdaError(
            f"the source rows of y have one class only ({classes.tolist()[0]!r}); a classifier "
            "needs at least two classes."
        )
    return classes, codes


def weighted_rows(
    X: Array, codes: Codes, ids: NDArray[np.int64], sample_weight: Any
) -> tuple[Array, Codes, NDArray[np.int64], Array]:
    """Return the rows of positive weight, the codes of source rows, the ids and the weights."""
    _, _, used = apply_sample_weight(X, sample_weight)
    lost = np.setdiff1d(ids, ids[used])
    if len(lost):
        raise MixdaError(
            f"sample_weight is zero in all rows of domain {lost[0]}; leave the domain out, or give "
            "some of its rows a weight."
        )
    weight = np.asarray(sample_weight, dtype=np.float64)[used]
    return X[used], codes[used[ids >= 0]], ids[used], weight


def pool(sources: Sequence[Source]) -> Source:
    """Return the samples and codes of all sources as those of one.

    Parameters
    ----------
    sources : sequence of (Z, codes)
        Encoded samples of shape (n, d) and positions in `classes_` of shape (n,).

    Returns
    -------
    Z, codes

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.estimators.utils import pool
    >>> first, second = (np.zeros((2, 1)), np.array([0, 1])), (np.ones((1, 1)), np.array([1]))
    >>> pool([first, second])[1]
    array([0, 1, 1])
    """
    return np.vstack([Z for Z, _ in sources]), np.concatenate([codes for _, codes in sources])


def train_head(
    classifier: Any, seed: int, Z: Array, codes: Codes, sample_weight: Array | None = None
) -> Any:
    """Fit a clone of a scikit-learn classifier.

    Parameters
    ----------
    classifier : classifier or None
        None is a logistic regression. Its result does not depend on the order of the classes.
    seed : int
        The `random_state` of the clone where it has none.
    Z : ndarray of shape (n, d)
    codes : ndarray of int, shape (n,)
        If all are equal, the result is a constant classifier.
    sample_weight : ndarray of shape (n,), optional

    Returns
    -------
    classifier
        For `head_proba` and, in a model's file, `mixda.rules`.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.estimators.utils import head_proba, train_head
    >>> Z, codes = np.array([[-1.0], [1.0]]), np.array([0, 2])
    >>> head_proba(train_head(None, 0, Z, codes), Z, n_classes=3).argmax(axis=1)
    array([0, 2])
    """
    if classifier is None:
        classifier = LogisticRegression(max_iter=1000)
    if not hasattr(classifier, "fit"):
        raise MixdaError(
            f"classifier must be a scikit-learn classifier or None, got {classifier!r}."
        )
    if len(np.unique(codes)) == 1:
        return DummyClassifier(strategy="most_frequent").fit(Z, codes)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    if weights:
        check_takes_weights(classifier, "classifier")
    head = seeded(classifier, seed)
    if type(head) is not LogisticRegression:
        return head.fit(Z, codes, **weights)
    order = CanonicalOrder.of_samples([(Z, codes)], int(codes.max()) + 1)
    return _relabeled(head.fit(Z, order.ranks[codes], **weights), order.classes)


def _relabeled(head: LogisticRegression, names: Codes) -> LogisticRegression:
    """Give the classes of a logistic regression, codes, the `names` at these positions, sorted."""
    classes = names[head.classes_]
    order = np.argsort(classes)
    head.classes_ = classes[order]
    if len(head.coef_) > 1:
        head.coef_, head.intercept_ = head.coef_[order], head.intercept_[order]
    elif order[0] == 1:  # two classes, and the single row is that of the second
        head.coef_, head.intercept_ = -head.coef_, -head.intercept_
    return head


def head_proba(head: Any, Z: Array, n_classes: int) -> Array:
    """Return the class probabilities of a head.

    Parameters
    ----------
    head : classifier
        From `train_head`. It may know only some of the classes, which leaves zero for the others;
        without `predict_proba`, its decisions have a probability of one.
    Z : ndarray of shape (n, d)
    n_classes : int

    Returns
    -------
    ndarray of shape (n, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import LinearSVC
    >>> from mixda.estimators.utils import head_proba, train_head
    >>> Z, codes = np.array([[-1.0], [1.0]]), np.array([0, 2])
    >>> head_proba(train_head(LinearSVC(), 0, Z, codes), Z, n_classes=3)
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    proba = np.zeros((len(Z), n_classes))
    if hasattr(head, "predict_proba"):
        proba[:, head.classes_] = head.predict_proba(Z)
    else:
        proba[np.arange(len(Z)), head.predict(Z)] = 1.0
    return proba


def std_floor(variances: Sequence[Array], largest: float) -> Array:
    r"""Return the smallest standard deviation that a component may have in each feature.

    .. math:: s_{\min, f} = 0.1 \max\Bigl(\bar\sigma_f, \frac{1}{d} \sum_{f'} \bar\sigma_{f'}\Bigr),
              \qquad \bar\sigma_f = \sqrt{\tfrac{1}{N} \sum_\ell \sigma_{\ell f}^2}

    Parameters
    ----------
    variances : sequence of N arrays of shape (d,)
        Of the features, within each domain.
    largest : float
        The largest absolute value in the data; it decides where all features are constant.

    Returns
    -------
    ndarray of shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.estimators.utils import std_floor
    >>> std_floor([np.array([4.0, 0.0])], largest=3.0)
    array([0.2, 0.1])
    """
    spread = np.sqrt(np.mean(np.sort(variances, axis=0), axis=0))  # in any order of the domains
    least = 1e-12 * largest or 1e-6  # all features are constant, or zero
    floor: Array = np.maximum(_FLOOR_SHARE * np.maximum(spread, spread.mean()), least)
    return floor


def _text_columns(X: Any) -> str:
    """Return the names of the columns of a data frame that hold text, for a message."""
    kinds = zip(getattr(X, "columns", ()), getattr(X, "dtypes", ()), strict=False)
    names = [str(name) for name, kind in kinds if getattr(kind, "kind", "O") not in "biufc"]
    return f" in {listed([repr(name) for name in names], 4)}" if names else ""


def _is_missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    if labels.dtype.kind == "f":
        missing: NDArray[np.bool_] = ~np.isfinite(labels)
        return missing
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), dtype=bool)
    return np.array([label is None or label != label for label in labels], dtype=bool)
