"""The mixtures that a model of `AutoMSDA` keeps for its report and for outliers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from mixda.chunks import Domains
from mixda.estimators import GMMDaDiL
from mixda.mixture import MIN_COMPONENT_ROWS
from mixda.selection._members import without_rare_classes
from mixda.selection._trials import Problem

_STEPS = 10
_MAX_ROWS = 20_000  # of each domain in the start of its mixture, if all rows are streamed
_MAX_FEATURES = 200  # more are reduced to principal components


def fit_display(
    problem: Problem, classes: NDArray[Any], streamed: Domains | None, **options: Any
) -> GMMDaDiL:
    """Fit a GMM-DaDiL in the features, which describes the domains but does not decide.

    Parameters
    ----------
    problem : Problem
    classes : ndarray of shape (nc,)
        In the order of the codes of `problem`.
    streamed : Domains or None
        Domains with more rows than those of `problem`; the mixtures are fitted to all of them.
    **options
        `checkpoint`, `random_state`, `verbose`.
    """
    X = problem.views.domains
    n_features, encoder = X[0].shape[1], None
    if n_features > _MAX_FEATURES:
        n_axes = min(_MAX_FEATURES, sum(len(part) for part in X[:-1]) - 1)
        encoder = PCA(n_axes, svd_solver="randomized", random_state=options["random_state"])
    display = GMMDaDiL(
        encoder=encoder,
        scale="sources",
        classifier="map",
        n_iter=_STEPS,
        min_component_rows=MIN_COMPONENT_ROWS,  # because model files hold these mixtures
        preset="paper",
        **options,
    )
    if streamed is not None:
        return display.fit(streamed.thinned(_MAX_ROWS))
    codes = np.concatenate([*problem.codes, np.zeros(len(X[-1]), dtype=int)])
    ids = np.repeat([*range(len(X) - 1), -1], [len(part) for part in X])
    kept = np.ones(len(ids), dtype=bool)
    kept[ids >= 0] = without_rare_classes(ids[ids >= 0], codes[ids >= 0])
    return display.fit(np.vstack(X)[kept], classes[codes[kept]], sample_domain=ids[kept])
