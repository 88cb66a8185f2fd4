"""What lets a killed dictionary learning go on: its state as arrays, in a `ResumeFile`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixda._core.resume import Folder, ResumeFile, fingerprint, open_kept
from mixda._core.validation import Floats
from mixda._version import __version__
from mixda.dictionary._engine import Engine, Reconstruction, State
from mixda.dictionary._optimizers import Optimizer
from mixda.mixture import Mixture
from mixda.transport import SparsePlan

_SECONDS_BETWEEN = 10.0


class Checkpoint:
    """State, optimizer memory, plans and history of one problem, under one path.

    A file of another problem (other domains, other settings) is refused with a sentence.
    """

    def __init__(self, path: str | Path, arrays: Sequence[Floats], settings: Any) -> None:
        self._file = ResumeFile(path, arrays, settings)
        self._written = time.monotonic()

    def restore(
        self, engine: Engine, state: State, optimizer: Optimizer
    ) -> tuple[State, list[dict[str, Any]], list[Reconstruction] | None]:
        """Return where the last run stopped, or the given start if there is no file."""
        found = self._file.load(lambda saved: self._resume(engine, optimizer, saved))
        return (state, [], None) if found is None else found

    def _resume(
        self, engine: Engine, optimizer: Optimizer, saved: dict[str, Any]
    ) -> tuple[State, list[dict[str, Any]], list[Reconstruction] | None]:
        names = State.__annotations__
        state = State(**{name: saved[f"state_{name}"] for name in names})
        optimizer.memory = {
            name.removeprefix("memory_"): array
            for name, array in saved.items()
            if name.startswith("memory_")
        }
        kept = [name for name in saved if name.startswith("row_")]
        rows = [
            {name.removeprefix("row_"): saved[name][i] for name in kept}
            for i in range(len(saved["row_loss"]))
        ]
        return state, rows, _unpack(engine, saved)

    def write(
        self,
        state: State,
        rows: Sequence[dict[str, Any]],
        found: Sequence[Reconstruction],
        optimizer: Optimizer,
    ) -> None:
        """Save, unless that was done a few seconds ago."""
        if time.monotonic() - self._written < _SECONDS_BETWEEN:
            return
        arrays: dict[str, Any] = {
            f"state_{name}": getattr(state, name) for name in State.__annotations__
        }
        arrays |= {f"memory_{name}": array for name, array in optimizer.memory.items()}
        arrays |= {f"row_{name}": np.stack([row[name] for row in rows]) for name in rows[0]}
        arrays |= _pack(found)
        self._file.save(arrays)
        self._written = time.monotonic()

    def remove(self) -> None:
        """Delete the file: the learning has ended."""
        self._file.remove()


def _pack(found: Sequence[Reconstruction]) -> dict[str, Any]:
    """Keep what the next evaluation starts from: alignments and potentials of the plans."""
    packed: dict[str, Any] = {"columns": np.stack([r.columns for r in found])}
    for l, r in enumerate(found):
        if r.plan.potentials is not None:
            packed[f"u_{l}"], packed[f"v_{l}"] = r.plan.potentials
    return packed


def _unpack(engine: Engine, saved: dict[str, Any]) -> list[Reconstruction]:
    K, C = engine.n_components, engine.n_atoms
    rows, mass = np.arange(K), np.full(K, 1.0 / K)
    nothing = np.empty(0)
    found = []
    for l, columns in enumerate(saved["columns"]):
        maps = [SparsePlan(rows, columns[:, c] - c * K, mass, (K, K), True) for c in range(C)]
        potentials = (saved[f"u_{l}"], saved[f"v_{l}"]) if f"u_{l}" in saved else None
        plan = SparsePlan(rows[:0], rows[:0], nothing, (K, K), False, potentials)
        found.append(Reconstruction(maps, columns, nothing, plan, 0.0, 0.0, *[nothing] * 3))
    return found


def kept_dictionary(folder: Folder, mixtures: Sequence[Mixture], settings: Any) -> Path:
    """Return where the learning of a dictionary notes its state, a name for every problem."""
    arrays = [a for m in mixtures for a in (m.weights, m.means, m.stds, m.labels) if a is not None]
    return open_kept(folder) / f"{fingerprint(arrays, (settings, __version__))}.dictionary"
