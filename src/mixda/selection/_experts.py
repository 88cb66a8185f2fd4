"""The experts of AutoMSDA: what they look at, what they are, and how one is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mixda._core.validation import Array
from mixda.estimators.encoders import MLPEncoder
from mixda.estimators.gmm import GMMDaDiL
from mixda.estimators.utils import Source
from mixda.selection.scores import Ids, fitted_clone

RAW = "features as given"
SCALES = {"sources": "common scale", "domain": "own scale"}

_SPACES = ("features", "discriminants", "network")
_STEPS = 10  # of every dictionary; more gave no better averages
_MOST_FEATURES = 200  # more are reduced to principal components
_BATCHES = 400  # of 200 samples in the training of a network, in at most 40 passes


class Expert(NamedTuple):
    """An estimator and the view of the samples that it works on."""

    view: str
    estimator: Any


class Problem(NamedTuple):
    """Samples of all domains in several views, classes as integers (-1: masked), ids."""

    views: dict[str, Array]
    codes: Ids
    ids: Ids

    def rows(self, rows: NDArray[np.intp]) -> Problem:
        """Return some of the rows only."""
        views = {name: Z[rows] for name, Z in self.views.items()}
        return Problem(views, self.codes[rows], self.ids[rows])


def reduction(n: int, d: int, seed: int) -> Any:
    """Return principal components of n samples of d features; None if these are few enough."""
    if d <= _MOST_FEATURES:
        return None
    return PCA(min(_MOST_FEATURES, n - 1), svd_solver="randomized", random_state=seed)


def experts_of(view: str, n: int, seed: int) -> dict[str, Expert]:
    """Return the experts of a view of n source samples, one for each space."""
    return {
        f"{space}, {view}": Expert(
            view,
            GMMDaDiL(
                encoder=_encoder(space, n, seed), scale=None, classifier="product", n_iter=_STEPS
            ),
        )
        for space in _SPACES
    }


def stack(sources: list[Source], target: Array | None) -> Problem:
    """Return the problem of all domains, features as given its only view."""
    samples = [Z for Z, _ in sources]
    codes = [codes for _, codes in sources]
    ids = [np.full(len(Z), k) for k, Z in enumerate(samples)]
    if target is not None:
        samples, codes = [*samples, target], [*codes, np.full(len(target), -1)]
        ids.append(np.full(len(target), -1))
    return Problem({RAW: np.vstack(samples)}, np.concatenate(codes), np.concatenate(ids))


def fit_expert(expert: Expert, same: Mapping[str, Any], Z: Array, y: Any, ids: Ids) -> Any:
    """Fit a clone; with an encoder that fails on too few or flat samples, without it.

    `same` are parameters that all experts get, where they have them and there is a value.
    """
    known = expert.estimator.get_params(deep=False)
    given = {name: value for name, value in same.items() if name in known and value is not None}
    model = clone(expert.estimator).set_params(**given)
    try:
        return fitted_clone(model, Z, y, ids)
    except ValueError:
        if expert.view == RAW or model.encoder is None:
            raise
        return fitted_clone(model.set_params(encoder=None), Z, y, ids)


def _encoder(space: str, n: int, seed: int) -> Any:
    if space == "discriminants":
        return LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    if space == "network":
        passes = min(40, -(-200 * _BATCHES // n))
        return MLPEncoder((64,), max_iter=passes, random_state=seed)
    return None
