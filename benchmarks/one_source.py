"""AutoMSDA with a single source, where no source can be left out.

    python benchmarks/one_source.py --out out/one-source --jobs 2

Each domain of each set of `benchmarks/selection.py` in turn is the target of the one before it. A
second task changes class proportions only: one half of the domain is the source, and the target is
a part of the other half, nine rows of its largest class to one of the next. No target label is read
before scoring. Each cell (set, target, seed) is one JSON file, so an interrupted run can be
resumed.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from selection import (
    GROUPS,
    SETS,
    Judged,
    load,
    mean,
    option_parser,
    parse,
    rivals,
    skewed,
    two_largest,
)

from mixda._core.atomic import write_atomically
from mixda.estimators import standardization

TASKS = {"another domain": "another", "the same domain, 90:10": "same"}


def run_cell(path: Path, name: str, target: int, seed: int, rows: int) -> None:
    warnings.simplefilter("ignore")
    X, y, ids = load(name, target, rows, seed)
    domains = np.unique(ids[ids >= 0])
    nearest = domains[domains < target][-1] if (domains < target).any() else domains[-1]
    own, source = np.flatnonzero(ids < 0), np.flatnonzero(ids == nearest)
    rng = np.random.default_rng([seed, 7])
    first, second = np.array_split(rng.permutation(own), 2)
    second = second[skewed(y[second], two_largest(y[own]), 0.9, rng)]
    cell = {
        "set": name,
        "another": judge(X[source], y[source], X[own], y[own], seed),
        "same": judge(X[first], y[first], X[second], y[second], seed),
    }
    write_atomically(path, json.dumps(cell).encode())


def judge(X, y, T, truth, seed) -> dict[str, float]:
    """Accuracies on T of what is taught by X and y."""
    scores = {}
    common = standardization(X)
    for name, (_, model) in rivals(len(np.unique(y)), seed).items():
        scale = common if name.endswith("common") else standardization(T)
        scores[name] = float(np.mean(model.fit(common(X), y).predict(scale(T)) == truth))
    labels = np.concatenate([y, np.full(len(T), y[0])])  # those of the target are never read
    auto = Judged(random_state=seed)
    auto.fit(np.vstack([X, T]), labels, sample_domain=np.repeat([0, -1], [len(X), len(T)]))
    scores["AutoMSDA"] = float(np.mean(auto.predict(T) == truth))
    assert auto.trust_.accuracy is None  # nothing can be promised
    return scores


def table(cells: list[dict]) -> str:
    names = [n for n in cells[0]["another"] if not n.startswith("boosted")]
    lines = ["| sets | target | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for label, group in GROUPS.items():
        sets = [n for n in group if any(c["set"] == n for c in cells)]
        for task, key in TASKS.items():
            scores = [
                mean(mean(c[key][n] for c in cells if c["set"] == own) / 100.0 for own in sets)
                for n in names
            ]
            shown = " | ".join(f"{s:.1f}" for s in scores)
            lines.append(f"| {len(sets)} {label} sets | {task} | {shown} |")
    return "\n".join(lines)


def against_logistic(cells: list[dict]) -> list[str]:
    """Gains over logistic regression, and on how many targets it is better by two points."""
    lines = []
    for task, key in TASKS.items():
        gains = [c[key]["AutoMSDA"] - c[key]["logistic, common"] for c in cells]
        lines.append(
            f"- {task}: AutoMSDA is {mean(gains):+.1f} points above logistic regression on the "
            f"common scale, and more than 2 points below it on "
            f"{np.mean(np.array(gains) < -0.02):.0%} of {len(gains)} targets"
        )
    return lines


def main() -> None:
    options = parse(option_parser(__doc__, "out/one-source"))
    todo = [
        (options.out / f"{name.strip('*')}-{target}-{seed}.json", name, target, seed, options.rows)
        for seed in range(options.seeds)
        for name in options.sets.split(",")
        for target in range(len(SETS[name]().domain_names))
    ]
    open_cells = [cell for cell in todo if not cell[0].exists()]
    Parallel(n_jobs=options.jobs, verbose=5)(delayed(run_cell)(*cell) for cell in open_cells)
    cells = [json.loads(path.read_text()) for path, *_ in todo]
    print(table(cells) + "\n\n" + "\n".join(against_logistic(cells)))


if __name__ == "__main__":
    main()
