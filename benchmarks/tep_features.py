"""Measure what features and classifiers can reach on TEP, without and with target labels.

    python benchmarks/tep_features.py                      # about two minutes on one core
    python benchmarks/tep_features.py --runs 2 4 6 9       # learning curve over the number of runs

Each mode in turn is the target, and the features of each mode are standardized by its own moments.
*source-only* trains on all runs of the other modes and is scored on all runs of the target.
*target-only* trains on the target's own runs and is scored on held-out runs (five folds of whole
runs). *in-mode* is source-only scored on held-out runs of the sources, which needs no target label
and is what features may be selected by. All numbers are accuracies in %, averaged over modes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression

from mixda import datasets
from mixda.benchmark._features import _series, series_statistics
from mixda.benchmark._suites import make_folds

HEADS = {
    "logistic regression": lambda: LogisticRegression(max_iter=1000),
    "LDA": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "extremely randomized trees": lambda: ExtraTreesClassifier(200, random_state=0),
}
COLUMNS = ("source-only", "target-only", "in-mode")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--path", type=Path, help="a file of generate_tep; default: tep_modes_sim")
    parser.add_argument("--runs", type=int, nargs="+", help="numbers of runs, at least 2")
    arguments = parser.parse_args()
    data = datasets.load_tep(path=arguments.path)
    runs = np.unique(data.block)
    print(f"{len(data.X)} runs, {len(runs)} per class and mode")
    report_equal_classes(data)
    if arguments.runs is None:
        print(f"\n| features | classifier | {' | '.join(COLUMNS)} |\n|---|---|---|---|---|")
        for name, Z in feature_sets(data).items():
            for head in HEADS:
                print(f"| {name} | {head} | {scores(data, Z, head)} |", flush=True)
        return
    print(
        f"\n| runs per class and mode | classifier | {' | '.join(COLUMNS)} |\n|---|---|---|---|---|"
    )
    Z = feature_sets(data)["level, amplitude and spectrum"]
    for n in arguments.runs:
        rows = np.isin(data.block, runs[:n])
        for head in HEADS:
            print(f"| {n} | {head} | {scores(data, Z, head, rows)} |", flush=True)


def report_equal_classes(data: datasets.DomainDataset) -> None:
    """Print the faults whose series equal those of normal operation of the same mode and run."""
    normal = {
        (d, r): x
        for d, r, x in zip(
            data.domain[data.y == 0], data.block[data.y == 0], data.X[data.y == 0], strict=True
        )
    }
    equal = [
        f"{data.class_names[y]} in {data.domain_names[d]}"
        for x, y, d, r in zip(data.X, data.y, data.domain, data.block, strict=True)
        if y and (d, r) in normal and np.array_equal(x, normal[d, r])
    ]
    for name in sorted(set(equal)):
        print(f"equal to normal operation: {name}, {equal.count(name)} runs")


def feature_sets(data: datasets.DomainDataset) -> dict[str, np.ndarray]:
    series = _series(data, data.domain)
    statistics = series_statistics(series)
    channels = series.shape[1]
    spread = series.std(axis=2, keepdims=True)
    shape = (series - series.mean(axis=2, keepdims=True)) / np.where(spread > 1e-9, spread, 1.0)
    sets = {
        "shape only, each series normalized": series_statistics(shape)[:, 2 * channels :],
        "level and amplitude": statistics[:, : 2 * channels],
        "level, amplitude and spectrum": statistics,
    }
    return {name: own_scale(Z, data.domain) for name, Z in sets.items()}


def own_scale(Z: np.ndarray, domain: np.ndarray) -> np.ndarray:
    scaled = np.empty_like(Z)
    for k in np.unique(domain):
        part = Z[domain == k]
        std = part.std(axis=0)
        scaled[domain == k] = (part - part.mean(axis=0)) / np.where(std > 1e-9, std, 1.0)
    return scaled


def scores(
    data: datasets.DomainDataset, Z: np.ndarray, head: str, rows: np.ndarray | None = None
) -> str:
    """Return the three accuracies of a classifier, averaged over modes, as cells of a table."""
    rows = np.ones(len(Z), dtype=bool) if rows is None else rows
    found: dict[str, list[float]] = {column: [] for column in COLUMNS}
    for k in range(len(data.domain_names)):
        source, target = rows & (data.domain != k), rows & (data.domain == k)
        model = HEADS[head]().fit(Z[source], data.y[source])
        found["source-only"].append(model.score(Z[target], data.y[target]))
        for train, test in splits(data, target):
            model = HEADS[head]().fit(Z[train], data.y[train])
            found["target-only"].append(model.score(Z[test], data.y[test]))
        train, test = splits(data, source)[0]
        model = HEADS[head]().fit(Z[train], data.y[train])
        found["in-mode"].append(model.score(Z[test], data.y[test]))
    return " | ".join(f"{100 * np.mean(found[column]):.1f}" for column in COLUMNS)


def splits(data: datasets.DomainDataset, rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return masks of training and test rows: five folds of whole runs."""
    fold = np.full(len(rows), -1)
    fold[rows] = make_folds(int(rows.sum()), data.block[rows])
    return [(rows & (fold != k), fold == k) for k in range(fold.max() + 1)]


if __name__ == "__main__":
    main()
