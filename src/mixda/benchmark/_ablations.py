"""The ablations of section 4.3 as lists of cells: lighter, better, faster, trajectories.

The first two vary what a dictionary is made of, the third how long it takes, the last follows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixda.benchmark._cells import Cell
from mixda.datasets import DomainDataset

_METHODS = {
    "lighter": ("GMMDaDiL", "GMMWBT", "DaDiL-R", "WBT"),
    "better": ("GMMDaDiL", "GMMWBT"),
    "faster": ("GMMDaDiL", "DaDiL-R"),
    "trajectories": ("GMMDaDiL", "DaDiL-R"),
}
_PER_CLASS = {"lighter": (1, 2, 3, 4, 6, 8, 10), "faster": (1, 2, 3, 5, 7)}
_BATCHES = (1, 2, 4, 8)  # M of figure 5 (c)
_ITERATIONS = 50


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
        By method; they win over those of the ablation, except what it varies.
    """
    known = _METHODS[base.suite]
    for method in methods or ():
        if method not in known:
            raise ValueError(
                f"the ablation {base.suite!r} compares {', '.join(known)}, not {method}."
            )
    nc = len(data.class_names)
    experiment = {"better": "interpolation", "trajectories": "trajectory"}.get(base.suite)
    cells = []
    for method in methods or known:
        for varied in _variants(base.suite, method, nc):
            chosen = {**_FIXED.get((base.suite, method), {}), **settings.get(method, {}), **varied}
            cells += [
                replace(
                    base,
                    target=targets[0],
                    method=method,
                    seed=seed,
                    settings=chosen,
                    experiment=experiment or base.experiment,
                )
                for seed in range(seeds)
            ]
    return cells


# faster and trajectories take the same kind of steps on both sides: Adam's, as in the paper
_FIXED: dict[tuple[str, str], dict[str, Any]] = {
    ("faster", "GMMDaDiL"): {"optimizer": "adam", "n_iter": _ITERATIONS, "tol": -1.0},
    ("faster", "DaDiL-R"): {"n_epochs": _ITERATIONS},
    ("trajectories", "GMMDaDiL"): {"optimizer": "adam"},
}


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
