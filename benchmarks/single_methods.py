"""Single mixture methods: accuracy of their defaults, and stability, also that of AutoMSDA.

    python benchmarks/single_methods.py --out out/single                              # all sets
    python benchmarks/single_methods.py --out out/stability --sets heart,surf --repeats 8

Sets are those of `benchmarks/selection.py`, with fewer rows; the first and the last domain of each
serve as the target. No target label is read before scoring. The defaults were chosen on
DEVELOPMENT. "before" are the defaults before they were chosen here: features on the scale of the
sources, equal masses of the classes, a random initialization.

With --repeats, the fit to the first target of every set is repeated with other seeds and the same
rows, and (half as often) with one seed after 5 % of the rows were left out at random. Each cell
(set, target) is one JSON file, so an interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from selection import CONFIRMATION, DEVELOPMENT, SETS, load, skewed, two_largest
from sklearn.linear_model import LogisticRegression

import mixda
from mixda._core.atomic import write_atomically
from mixda.estimators import DomainEncoder

METHODS = {"WBT": mixda.GMMWBT, "DaDiL": mixda.GMMDaDiL, "OTDA": mixda.GMMOTDA}
_BEFORE = {"preset": "paper", "scale": "sources", "classifier": "product"}
SETTINGS = {"before": _BEFORE, "default": {}}
REPEATED = [
    *(
        (m, *how)
        for how in (("before", "seeds"), ("default", "seeds"), ("default", "rows"))
        for m in METHODS
    ),
    ("AutoMSDA", "default", "seeds"),
    ("AutoMSDA", "default", "rows"),
]
VIEWS = {"logistic, common": "sources", "logistic, own": "domain"}
_LEFT_OUT = 0.05


def targets(name: str) -> list[int]:
    n = len(SETS[name]().domain_names)
    return [0, n - 1]


def make(method: str, setting: str, seed: int):
    options = SETTINGS[setting]
    if method == "OTDA" and setting == "before":
        options = {**options, "classifier": "map"}
    kind = mixda.AutoMSDA if method == "AutoMSDA" else METHODS[method]
    return kind(random_state=seed, **options)


def logistic(X, y, ids, scale: str) -> float:
    source = ids >= 0
    encoder = DomainEncoder(scale, None)
    Z = encoder.fit_transform(X, np.unique(y[source], return_inverse=True)[1], ids)
    model = LogisticRegression(max_iter=500).fit(Z[source], y[source])
    return float(model.score(Z[~source], y[~source]))


def run_cell(path: Path, name: str, target: int, rows: int, repeats: int) -> None:
    warnings.simplefilter("ignore")
    X, y, ids = load(name, target, rows, 0)
    goal = ids < 0
    cell: dict = {"set": name, "target": target, "accuracy": {}, "90:10": {}, "seconds": {}}
    kept = np.flatnonzero(goal)[
        skewed(y[goal], two_largest(y[goal]), 0.9, np.random.default_rng([0, 3]))
    ]
    index = np.concatenate([np.flatnonzero(~goal), kept])
    for view, scale in VIEWS.items():
        cell["accuracy"][view] = logistic(X, y, ids, scale)
        cell["90:10"][view] = logistic(X[index], y[index], ids[index], scale)
    for method in METHODS:
        for setting in SETTINGS:
            key, start = f"{method} {setting}", time.process_time()
            model = make(method, setting, 0).fit(X, y, sample_domain=ids)
            cell["seconds"][key] = time.process_time() - start
            cell["accuracy"][key] = model.score(X[goal], y[goal])
            model.fit(X[index], y[index], sample_domain=ids[index])
            cell["90:10"][key] = model.score(X[kept], y[kept])
    if repeats:
        cell["repeats"] = {
            f"{method} {setting}, {what}": repeat(method, setting, what, X, y, ids, repeats)
            for method, setting, what in REPEATED
        }
    write_atomically(path, json.dumps(cell).encode())


def repeat(method: str, setting: str, what: str, X, y, ids, repeats: int) -> list[float]:
    """Accuracies on the target with other seeds, or with other rows of all domains left out."""
    goal, scores = ids < 0, []
    for k in range(repeats if what == "seeds" else repeats // 2):
        kept = np.ones(len(X), dtype=bool)
        if what == "rows":
            kept = np.random.default_rng([k, 9]).random(len(X)) > _LEFT_OUT
        model = make(method, setting, k if what == "seeds" else 0)
        model.fit(X[kept], y[kept], sample_domain=ids[kept])
        scores.append(model.score(X[goal], y[goal]))
    return scores


def accuracy_table(cells: list[dict], part: str) -> str:
    names = [*VIEWS, *(f"{m} {s}" for m in METHODS for s in SETTINGS)]
    lines = [_row(["set", "targets", *names]), "|" + "---|" * (len(names) + 2)]
    for label, group in (("development", DEVELOPMENT), ("confirmation", CONFIRMATION)):
        averages = []
        for name in group:
            own = [c[part] for c in cells if c["set"] == name]
            if own:
                averages.append([100.0 * np.mean([c[n] for c in own]) for n in names])
                lines.append(_row([name, len(own), *averages[-1]]))
        if averages:
            average = np.mean(averages, axis=0)
            lines.append(_row([f"**{label}**", f"{len(averages)} sets", *average]))
    return "\n".join(lines)


def stability_table(cells: list[dict]) -> str:
    cells = [c for c in cells if "repeats" in c]
    kinds = list(cells[0]["repeats"])
    lines = [_row(["set", *kinds]), "|" + "---|" * (len(kinds) + 1)]
    spread = [[100.0 * np.std(c["repeats"][kind], ddof=1) for kind in kinds] for c in cells]
    lines += [_row([c["set"], *row]) for c, row in zip(cells, spread, strict=True)]
    lines.append(_row(["**mean**", *np.mean(spread, axis=0)]))
    lines.append(_row(["**largest**", *np.max(spread, axis=0)]))
    return "\n".join(lines)


def seconds_line(cells: list[dict]) -> str:
    keys = [f"{m} {s}" for m in METHODS for s in SETTINGS]
    shown = [f"{k} {np.sum([c['seconds'][k] for c in cells]):.1f}" for k in keys]
    return f"processor seconds of {len(cells)} fits: " + ", ".join(shown)


def _row(values: list) -> str:
    shown = [f"{v:.1f}" if isinstance(v, float) else str(v) for v in values]
    return "| " + " | ".join(shown) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/single"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=150, help="at most, per domain")
    parser.add_argument("--repeats", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    jobs, paths = [], []
    for name in arguments.sets.split(","):
        for place, target in enumerate(targets(name)):
            path = arguments.out / f"{name.replace('*', '')}-{target}.json"
            paths.append(path)
            if not path.exists():
                repeats = arguments.repeats if place == 0 else 0
                jobs.append((path, name, target, arguments.rows, repeats))
    Parallel(arguments.jobs)(delayed(run_cell)(*job) for job in jobs)
    cells = [json.loads(path.read_bytes()) for path in paths]
    print(accuracy_table(cells, "accuracy"))
    print("\ntargets with 90 % of one class:\n\n" + accuracy_table(cells, "90:10"))
    if arguments.repeats:
        print("\nstandard deviation, in points:\n\n" + stability_table(cells))
    print("\n" + seconds_line(cells))


if __name__ == "__main__":
    main()
