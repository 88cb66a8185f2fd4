"""Execution of a cell: read the task, fit, predict, and only then read the labels to score.

A cell runs on one thread, so that times are comparable and workers do not compete for cores.
"""

from __future__ import annotations

import io
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from mixda._core.atomic import write_atomically
from mixda.benchmark._cells import Cell, Record, is_done, write_error, write_result
from mixda.benchmark._entries import (
    METHODS,
    head_predictions,
    library_of,
    make_method,
    train_mixture_head,
)
from mixda.benchmark._experiments import interpolate, trace
from mixda.benchmark._features import (
    FoldTask,
    is_whole,
    make_features,
    read_accuracy,
    read_labels,
    read_task,
    write_features,
)
from mixda.datasets import DomainDataset

Predictions = dict[str, NDArray[Any]]


def prepare_features(
    path: Path, data: DomainDataset, target: str, features: str, seed: int = 0
) -> str | None:
    """Write the feature file of a target; return an error message or None."""
    if is_whole(path):  # by a concurrent run
        return None
    try:
        with _one_thread("torch" if features == "fcn" else "numpy"):
            write_features(path, make_features(data, target, features, seed))
    except Exception as error:  # must not stop the other targets
        return _error_message(error)
    return None


def run_cell(folder: Path, cell: Cell, features: Path, provenance: Record) -> str | None:
    """Run a cell and write its file; return an error message or None."""
    if is_done(folder, cell):  # by a concurrent run
        return None
    try:
        with _one_thread(library_of(cell.method)):
            outcome = _EXPERIMENTS[cell.experiment](folder, cell, features)
    except Exception as error:  # must not stop the other cells
        reason = _error_message(error)
        record_failure(folder, cell, reason, provenance)
        return reason
    outcome["backbone_accuracy"] = read_accuracy(features)
    write_result(folder, cell, {**outcome, **_dated(provenance)})
    return None


def record_failure(folder: Path, cell: Cell, reason: str, provenance: Record) -> None:
    """Write the error message of a failed cell."""
    write_error(folder, cell, {"error": reason, **_dated(provenance)})


def predict_cell(
    cell: Cell, task: FoldTask, oracle_labels: Any = None
) -> tuple[Predictions, Record]:
    """Fit a method and predict the held-out fold, by MAP and, for mixtures, by a head.

    Parameters
    ----------
    cell : Cell
    task : FoldTask
        It has no target labels; `oracle_labels` are only for the upper bound.

    Returns
    -------
    predictions : dict
        ``main``, and ``head`` for methods that return a labeled mixture.
    outcome : dict
        Seconds of the fit (wall and CPU), the head, the prediction and dictionary learning, and the
        ``size`` of the result: components of a mixture or points of a point cloud.

    Examples
    --------
    >>> from mixda.benchmark import Cell
    >>> from mixda.benchmark._features import FoldTask
    >>> from mixda.benchmark._worker import predict_cell
    >>> task = FoldTask([[0.0], [1.0], [0.1]], [0, 1, -1], [1, 1, -2], [[0.9]])
    >>> cell = Cell("own", "own", "raw", None, "", "plant", "SourceOnly", 0)
    >>> predict_cell(cell, task)[0]
    {'main': array([1])}
    """
    model = make_method(cell.method, cell.settings, cell.seed)
    extra = {"target_labels": oracle_labels} if METHODS[cell.method].oracle else {}
    began, began_cpu = time.perf_counter(), time.thread_time()
    model.fit(task.X, task.y, sample_domain=task.sample_domain, **extra)
    fitted = time.perf_counter()
    outcome: Record = {"fit_seconds": fitted - began}
    # CPU time is steadier on a busy machine; per thread, as a Dask worker may run several cells
    outcome["fit_cpu_seconds"] = time.thread_time() - began_cpu
    predictions = {"main": model.predict(task.X_test)}
    outcome["predict_seconds"] = time.perf_counter() - fitted
    if cell.head is not None and METHODS[cell.method].mixture:
        began = time.perf_counter()
        trained = train_mixture_head(model, cell.head, cell.seed)
        predictions["head"] = head_predictions(model, trained, task.X_test)
        outcome["head_seconds"] = time.perf_counter() - began
    if hasattr(model, "dictionary_"):
        outcome["learn_seconds"] = float(model.dictionary_.history.seconds[-1])
    size = _size(model)
    if size is not None:
        outcome["size"] = size
    return predictions, outcome


def _dated(provenance: Record) -> Record:
    return {**provenance, "date": datetime.now(timezone.utc).isoformat(timespec="seconds")}


@contextmanager
def _one_thread(library: str) -> Iterator[None]:
    """Limit numerical libraries to one thread and silence warnings.

    The limit applies only to libraries that are already loaded, so load them first; loading must
    not count as time of the method either.
    """
    from threadpoolctl import threadpool_limits

    import_module(library)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _size(model: Any) -> int | None:
    if hasattr(model, "dictionary_"):
        return int(model.dictionary_.atoms[0].n_components)
    learned = getattr(model, "target_mixture_", getattr(model, "transported_", None))
    return None if learned is None else int(learned.n_components)


def _accuracy(folder: Path, cell: Cell, features: Path) -> Record:
    task = read_task(features, cell.seed)
    oracle = read_labels(features, cell.seed)[0] if METHODS[cell.method].oracle else None
    reset = _reset_peak()
    predictions, outcome = predict_cell(cell, task, oracle)
    memory = {"peak_memory_mb": _peak_memory(), "peak_memory_of": reset}
    truth = read_labels(features, cell.seed)[1]
    scores: Record = {}
    for name, predicted in predictions.items():
        prefix = "" if name == "main" else f"{name}_"
        scores[f"{prefix}accuracy"] = float(np.mean(predicted == truth))
        scores[f"{prefix}confusion"] = _confusion(truth, predicted)
    sizes = {"n_sources": int((task.sample_domain >= 0).sum())}
    sizes |= {"n_adapt": int((task.sample_domain < 0).sum()), "n_test": len(truth)}
    return {**scores, **outcome, **memory, **sizes}


def _interpolation(folder: Path, cell: Cell, features: Path) -> Record:
    curve = interpolate(cell, read_task(features, cell.seed))
    truth = read_labels(features, cell.seed)[1]
    outcome: Record = {"lambda0": curve.lambda0}
    outcome["curve"] = [float(np.mean(predicted == truth)) for predicted in curve.predictions]
    outcome["accuracy"] = float(np.mean(curve.own == truth))
    outcome["own_lambda0"] = curve.own_lambda0
    return outcome


def _trajectory(folder: Path, cell: Cell, features: Path) -> Record:
    arrays, seconds = trace(cell, read_task(features, cell.seed))
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    write_atomically(folder / "cells" / f"{cell.key}.npz", buffer.getvalue())
    return {"arrays": f"{cell.key}.npz", "fit_seconds": seconds}


_EXPERIMENTS: dict[str, Callable[[Path, Cell, Path], Record]] = {
    "accuracy": _accuracy,
    "interpolation": _interpolation,
    "trajectory": _trajectory,
}


def _confusion(truth: NDArray[Any], predicted: NDArray[Any]) -> list[list[int]]:
    """Return counts with true classes as rows and predicted classes as columns."""
    n_classes = int(max(truth.max(), predicted.max())) + 1
    counts: list[list[int]] = confusion_matrix(
        truth, predicted, labels=np.arange(n_classes)
    ).tolist()
    return counts


def _reset_peak() -> str:
    """Reset the peak of resident memory where Linux allows it; describe what is measured."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return "resident memory of the worker since it started"
    return "resident memory of the worker during the cell, libraries included"


def _peak_memory() -> float | None:
    """Return the peak resident memory of this process in MB."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(float(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    scale = 1024**2 if os.uname().sysname == "Darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / scale


def _error_message(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    kind = type(error).__name__
    return lines[0] if isinstance(error, ValueError) and lines else f"{kind}: {' '.join(lines)}"
