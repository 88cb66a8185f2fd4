"""Saving the state of dictionary learning, so that an interrupted run can be resumed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mixda._core.resume import ResumeFile, fingerprint, open_cache_folder
from mixda._core.typing import Floats, PathArgument
from mixda._version import __version__
from mixda.dictionary._dictionary import Record
from mixda.dictionary._state import Aligned, AtomProducts, State, WarmStart
from mixda.mixture import Mixture

_SECONDS_BETWEEN = 10.0
# field of State → array in the file
_STATE_KEYS = {
    "points": "state_points",
    "labels": "state_labels",
    "coordinates": "state_coordinates",
    "weights": "state_masses",
}


class Updated(NamedTuple):
    """Inner products of the atoms that were updated, not computed: `AtomProducts` without labels.

    They are saved because computing them anew would change the last digits of a resumed run.
    """

    own: Floats
    cross: Floats
    n_updates: int

    @classmethod
    def of(cls, products: AtomProducts | None) -> Updated | None:
        """Return what has to be saved, if anything."""
        if products is None or products.n_updates == 0:
            return None
        return cls(products.points, products.domain_points, products.n_updates)


@dataclass(frozen=True)
class Snapshot:
    """Where a run stands between two steps: all that is needed to resume it."""

    state: State
    records: list[Record]
    warm_start: list[WarmStart]
    memory: dict[str, Floats]  # of the optimizer
    products: Updated | None  # None: to be computed from the points
    best: Aligned  # of the lowest loss so far


class Checkpoint:
    """Snapshots of one problem, under one path.

    A file that belongs to other domains or settings raises an error.
    """

    def __init__(self, path: str | Path, arrays: Iterable[Any], settings: Any) -> None:
        self._file = ResumeFile(path, arrays, settings)
        self._written = time.monotonic()

    def load(self) -> Snapshot | None:
        """Return where the last run stopped, or None if there is no file."""
        return self._file.load(_unpack)

    def save(self, snapshot: Snapshot) -> None:
        """Write a snapshot, unless that was done a few seconds ago."""
        if time.monotonic() - self._written >= _SECONDS_BETWEEN:
            self._file.save(_pack(snapshot))
            self._written = time.monotonic()

    def remove(self) -> None:
        """Delete the file because learning has ended."""
        self._file.remove()


def _pack(snapshot: Snapshot) -> dict[str, Any]:
    packed = {key: getattr(snapshot.state, name) for name, key in _STATE_KEYS.items()}
    packed |= {f"memory_{name}": array for name, array in snapshot.memory.items()}
    for name in (field.name for field in fields(Record)):
        column = [getattr(record, name) for record in snapshot.records]
        if column[0] is not None:
            packed[f"row_{name}"] = np.stack(column)
    packed["columns"] = np.stack([start.columns for start in snapshot.warm_start])
    for l, start in enumerate(snapshot.warm_start):
        if start.potentials is not None:
            packed[f"u_{l}"], packed[f"v_{l}"] = start.potentials
    packed["best_columns"] = snapshot.best.columns
    for name in _STATE_KEYS:
        packed[f"best_{name}"] = getattr(snapshot.best.state, name)
    if snapshot.products is not None:
        for name, value in snapshot.products._asdict().items():
            packed[f"products_{name}"] = np.asarray(value)
    return packed


def _unpack(saved: dict[str, Any]) -> Snapshot:
    def starting_with(prefix: str) -> dict[str, Any]:
        return {k.removeprefix(prefix): v for k, v in saved.items() if k.startswith(prefix)}

    rows = starting_with("row_")
    records = [
        Record(**{name: column[i] for name, column in rows.items()})
        for i in range(len(rows["loss"]))
    ]
    warm_start = [
        WarmStart(columns, (saved[f"u_{l}"], saved[f"v_{l}"]) if f"u_{l}" in saved else None)
        for l, columns in enumerate(saved["columns"])
    ]
    state = State(**{name: saved[key] for name, key in _STATE_KEYS.items()})
    updated = starting_with("products_")
    products = None
    if updated:
        products = Updated(updated["own"], updated["cross"], int(updated["n_updates"]))
    best_state = State(**{name: saved[f"best_{name}"] for name in _STATE_KEYS})
    best = Aligned(best_state, saved["best_columns"])
    return Snapshot(state, records, warm_start, starting_with("memory_"), products, best)


def dictionary_checkpoint(folder: PathArgument, mixtures: Sequence[Mixture], settings: Any) -> Path:
    """Return the checkpoint file of a problem in a cache folder; every problem has its own."""
    arrays = [a for m in mixtures for a in (m.weights, m.means, m.stds, m.labels) if a is not None]
    return open_cache_folder(folder) / f"{fingerprint(arrays, (settings, __version__))}.dictionary"
