"""Missing values in the samples of an estimator: conditional means under a mixture of all rows.

Methods that decide by the posterior of a mixture keep the gaps and integrate them out. All others
see samples whose gaps are filled, in `fit` and in `predict` alike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.validation import Array
from mixda.em import fit_labeled_mixture
from mixda.estimators.encoders import Ids, sample_moments
from mixda.estimators.utils import Codes
from mixda.mixture import Mixture

_MIN_STD = 0.1  # of a standardized feature, as in `mixda.estimators.utils.std_floor`


def fit_imputer(X: Array, codes: Codes, ids: Ids) -> Mixture:
    r"""Return a mixture whose conditional means fill the gaps of `X`.

    It has one Gaussian per class for the sources and one per class for the target, whose classes
    are those that the sources' Gaussians predict. Each is the closed-form fit to the observed
    values. A feature without any value in a class has the moments of all rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        With NaN for missing values.
    codes : ndarray of int, shape (number of source rows,)
        Classes of the source rows.
    ids : ndarray of int, shape (n,)
        Negative for target rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.estimators._gaps import fit_imputer
    >>> X = np.array([[0.0, 1.0], [0.2, 1.2], [9.0, 7.0], [9.1, np.nan]])
    >>> fit_imputer(X, np.array([0, 0, 1, 1]), np.zeros(4, int)).impute([[9.0, np.nan]])
    array([[9., 7.]])
    """
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if empty.size:
        raise MixdaError(
            f"feature {empty[0]} of X has no value in any row; leave it out, or fill it."
        )
    center, spread = sample_moments(X)
    Z, is_source, n_classes = (X - center) / spread, ids >= 0, int(codes.max()) + 1
    groups = np.full(len(X), n_classes)
    groups[is_source] = codes
    mixture = _gaussian_per_group(Z, groups)
    if not is_source.all():
        predicted = mixture.responsibilities(Z[~is_source])[:, :-1].argmax(axis=1)
        groups[~is_source] = n_classes + np.unique(codes)[predicted]
        mixture = _gaussian_per_group(Z, groups)
    return mixture.affine(-center / spread, 1.0 / spread)


def fill_empty_features(X: Array, ids: Ids, imputer: Mixture) -> Array:
    """Fill only the features that have no value at all in a domain; keep all other gaps."""
    filled: Array = X.copy()
    for k in np.unique(ids):
        rows = ids == k
        empty = np.isnan(X[rows]).all(axis=0)
        if empty.any():
            filled[np.ix_(rows, empty)] = imputer.impute(X[rows])[:, empty]
    return filled


def _gaussian_per_group(Z: Array, groups: Codes) -> Mixture:
    mixture = fit_labeled_mixture(Z, groups, 1, min_std=_MIN_STD, random_state=0)
    return replace(mixture, labels=None, classes=None, info={})
