"""Predictions as a folder of parquet files, one per partition, in threads, processes or on Dask.

Files appear atomically, so a folder that is not complete can be completed later.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.atomic import write_atomically
from mixda._core.errors import MixdaError
from mixda._core.resume import fingerprint
from mixda._version import __version__
from mixda.chunks import RowSource, executor_for
from mixda.tables import Table, pyarrow, write_table
from mixda.workflow._row_predictor import RowPredictor

_MANIFEST = "_mixda.json"
_PARTITIONS_PER_STEP = 16  # between two reports of progress

Tally = NDArray[np.int64]


def is_folder(output: Path) -> bool:
    """Return whether an output is a folder: it exists as one, or its name has no suffix."""
    return output.is_dir() or output.suffix == ""


def predict_folder(
    predictor: RowPredictor,
    table: Table,
    output: Path,
    *,
    n_jobs: int | None,
    client: Any,
    on_rows: Callable[[int, int | None], None] | None,
) -> Tally:
    """Write the predictions of each partition that is not there yet; return the total counts."""
    partitions = table.partitions()
    _open_folder(output, _manifest(predictor, partitions))
    task = _PartitionTask(predictor, output.absolute())
    source = RowSource(tuple(partitions), 0)  # type: ignore[arg-type]
    total: Tally = predictor.empty_tally()
    with executor_for(source, n_jobs, client) as executor:
        for start in range(0, len(partitions), _PARTITIONS_PER_STEP):
            step = range(start, min(start + _PARTITIONS_PER_STEP, len(partitions)))
            total = total + executor.fold(task, _add, step)
            if on_rows is not None:
                on_rows(int(total[0]), table.n_rows)
    return total


@dataclass(frozen=True, eq=False)
class _PartitionTask:
    """Predicts one partition, unless its file is there already."""

    predictor: RowPredictor
    folder: Path

    def __call__(self, index: int, table: Table) -> Tally:
        path = self.folder / f"part-{index:05d}.parquet"
        if path.exists():
            return _count(path, self.predictor)
        tally: Tally = self.predictor.empty_tally()

        def records() -> Any:
            for record, counts in self.predictor.batches(table):
                yield record
                tally[:] += counts

        write_table(path, records())
        return tally


def _add(some: Tally, others: Tally) -> Tally:
    return some + others


def _count(path: Path, predictor: RowPredictor) -> Tally:
    """Return the counts of a file that an earlier run wrote."""
    pc = pyarrow().compute
    table = pyarrow().parquet.read_table(path, columns=["label", "far", "note"])
    labeled = pc.is_valid(table["label"])
    counts = {
        item["values"]: item["counts"] for item in pc.value_counts(table["label"]).to_pylist()
    }
    return np.array(
        [
            len(table),
            len(table) - pc.sum(labeled).as_py(),
            pc.sum(table["far"]).as_py() or 0,
            pc.sum(pc.and_(labeled, pc.is_valid(table["note"]))).as_py(),
            *(counts.get(name, 0) for name in predictor.model.classes.tolist()),
        ],
        dtype=np.int64,
    )


def _manifest(predictor: RowPredictor, partitions: list[Table]) -> dict[str, Any]:
    """Return what identifies a run: the model, the files, and what is written of them."""
    files = {str(file.absolute()): file.stat() for part in partitions for file in part.files}
    model = predictor.model
    probe = np.vstack([d.mixture.means for d in (*model.sources, model.target)])
    weights = np.concatenate([d.mixture.weights for d in (*model.sources, model.target)])
    known = {k: v for k, v in model.settings.items() if k in ("created", "parameters")}
    return {
        "mixda": __version__,
        "model": fingerprint([probe, weights, model.classes], (model.method, repr(known))),
        "files": [[name, stat.st_size, stat.st_mtime_ns] for name, stat in files.items()],
        "partitions": len(partitions),
        "keep": list(predictor.keep),
        "accepts_gaps": predictor.accepts_gaps,
    }


def _open_folder(folder: Path, manifest: dict[str, Any]) -> None:
    """Make the folder, or check that it holds predictions of the same model and data."""
    path = folder / _MANIFEST
    try:
        folder.mkdir(exist_ok=True)
        found = json.loads(path.read_text()) if path.exists() else None
        is_new = found is None and not any(folder.iterdir())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise MixdaError(f"{folder} cannot be used for predictions: {reason}.") from None
    if is_new:
        write_atomically(path, json.dumps(manifest, indent=1).encode())
    elif found != manifest:
        raise MixdaError(
            f"{folder} holds other files, or predictions of another model, other data or other "
            "options; delete it, or choose another folder."
        )
