"""Train the TEP backbone with target labels, as a reference for adaptation on each mode.

    mixda bench run tep --methods SourceOnly,TargetOnly,GMMDaDiL --out out/tep
    python benchmarks/tep_ceiling.py out/tep           # six networks, about 20 minutes on one core

The network is trained on all sources *and* the labeled runs of four folds of the target. A
logistic regression on its features is scored on the first fold, next to the results of the run on
the same fold. The result is a reference for this network and this data file only. The classes that
are listed at the end are selected by their recall on the same fold. Each mode is written to a JSON
file in the folder of the run, so an interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from mixda import datasets
from mixda._core.atomic import write_atomically
from mixda.benchmark import read_records
from mixda.benchmark._features import _fcn, _series
from mixda.benchmark._suites import make_folds

CEILING = "network with target labels"
METHODS = ("SourceOnly", "GMMDaDiL", "TargetOnly", CEILING)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="output folder of mixda bench run tep")
    folder = parser.parse_args().folder
    warnings.simplefilter("ignore", ConvergenceWarning)
    data = datasets.load_tep()
    confusions = {
        (r["cell"]["target"], r["cell"]["method"]): np.array(r["confusion"])
        for r in read_records(folder)
        if r["cell"]["suite"] == "tep" and r["cell"]["seed"] == 0 and "confusion" in r
    }
    for target in data.domain_names:
        confusions[target, CEILING] = ceiling(folder / f"ceiling-{target}.json", data, target)
    print("| accuracy in %, first fold | " + " | ".join(data.domain_names) + " | average |")
    print("|---" * (len(data.domain_names) + 2) + "|")
    for method in METHODS:
        each = [100 * accuracy(confusions[target, method]) for target in data.domain_names]
        print(f"| {method} | " + " | ".join(f"{x:.1f}" for x in each) + f" | {np.mean(each):.1f} |")
    counts = {m: sum(confusions[t, m] for t in data.domain_names) for m in METHODS}
    recall = np.diag(counts[CEILING]) / counts[CEILING].sum(axis=1)
    lost = recall < 0.5
    names = [name for name, is_lost in zip(data.class_names, lost, strict=True) if is_lost]
    print(f"\nThe {CEILING} is right on fewer than half of the runs of {', '.join(names)}.")
    for method, count in counts.items():
        rest = np.diag(count)[~lost].sum() / count[~lost].sum()
        print(f"{method} on the other {(~lost).sum()} classes: {100 * rest:.1f}")


def ceiling(path: Path, data: datasets.DomainDataset, target: str) -> np.ndarray:
    """Return the confusion matrix on the first target fold of a network trained on the others."""
    if path.is_file():
        return np.array(json.loads(path.read_bytes()))
    in_target = data.domain == data.domain_index(target)
    test = np.zeros(len(data.X), dtype=bool)
    test[in_target] = make_folds(int(in_target.sum()), data.block[in_target]) == 0
    Z, _ = _fcn(_series(data, data.domain), data.y, ~test)
    predicted = LogisticRegression(max_iter=1000).fit(Z[~test], data.y[~test]).predict(Z[test])
    nc = len(data.class_names)
    counts = np.bincount(data.y[test] * nc + predicted, minlength=nc**2).reshape(nc, nc)
    write_atomically(path, json.dumps(counts.tolist()).encode())
    return counts


def accuracy(confusion: np.ndarray) -> float:
    return float(np.trace(confusion) / confusion.sum())


if __name__ == "__main__":
    main()
