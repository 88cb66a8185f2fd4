"""A summary of the rows that a model was adapted to, so that new rows can be compared with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.quantiles import smooth_quantiles
from mixda._core.typing import Array
from mixda._core.validation import check_array, check_number, check_positive_int
from mixda.mixture import frozen

_MAX_LEVELS = 19  # quantiles per column: 5 %, 10 %, … 95 %
_MIN_ROWS_PER_BIN = 5  # between two quantiles, so that no quantile is the value of one row


@dataclass(frozen=True, eq=False)
class Reference:
    """Statistics of the target that a model was adapted to, without rows.

    Attributes
    ----------
    n_rows : int
    quantiles : ndarray of shape (d, q)
        Of each column, in the units of the user; from 5 % to 95 %. Each averages the five nearest
        values, so that none is the value of a row.
    shares_below : ndarray of shape (d, q)
        Share of the rows that are less than or equal to each quantile.
    means, stds : ndarray of shape (d,)
    class_counts : ndarray of shape (nc,)
        Number of rows that the model assigned to each class.
    n_outliers : int
        In rows that the mixture of the target was not fitted to (cross-validation).
    confidence, confidence_std : float
        Mean and standard deviation of the largest probability of each row.
    """

    n_rows: int
    quantiles: Array
    shares_below: Array
    means: Array
    stds: Array
    class_counts: Array
    n_outliers: int
    confidence: float
    confidence_std: float

    def __post_init__(self) -> None:
        check_positive_int(self.n_rows, "n_rows")
        for name, ndim in (("quantiles", 2), ("shares_below", 2), ("means", 1), ("stds", 1)):
            object.__setattr__(self, name, frozen(check_array(getattr(self, name), name, ndim)))
        counts = frozen(check_array(self.class_counts, "class_counts", 1))
        object.__setattr__(self, "class_counts", counts)
        for name in ("n_outliers", "confidence", "confidence_std"):
            check_number(getattr(self, name), name)
        d = len(self.means)
        same = self.quantiles.shape == self.shares_below.shape and self.stds.shape == (d,)
        if not same or len(self.quantiles) != d:
            raise MixdaError("the parts of the reference do not fit together.")

    @classmethod
    def from_rows(cls, X: Array, proba: Array, n_outliers: int) -> Reference:
        """Summarize rows, their class probabilities and the number of outliers among them.

        Examples
        --------
        >>> import numpy as np
        >>> from mixda.model import Reference
        >>> X = np.arange(20.0)[:, None]
        >>> reference = Reference.from_rows(X, np.ones((20, 1)), 0)
        >>> reference.quantiles, reference.shares_below
        (array([[ 5., 10., 14.]]), array([[0.3 , 0.55, 0.75]]))
        """
        n_bins = int(np.clip(len(X) // _MIN_ROWS_PER_BIN, 2, _MAX_LEVELS + 1))
        quantiles = smooth_quantiles(X, np.arange(1, n_bins) / n_bins).T
        confidence = proba.max(axis=1)
        return cls(
            n_rows=len(X),
            quantiles=quantiles,
            shares_below=shares_below(X, quantiles),
            means=X.mean(axis=0),
            stds=X.std(axis=0),
            class_counts=np.bincount(proba.argmax(axis=1), minlength=proba.shape[1]).astype(float),
            n_outliers=n_outliers,
            confidence=float(confidence.mean()),
            confidence_std=float(confidence.std()),
        )


def shares_below(X: Array, edges: Array) -> Array:
    """Return the share of the rows of `X` (n, d) at or below each of the edges (d, q)."""
    ordered = np.sort(X, axis=0).T
    columns = zip(ordered, edges, strict=True)
    below = [np.searchsorted(column, own, side="right") for column, own in columns]
    return np.asarray(below, dtype=float).reshape(edges.shape) / len(X)
