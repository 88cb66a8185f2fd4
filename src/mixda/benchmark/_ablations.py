"""The cells of the ablations of section 4.3: lighter, better, faster, trajectories.

The first two vary the dictionary, the third measures time, the last records the iterations.
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

# Defaults that a user may change. As in the paper, faster and trajectories use Adam for both
# methods.
_DEFAULTS: dict[tuple[str, str], dict[str, Any]] = {
    ("faster", "GMMDaDiL"): {"optimizer": "adam", "n_iter": _SPEED_ITERATIONS, "tol": -1.0},
    ("faster", "DaDiL-R"): {"n_epochs": _SPEED_ITERATIONS},
    ("trajectories", "GMMDaDiL"): {"optimizer": "adam"},
}
# Settings that define the ablation
_FIXED: dict[tuple[str, str], dict[str, Any]] = {
    ("better", "GMMDaDiL"): {"n_atoms": 2},
    ("trajectories", "GMMDaDiL"): {"n_atoms": 2, "n_iter": N_ITERATIONS, "tol": -1.0},
    ("trajectories", "DaDiL-R"): {"n_atoms": 2, "n_epochs": N_ITERATIONS},
}
_TRACED = (
    "batch_size",
    "beta",
    "init",
    "learning_rate",
    "n_points",
)  # settings of DaDiL that trajectories use


def ablation_cells(
    base: Cell,
    data: DomainDataset,
    targets: Sequence[str],
    methods: Sequence[str] | None,
    seeds: int,
    settings: Mapping[str, Mapping[str, Any]],
) -> list[Cell]:
    """Return the cells of an ablation on the first of the targets.

    Parameters
    ----------
    base : Cell
        Its suite is the name of the ablation.
    data : DomainDataset
    targets : sequence of str
    methods : sequence of str, optional
        A subset of the methods of the ablation.
    seeds : int
    settings : dict of dict
        By method; they override the defaults of the ablation, but not what it varies or fixes.
    """
    suite, known = base.suite, _METHODS[base.suite]
    for method in methods or ():
        if method not in known:
            raise MixdaError(
                f"methods of the ablation {suite!r} must be among {', '.join(known)}, got {method}."
            )
    base = replace(base, target=targets[0], experiment=_EXPERIMENTS.get(suite, base.experiment))
    cells = []
    for method in methods or known:
        given = settings.get(method, {})
        for varied in _variants(suite, method, len(data.class_names)):
            own = {**_FIXED.get((suite, method), {}), **varied}
            _check_free(suite, method, given, own)
            chosen = {**_DEFAULTS.get((suite, method), {}), **given, **own}
            cells += [
                replace(base, method=method, seed=seed, settings=chosen) for seed in range(seeds)
            ]
    return cells


def free_settings(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a cell of an ablation that the user chose."""
    key = cell["suite"], cell["method"]
    own = {**_DEFAULTS.get(key, {}), **_FIXED.get(key, {})}
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
            f"settings: the ablation {suite!r} sets {method}.{taken[0]} itself or does not use it. "
            "Omit it."
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
