"""The ablations that are not just a fit with other settings: interpolation and trajectories.

Both take a task without target labels and return predictions or positions.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixda._core.typing import Array
from mixda.barycenters import barycenter
from mixda.benchmark._cells import Cell
from mixda.benchmark._entries import make_method
from mixda.benchmark._features import FoldTask
from mixda.dictionary import Dictionary
from mixda.empirical import learn_empirical_dictionary
from mixda.transport import barycentric_map, transport_plan

_N_LAMBDA = 11
N_ITERATIONS = 50
_SNAPSHOTS = (0, 1, 2, 4, 7, 11, 16, 22, 29, 38, N_ITERATIONS)


class Curve(NamedTuple):
    """Predictions along λ0 and those of the method itself."""

    lambda0: list[float]
    predictions: list[NDArray[Any]]
    own: NDArray[Any]
    own_lambda0: float | None  # the learned λ*, if there is one


def interpolate(cell: Cell, task: FoldTask) -> Curve:
    r"""Classify the held-out fold by :math:`\mathcal{B}((\lambda_0, 1-\lambda_0), \cdot)`.

    GMM-DaDiL interpolates its two learned atoms; GMM-WBT its sources, whose barycenter is then
    transported to the target. With more than two sources, the others share
    :math:`1 - \lambda_0` equally.
    """
    model = make_method(cell.method, cell.settings, cell.seed)
    model.fit(task.X, task.y, sample_domain=task.sample_domain)
    Z = model.encoder_.transform(task.X_test)
    grid = np.linspace(0.0, 1.0, _N_LAMBDA)
    if cell.method == "GMMDaDiL":
        mixtures = [model.dictionary_.reconstruct([x, 1.0 - x]) for x in grid]
        own_lambda0 = float(model.dictionary_.coordinates[-1, 0])
    else:
        mixtures = [_transported(model, x) for x in grid]
        own_lambda0 = None
    predictions = [mixture.predict(Z) for mixture in mixtures]
    return Curve(grid.tolist(), predictions, model.predict(task.X_test), own_lambda0)


def trace(cell: Cell, task: FoldTask) -> tuple[dict[str, Array], float]:
    """Record the means of two atoms and of the target reconstruction over the iterations.

    Returns
    -------
    arrays : dict
        ``iterations`` (T,), ``atoms`` (T, 2, K, f), ``reconstruction`` (T, K, f), ``labels``
        (T, K) of the reconstruction, and ``target``, the unlabeled samples adapted to.
    seconds : float
    """
    began = time.perf_counter()
    kept = _trace_mixtures(cell, task) if cell.method == "GMMDaDiL" else _trace_points(cell, task)
    arrays = {
        "iterations": np.array(_SNAPSHOTS[: len(kept)]),
        "atoms": np.stack([[atom.means for atom in d.atoms] for d in kept]),
        "reconstruction": np.stack([d.target.means for d in kept]),
        "labels": np.stack([np.asarray(d.target.labels).argmax(axis=1) for d in kept]),
        "target": task.X[task.sample_domain < 0],
    }
    return arrays, time.perf_counter() - began


def _transported(model: Any, lambda0: float) -> Any:
    sources = model.source_mixtures_
    others = max(len(sources) - 1, 1)
    weights = np.array([lambda0, *[(1.0 - lambda0) / others] * (len(sources) - 1)])
    moving = barycenter(sources, weights / weights.sum(), beta=model.beta).mixture
    plan = transport_plan(moving, model.unlabeled_mixture_).plan
    return barycentric_map(moving, model.unlabeled_mixture_, plan)


def _trace_mixtures(cell: Cell, task: FoldTask) -> list[Dictionary]:
    seen: list[Dictionary] = []  # the initialization, then one per iteration
    model = make_method("GMMDaDiL", cell.settings, cell.seed)
    model.set_params(callback=lambda dictionary: seen.append(dictionary))
    model.fit(task.X, task.y, sample_domain=task.sample_domain)
    return [seen[min(i, len(seen) - 1)] for i in _SNAPSHOTS]


def _trace_points(cell: Cell, task: FoldTask) -> list[Dictionary]:
    """Run DaDiL up to each snapshot; with the same seed, short runs are the start of long ones."""
    sources = [
        (task.X[task.sample_domain == k], task.y[task.sample_domain == k])
        for k in np.unique(task.sample_domain[task.sample_domain >= 0])
    ]
    target = task.X[task.sample_domain < 0]
    nc = int(task.y.max()) + 1
    options = {"n_points": 20 * nc, "batch_size": 10 * nc, **cell.settings}
    kept = []
    for i in _SNAPSHOTS:
        options["n_epochs"] = max(i, 1)
        frozen = {} if i else {"learning_rate": 1e-12}  # the initialization
        kept.append(
            learn_empirical_dictionary(
                sources, target, nc, random_state=cell.seed, **{**options, **frozen}
            )
        )
    return kept
