"""Balanced against unbalanced plans, where the target's class proportions differ from the sources'.

    python benchmarks/unbalanced.py --out out/unbalanced
    python benchmarks/unbalanced.py --out out/unbalanced-common --scale sources
    python benchmarks/unbalanced.py --out out/unbalanced --sets "gas*,surf" --seeds 1

GMM-WBT and GMM-DaDiL decide by MAP, with balanced exact plans and with the unbalanced plans of
`PLANS`. Logistic regression on the common scale is the reference. Targets are taken as they are
("natural") and with 90:10 and 50:50 rows of their two largest classes. The first and the last
domain of each set are targets. `--scale sources` standardizes all domains with the sources, as for
the reference; by default each domain has its own scale (unless a source lacks a class). Each cell
(set, target, seed) is one JSON file, so an interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from selection import SETS, load, two_largest, variants
from sklearn.linear_model import LogisticRegression

import mixda
from mixda._core.atomic import write_atomically
from mixda.estimators import standardization

CHOSEN = ("gas*", "heart", "adult*", "cwru", "digits4", "surf", "electricity", "youtube", "cstr")
KINDS = ("natural", "90:10", "50:50")
METHODS = ("GMMWBT", "GMMDaDiL")
PLANS = {
    "balanced": {},
    "reg_m=0.3": {"reg": 0.01, "reg_m": 0.3},
    "reg_m=0.03": {"reg": 0.01, "reg_m": 0.03},
}
REFERENCE = "logistic"


def main() -> None:
    """Run the missing cells and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/unbalanced"))
    parser.add_argument("--sets", default=",".join(CHOSEN))
    parser.add_argument("--scale", choices=("auto", "sources"), default="auto")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=150, help="Per domain, at most.")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    cells = []
    for name in arguments.sets.split(","):
        for target in (0, len(SETS[name]().domain_names) - 1):
            for seed in range(arguments.seeds):
                path = arguments.out / f"{name.rstrip('*')}-{target}-{seed}.json"
                if not path.exists():
                    cell = run_cell(name, target, seed, arguments)
                    write_atomically(path, json.dumps(cell).encode())
                cells.append(json.loads(path.read_text()))
    print_tables(cells)


def run_cell(name: str, target: int, seed: int, arguments: argparse.Namespace) -> dict[str, object]:
    """Accuracies of all methods on the target as it is and on parts of it."""
    start = time.process_time()
    X, y, ids = load(name, target, arguments.rows, seed)
    source, goal = np.flatnonzero(ids >= 0), np.flatnonzero(ids < 0)
    cell: dict[str, object] = {"set": name, "target": target, "seed": seed}
    for kind, kept in variants(y[goal], two_largest(y[goal]), seed).items():
        index = np.concatenate([source, goal[kept]])
        scores = accuracies(X[index], y[index], ids[index], seed, arguments.scale)
        cell[kind] = {"n": len(kept), **scores}
    cell["seconds"] = time.process_time() - start
    print(name, target, seed, f"{cell['seconds']:.0f} s", flush=True)
    return cell


def accuracies(
    X: np.ndarray, y: np.ndarray, ids: np.ndarray, seed: int, scale: str
) -> dict[str, float]:
    """Share of correct predictions on the target, by method and plan."""
    source, goal = ids >= 0, ids < 0
    scaled = standardization(X[source])(X)
    model = LogisticRegression(max_iter=500).fit(scaled[source], y[source])
    scores = {REFERENCE: float(np.mean(model.predict(scaled[goal]) == y[goal]))}
    for method in METHODS:
        for plan, options in PLANS.items():
            options = {**options, "classifier": "map", "scale": scale, "random_state": seed}
            model = getattr(mixda, method)(**options)
            predicted = model.fit(X, y, sample_domain=ids).predict(X[goal])
            scores[f"{method}, {plan}"] = float(np.mean(predicted == y[goal]))
    return scores


def print_tables(cells: list[dict]) -> None:
    """Print accuracies in percent: averages over sets for each kind of target, then every set."""
    names = [REFERENCE, *(f"{method}, {plan}" for method in METHODS for plan in PLANS)]
    print("\n" + "; ".join(f"{i}: {name}" for i, name in enumerate(names)))
    sets = list(dict.fromkeys(cell["set"] for cell in cells))
    for kind in KINDS:
        rows = {}
        for name in sets:
            own = [cell[kind] for cell in cells if cell["set"] == name]
            rows[name] = [100.0 * np.mean([scores[n] for scores in own]) for n in names]
        sizes = [cell[kind]["n"] for cell in cells]
        print(f"\n{kind} (targets of {min(sizes)} to {max(sizes)} rows)")
        rows["average"] = np.mean(list(rows.values()), axis=0)
        for name, values in rows.items():
            print(f"{name.rstrip('*'):12s}" + "".join(f"{value:7.1f}" for value in values))
    print(f"\nprocessor time: {sum(cell['seconds'] for cell in cells):.0f} s")


if __name__ == "__main__":
    main()
