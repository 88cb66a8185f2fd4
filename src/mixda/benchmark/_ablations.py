"""The ablations of section 4.3 as lists of cells: lighter, better, faster, trajectories.

The first two vary what a dictionary is made of, the third how long it takes, the last follows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixda._core.errors import MixdaError
from mixda.benchmark._cells import Cell
from mixda.benchmark._experiments import N_ITERATIONS
from mixda.datasets import DomainDataset

_METHODS = {
    "lighter": ("GMMDaDiL", "GMMWBT", "DaDiL-R", "WBT"),
    "better": ("GMMDaDiL", "GMMWBT"),
    "faster": ("GMMDaDiL", "DaDiL-R"),
    "trajectories": ("GMMDaDiL", "DaDiL-R"),
}
_PER_CLASS = {"lighter": (1, 2, 3, 4, 6, 8, 10), "faster": (1, 2, 3, 5, 7)}
_BATCHES = (1, 2, 4, 8)  # M of figure 5 (c)
_SPEED_ITERATIONS = 50
_EXPERIMENTS = {"better": "interpolation", "trajectories": "trajectory"}

# lengths of the runs and kinds of steps, which a user may change: faster and trajectories take the
# same kind of steps on both sides, Adam's, as in the paper
_START: dict[tuple[str, str], dict[str, Any]] = {
    ("faster", "GMMDaDiL"): {"optimizer": "adam", "n_iter": _SPEED_ITERATIONS, "tol": -1.0},
    ("faster", "DaDiL-R"): {"n_epochs": _SPEED_ITERATIONS},
    ("trajectories", "GMMDaDiL"): {"optimizer": "adam"},
}
# what makes the ablation what it is
_FIXED: dict[tuple[str, str], dict[str, Any]] = {
    ("better", "GMMDaDiL"): {"n_atoms": 2},
    ("trajectories", "GMMDaDiL"): {"n_atoms": 2, "n_iter": N_ITERATIONS, "tol": -1.0},
    ("trajectories", "DaDiL-R"): {"n_atoms": 2, "n_epochs": N_ITERATIONS},
}
_TRACED = ("batch_size", "beta", "init", "learning_rate", "n_points")  # of DaDiL's dictionary


def ablation_cells(
    base: Cell,
    data: DomainDataset,
    targets: Sequence[str],
    methods: Sequence[str] | None,
    seeds: int,
    settings: Mapping[str, Mapping[str, Any]],
) -> list[Cell]:
    """Return the cells of an ablation on one target, the first of those given.

    Parameters
    ----------
    base : Cell
        Whose suite names the ablation.
    data : DomainDataset
    targets : sequence of str
    methods : sequence of str, optional
        Some of the ablation's own.
    seeds : int
    settings : dict of dict
        By method; they win over those of the ablation. What it varies or needs is refused.
    """
    suite, known = base.suite, _METHODS[base.suite]
    for method in methods or ():
        if method not in known:
            raise MixdaError(f"the ablation {suite!r} compares {', '.join(known)}, not {method}.")
    base = replace(base, target=targets[0], experiment=_EXPERIMENTS.get(suite, base.experiment))
    cells = []
    for method in methods or known:
        given = settings.get(method, {})
        for varied in _variants(suite, method, len(data.class_names)):
            own = {**_FIXED.get((suite, method), {}), **varied}
            _check_free(suite, method, given, own)
            chosen = {**_START.get((suite, method), {}), **given, **own}
            cells += [
                replace(base, method=method, seed=seed, settings=chosen) for seed in range(seeds)
            ]
    return cells


def free_settings(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an ablation's cell that a user chose: other ones, another curve."""
    key = cell["suite"], cell["method"]
    own = {**_START.get(key, {}), **_FIXED.get(key, {})}
    names = {name for varied in _variants(*key, 1) for name in varied}
    return {
        name: value
        for name, value in cell["settings"].items()
        if name not in names and (name not in own or own[name] != value)
    }


def _check_free(suite: str, method: str, given: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    taken = [name for name in given if name in own]
    if (suite, method) == ("trajectories", "DaDiL-R"):
        taken += [name for name in given if name not in (*_TRACED, *taken)]
    if taken:
        raise MixdaError(
            f"the ablation {suite!r} has no use for {method}.{taken[0]}: it sets that itself, or "
            "does without; leave it out."
        )


def _variants(suite: str, method: str, nc: int) -> list[dict[str, Any]]:
    sizes = _PER_CLASS.get(suite)
    if sizes is None:
        return [{}]
    if method.startswith("GMM"):
        return [{"n_components": size} for size in sizes]
    if suite == "lighter":
        return [{"n_points": size * nc} for size in sizes]
    return [
        {"n_points": M * size * nc, "batch_size": size * nc} for size in sizes for M in _BATCHES
    ]
