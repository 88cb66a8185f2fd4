"""Missing values in the samples of an estimator: conditional means under a mixture of all rows.

Methods that decide by the posterior of a mixture keep the gaps and integrate them out. All others
see samples whose gaps are filled, in `fit` and in `predict` alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array, Ids
from mixda.em import fit_mixture
from mixda.estimators.encoders import sample_moments
from mixda.mixture import MIN_COMPONENT_ROWS, Mixture

_MAX_ROWS = 5000
_MAX_COMPONENTS = 8
_ROWS_PER_COMPONENT = 20
_MIN_STD = 0.1  # of a standardized feature, as in `mixda.estimators.utils.std_floor`


def fit_imputer(X: Array, sample_weight: Array | None = None) -> Mixture:
    r"""Return a mixture of the rows of all domains, whose conditional means fill the gaps of `X`.

    It is fitted by expectation-maximization with the gaps integrated out, without looking at
    classes or domains.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        With NaN for missing values.
    sample_weight : ndarray of shape (n,), optional
        Numbers of repetitions of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.estimators._gaps import fit_imputer
    >>> X = np.repeat([[0.0, 1.0], [9.0, 7.0]], 20, axis=0)
    >>> X[:, 0] += np.tile([-0.1, 0.1], 20)
    >>> X[-1, 1] = np.nan
    >>> fit_imputer(X).impute([[9.0, np.nan]]).round(6)
    array([[9., 7.]])
    """
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if empty.size:
        raise MixdaError(
            f"feature {empty[0]} of X has no value in any row; leave it out, or fill it."
        )
    center, spread = sample_moments(X, sample_weight)
    rows = Z = (X - center) / spread
    weight = sample_weight
    if len(Z) > _MAX_ROWS:
        some = np.sort(np.random.default_rng(0).choice(len(Z), _MAX_ROWS, replace=False))
        if not empty_features(Z[some]).any():
            rows, weight = Z[some], None if weight is None else weight[some]
    n_rows = len(rows) if weight is None else max(len(rows), int(weight.sum()))
    n_components = max(1, min(_MAX_COMPONENTS, n_rows // _ROWS_PER_COMPONENT))
    mixture = fit_mixture(
        rows,
        n_components,
        min_std=_MIN_STD,
        sample_weight=weight,
        tol=1e-3,
        min_component_rows=MIN_COMPONENT_ROWS,  # because model files hold this mixture
        allow_exposed_rows=True,
        random_state=0,
    )
    return mixture.affine(-center / spread, 1.0 / spread)


def fill_empty_features(X: Array, ids: Ids, imputer: Mixture) -> Array:
    """Fill only the features that have no value at all in a domain; keep all other gaps."""
    filled: Array = X.copy()
    for k in np.unique(ids):
        rows = ids == k
        empty = empty_features(X[rows])
        if empty.any():
            filled[rows] = fill_features(X[rows], empty, imputer)
    return filled


def empty_features(X: Array) -> NDArray[np.bool_]:
    """Return which features have no value in any row."""
    return np.asarray(np.isnan(X).all(axis=0))


def fill_features(X: Array, features: NDArray[np.bool_], imputer: Mixture) -> Array:
    """Fill the gaps of some features only."""
    filled: Array = X.copy()
    filled[:, features] = imputer.impute(X)[:, features]
    return filled
