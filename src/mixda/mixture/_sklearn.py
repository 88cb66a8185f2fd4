"""Conversion to and from scikit-learn's ``GaussianMixture``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture


def parameters_from_sklearn(model: GaussianMixture) -> tuple[Array, Array, Array]:
    """Return weights, means and standard deviations of a fitted, axis-aligned model."""
    kind = model.covariance_type
    if kind not in ("diag", "spherical"):
        raise MixdaError(
            f"covariance_type must be 'diag' or 'spherical', got {kind!r}; refit the model with "
            "axis-aligned covariances."
        )
    if not hasattr(model, "means_"):
        raise MixdaError("the GaussianMixture is not fitted; call fit first.")
    variances = np.asarray(model.covariances_)
    if kind == "spherical":
        variances = np.repeat(variances[:, None], model.means_.shape[1], axis=1)
    return model.weights_, model.means_, np.sqrt(variances)


def gaussian_mixture(weights: Array, means: Array, stds: Array) -> GaussianMixture:
    """Return a fitted ``GaussianMixture("diag")`` with these parameters."""
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(len(weights), covariance_type="diag")
    model.weights_, model.means_ = weights.copy(), means.copy()
    model.covariances_ = stds**2
    model.precisions_, model.precisions_cholesky_ = 1.0 / stds**2, 1.0 / stds
    model.n_features_in_ = means.shape[1]
    model.converged_ = True
    model.n_iter_ = 0
    return model
