"""AutoMSDA where the target has few rows.

    python benchmarks/few_rows.py --out out/few-rows --jobs 2

The first and the last domain of each set of `benchmarks/selection.py` are the targets. Methods get
5, 10, 20 or 40 of their rows, without labels, and are scored on these and other rows of the target.
Each cell (set, target, seed, number of rows) is one JSON file, so an interrupted run can be
resumed.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from selection import (
    COMMON,
    GIVEN,
    GROUPS,
    OWN,
    SCORED,
    SETS,
    Judged,
    ablations,
    by_domain,
    load,
    mean,
    option_parser,
    parse,
    rivals,
)

from mixda._core.atomic import write_atomically
from mixda.estimators import standardization

SIZES = (5, 10, 20, 40)


def run_cell(path: Path, name: str, target: int, seed: int, n: int, rows: int) -> None:
    warnings.simplefilter("ignore")
    X, y, ids = load(name, target, rows, seed, SCORED)
    source, own = np.flatnonzero(ids >= 0), np.flatnonzero(ids < 0)
    given = np.random.default_rng([seed, 5]).permutation(np.flatnonzero(ids == GIVEN))[:n]
    common = standardization(X[source])
    taught = {COMMON: common(X[source]), OWN: by_domain(X[source], ids[source])}
    asked = {COMMON: common(X[own]), OWN: standardization(X[given])(X[own])}
    scores = {}
    for rival, (view, model) in rivals(len(np.unique(y[source])), seed).items():
        if not rival.startswith("boosted"):  # not on all sets
            predicted = model.fit(taught[view], y[source]).predict(asked[view])
            scores[rival] = float(np.mean(predicted == y[own]))
    seen = np.concatenate([source, np.sort(given)])
    auto = Judged(random_state=seed).fit(X[seen], y[seen], sample_domain=ids[seen])
    scores["pick"] = ablations(auto, X[own], y[own])["ablations"]["pick"]
    scores["AutoMSDA"] = float(np.mean(auto.predict(X[own]) == y[own]))
    trust = auto.trust_
    cell = {"set": name, "scores": scores, "trust": [trust.low, trust.accuracy, trust.high]}
    write_atomically(path, json.dumps(cell).encode())


def table(cells: list[dict]) -> str:
    """Means over sets by number of rows; error and coverage of the estimate over tasks."""
    names = list(cells[0]["scores"])
    columns = [*names, "error of the estimate", "80 % interval holds", "withheld"]
    lines = ["| sets | rows | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for label, group in GROUPS.items():
        for n in SIZES:
            own = [c for c in cells if c["set"] in group and c["n"] == n]
            sets = list(dict.fromkeys(c["set"] for c in own))
            if not own:
                continue
            scores = [
                mean(mean(c["scores"][m] for c in own if c["set"] == s) / 100.0 for s in sets)
                for m in names
            ]
            known = [
                (*c["trust"], c["scores"]["AutoMSDA"]) for c in own if c["trust"][1] is not None
            ]
            error = mean(abs(p - truth) for _, p, _, truth in known)
            inside = mean(low <= truth <= high for low, _, high, truth in known)
            shown = " | ".join(f"{s:.1f}" for s in [*scores, error])
            lines.append(
                f"| {label} | {n} | {shown} | {inside:.0f} % "
                f"| {len(own) - len(known)} of {len(own)} |"
            )
    return "\n".join(lines)


def main() -> None:
    options = parse(option_parser(__doc__, "out/few-rows"))
    todo = []
    for seed in range(options.seeds):
        for name in options.sets.split(","):
            last = len(SETS[name]().domain_names) - 1
            for target in (0, last):
                for n in SIZES:
                    path = options.out / f"{name.strip('*')}-{target}-{seed}-{n}.json"
                    todo.append((path, name, target, seed, n, options.rows))
    open_cells = [cell for cell in todo if not cell[0].exists()]
    Parallel(n_jobs=options.jobs, verbose=5)(delayed(run_cell)(*cell) for cell in open_cells)
    print(table([json.loads(path.read_text()) | {"n": n} for path, *_, n, _ in todo]))


if __name__ == "__main__":
    main()
