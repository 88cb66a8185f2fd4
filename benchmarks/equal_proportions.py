"""Measure how much GMM-DaDiL loses to class proportions on Office-31.

    python benchmarks/equal_proportions.py                 # about a minute on one core

The unlabeled part of each target is used as it is, and then with at most eight images per class.
The second uses target labels to thin the target, so it is a diagnosis and not a method. Features,
fold and decisions are those of ``mixda bench run office31 --seeds 1``.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from mixda import datasets
from mixda.benchmark import Cell
from mixda.benchmark._features import (
    FoldTask,
    make_features,
    read_labels,
    read_task,
    write_features,
)
from mixda.benchmark._worker import predict_cell

PER_CLASS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", nargs="+", default=["amazon", "dslr", "webcam"])
    warnings.simplefilter("ignore")
    data = datasets.load_office31(features="efficientnet")
    print("| target | images per class | adapted to | MAP | classifier on samples |")
    print("|---|---|---|---|---|")
    for target in parser.parse_args().targets:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "features.npz"
            write_features(path, make_features(data, target, "standardized-domain"))
            task = read_task(path, 0)
            known, truth = read_labels(path, 0)
        counts = np.bincount(known)
        for name, given in (("all", task), (f"at most {PER_CLASS}", thinned(task, known))):
            cell = Cell("office31", "office31", "", None, "", target, "GMMDaDiL", 0)
            predictions, _ = predict_cell(cell, given)
            cells = [f"{100 * np.mean(predictions[k] == truth):.1f}" for k in ("main", "head")]
            print(
                f"| {target} | {counts.min()} to {counts.max()} | {name} | {' | '.join(cells)} |",
                flush=True,
            )


def thinned(task: FoldTask, labels: np.ndarray) -> FoldTask:
    """Keep at most `PER_CLASS` target rows of each class."""
    rng = np.random.default_rng(0)
    kept = task.sample_domain >= 0
    rows = np.flatnonzero(~kept)
    for c in np.unique(labels):
        own = rows[labels == c]
        kept[rng.choice(own, min(PER_CLASS, len(own)), replace=False)] = True
    return replace(task, X=task.X[kept], y=task.y[kept], sample_domain=task.sample_domain[kept])


if __name__ == "__main__":
    main()
