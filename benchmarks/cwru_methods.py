"""Every method on CWRU: loads 0, 1 and 3 hp, features of an MLP trained on the sources.

    python benchmarks/cwru_methods.py [--seeds 5] [--methods GMM-WBT WJDOT …] [--standardize]

The protocol of the paper: for each target and seed one network is trained on the other two loads
together, all domains are passed through it, and every method adapts the same frozen features. The
target is adapted to and scored on as a whole (transductive); no target label is read before
scoring. The network sees the magnitudes of the spectra as they are; with ``--standardize`` each
frequency is standardised by the sources' moments, on which the sources alone are nearly perfect
already. Needs MIXDA_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

import mixda
from mixda.estimators import DomainEncoder

METHODS: dict[str, Any] = {
    "source only": mixda.SourceOnly(),
    "M3SDA": lambda: mixda.M3SDA(),
    "LtC-MSDA": lambda: mixda.LtCMSDA(),
    "KD3A": lambda: mixda.KD3A(),
    "Co-MDA": lambda: mixda.CoMDA(),
    "JCPOT": mixda.JCPOT(),
    "WJDOT": mixda.WJDOT(),
    "WBT": mixda.WBT(),
    "DaDiL-R": mixda.DaDiL("R"),
    "DaDiL-E": mixda.DaDiL("E"),
    "GMM-OTDA": mixda.GMMOTDA(),
    "GMM-WBT": mixda.GMMWBT(),
    "GMM-DaDiL": mixda.GMMDaDiL(),
    "target only": mixda.TargetOnly(),
}
PAPER = {  # average accuracy of the paper's table; loads 1, 2 and 3 there
    "source only": 74.31, "M3SDA": 62.57, "LtC-MSDA": 79.52, "KD3A": 77.90, "Co-MDA": 64.93,
    "WJDOT": 99.60, "WBT": 92.30, "DaDiL-R": 99.90, "DaDiL-E": 92.33, "GMM-WBT": 99.98,
    "GMM-DaDiL": 99.98,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--standardize", action="store_true", help="frequencies to unit variance")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    data = mixda.datasets.load_cwru()
    scores: dict[str, list[list[float]]] = {m: [] for m in arguments.methods}
    seconds = dict.fromkeys(arguments.methods, 0.0)
    for name in data.domain_names:
        task = data.as_task(name)
        rows: dict[str, list[float]] = {m: [] for m in arguments.methods}
        for seed in range(arguments.seeds):
            source = task.sample_domain >= 0
            encoder = DomainEncoder("sources" if arguments.standardize else None, "mlp", seed)
            Z = encoder.fit_transform(task.X, task.y[source], task.sample_domain)
            for method in arguments.methods:
                start = time.perf_counter()
                rows[method].append(accuracy(method, Z, task, seed))
                seconds[method] += time.perf_counter() - start
        for method, row in rows.items():
            scores[method].append(row)
            print(f"  {name} {method}: {np.round(row, 4).tolist()}", flush=True)
    print_table(data.domain_names, scores, seconds, arguments.seeds)


def accuracy(method: str, Z: np.ndarray, task: Any, seed: int) -> float:
    model = METHODS[method]
    model = clone(model() if callable(model) else model).set_params(random_state=seed)
    more = {"target_labels": task.y_target} if method == "target only" else {}
    model.fit(Z, task.y, sample_domain=task.sample_domain, **more)
    return float(model.score(Z[task.sample_domain < 0], task.y_target))


def print_table(names: Any, scores: Any, seconds: Any, n_seeds: int) -> None:
    print(f"\nAccuracy in %, mean ± std over {n_seeds} seeds; target by its speed.\n")
    print("| method | " + " | ".join(names) + " | average | paper's average | s per fit |")
    print("|---|" + "---|" * (len(names) + 3))
    for method, rows in scores.items():
        cells = [f"{100 * np.mean(r):.2f} ± {100 * np.std(r):.2f}" for r in rows]
        paper = f"{PAPER[method]:.2f}" if method in PAPER else "–"
        fit = seconds[method] / (n_seeds * len(rows))
        print(
            f"| {method} | {' | '.join(cells)} | {100 * np.mean(rows):.2f} | {paper} | {fit:.1f} |"
        )


if __name__ == "__main__":
    main()
