"""Accuracy of GMM-DaDiL (MAP) against the iterations of its dictionary: does it unlearn?

    python benchmarks/unlearning.py --out out/unlearning                 # 22 sets, some minutes
    python benchmarks/unlearning.py --out out/unlearning --synthetic 31 62 124 217
    python benchmarks/unlearning.py --out out/unlearning --table

Three optimizers see the same mixtures: the paper's Adam from a random start, the block optimizer
without its stopping rule (``target_fit=0``, the default of earlier versions), and the default. The
synthetic problems are those of `benchmarks/dictionary.py` (2048 features, 31 classes). At most 200
rows per domain and three targets per set, one seed. The target labels are used for scoring only.
The rule's constant was chosen on the synthetic problems. Every cell is a file, so that an
interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import dictionary
import numpy as np
import selection

import mixda
from mixda._core.atomic import write_atomically

VARIANTS: dict[str, dict[str, Any]] = {
    "adam": {"optimizer": "adam", "init": "random", "tol": -1.0},
    "block": {"target_fit": 0.0},
    "default": {},
}
N_ITER = 30


class Mixtures(mixda.GMMDaDiL):
    """GMM-DaDiL that stops at the mixtures of the domains."""

    def _adapt(self, sources, target, rng):
        self.mixtures_ = sources, target
        return sources[0]


def set_problem(name: str, target: int) -> tuple[Any, ...]:
    X, y, ids = selection.load(name, target, 200, 0)
    model = Mixtures(random_state=0).fit(X, y, sample_domain=ids)
    sources, unlabeled = model.mixtures_
    return sources, unlabeled, model.encoder_.transform(X[ids < 0]), y[ids < 0]


def synthetic_problem(K: int) -> tuple[Any, ...]:
    problem = dictionary.make_problem(K, 2048, 31)
    return problem.sources, problem.target, problem.X, problem.y


def curve(sources: Any, target: Any, X: Any, y: Any, options: dict[str, Any]) -> list[float]:
    """Accuracy at the start and after each step."""
    accuracies: list[float] = []

    def score(d: mixda.Dictionary) -> None:
        accuracies.append(float(np.mean(d.target.predict(X) == y)))

    options = {"n_iter": N_ITER, "random_state": 0, **options}
    mixda.learn_dictionary(sources, target, callback=score, **options)
    return accuracies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/unlearning"))
    parser.add_argument("--sets", default=",".join(selection.SETS))
    parser.add_argument("--synthetic", type=int, nargs="*", default=[])
    parser.add_argument("--table", action="store_true", help="only print what is there")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    if not arguments.table:
        if arguments.synthetic:
            cells = [(f"K = {K}", K, 0) for K in arguments.synthetic]
        else:
            names = arguments.sets.split(",")
            cells = [(name, None, t) for name in names for t in targets(name)]
        for name, K, target in cells:
            path = arguments.out / f"{name.replace('*', '')}-{target}.json"
            if not path.exists():
                problem = set_problem(name, target) if K is None else synthetic_problem(K)
                curves = {label: curve(*problem, options) for label, options in VARIANTS.items()}
                cell = {"set": name.replace("*", ""), "target": target, "curves": curves}
                write_atomically(path, json.dumps(cell).encode())
    print_table(arguments.out)


def targets(name: str) -> list[int]:
    n = len(selection.SETS[name]().domain_names)
    spread = np.linspace(0, n - 1, min(selection.MAX_TARGETS, n)).round().astype(int)
    return sorted(set(spread.tolist()))


def print_table(folder: Path) -> None:
    """One row per set: accuracy at the start, the best of the average curve, at its end."""
    cells = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    ends: dict[str, list[list[float]]] = {label: [] for label in VARIANTS}
    print("set".ljust(14), *(f"{label}: start  best   end  drop".rjust(32) for label in VARIANTS))
    for name in dict.fromkeys(cell["set"] for cell in cells):
        row = []
        for label in VARIANTS:
            curves = [cell["curves"][label] for cell in cells if cell["set"] == name]
            # a curve that has stopped stays where it is
            mean = 100 * np.mean([c + c[-1:] * (N_ITER + 1 - len(c)) for c in curves], axis=0)
            ends[label].append([mean[0], mean.max(), mean[-1], mean.max() - mean[-1]])
            row.append(" ".join(f"{x:6.1f}" for x in ends[label][-1]).rjust(32))
        print(name.ljust(14), *row)
    means = (" ".join(f"{x:6.1f}" for x in np.mean(ends[k], axis=0)).rjust(32) for k in VARIANTS)
    print("mean".ljust(14), *means)


if __name__ == "__main__":
    main()
