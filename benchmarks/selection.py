"""Evaluate AutoMSDA on all domains of all sets: accuracy, regret, accuracy estimate, cost.

    python benchmarks/selection.py --out out/selection            # five seeds, about an hour
    python benchmarks/selection.py --out out/selection --seeds 1 --sets scanners,cwru

Each cell (set, target, seed) is written to a JSON file when it is finished, so an interrupted run
can be resumed. `mixda.selection` was designed on the sets in DEVELOPMENT. Seed 0 of the other sets
was seen before the last constants were fixed; the other seeds were not. All methods get the raw
features. Source-only is a logistic regression on features standardized with the sources.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

import mixda
from mixda import datasets
from mixda._core.atomic import write_atomically
from mixda.estimators import log_linear_pool

SETS = {
    "scanners": lambda: datasets.load_digit_scanners(random_state=0),
    "cwru": datasets.load_cwru,
    "tep": lambda: datasets.load_tep("moments"),
    "surf": lambda: datasets.load_office_caltech("surf"),
    "cstr": datasets.load_cstr,
    "cwru-nine": lambda: datasets.load_cwru(loads=(1, 2, 3)),
    "efficientnet": lambda: datasets.load_office_caltech("efficientnet"),
    "inception": lambda: datasets.load_office_caltech("inception"),
    "gas": datasets.load_gas_drift,
    "digits4": datasets.load_digits4,
}
DEVELOPMENT = ("scanners", "cwru", "tep", "surf", "cstr")


class Judged(mixda.AutoMSDA):
    """AutoMSDA that also fits the candidates it does not select, to compute the regret."""

    def _keep(self, experts, members, problem, power):
        voters = super()._keep(experts, members, problem, power)
        left = {name: e for name, e in experts.items() if name not in self.experts_}
        named = problem._replace(codes=self.classes_[problem.codes])
        fitted = {**self.experts_, **self._fit_experts(left, named, "fitting the others")}
        rules = dict(zip(fitted, self._voters(experts, fitted), strict=True))
        self.candidate_rules_ = {
            candidate: log_linear_pool([rules[name] for name in names])
            for candidate, names in self._committees(experts).items()
        }
        return voters


def run_cell(path: Path, name: str, target: int, seed: int) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    data = SETS[name]()
    task = data.as_task(target)
    given = (task.X, task.y, task.sample_domain)
    cell = {"set": name, "target": data.domain_names[target], "seed": seed}
    for label, model in {
        "SourceOnly": mixda.SourceOnly(random_state=seed),
        "GMMWBT": mixda.GMMWBT(random_state=seed),
        "GMMDaDiL": mixda.GMMDaDiL(random_state=seed),
        "GMMDaDiL own scale, lda": mixda.GMMDaDiL(scale="domain", encoder="lda", random_state=seed),
    }.items():
        start = time.process_time()
        model.fit(*given)
        cell[label] = model.score(task.X_target, task.y_target)
        cell[f"{label} seconds"] = time.process_time() - start
    start = time.process_time()
    auto = (Judged if seed == 0 else mixda.AutoMSDA)(random_state=seed).fit(*given)
    if seed > 0:  # the timed model must not fit the other candidates
        cell["AutoMSDA seconds"] = time.process_time() - start
    cell["AutoMSDA"] = auto.score(task.X_target, task.y_target)
    cell["choice"], cell["declined"] = auto.choice_, auto.trust_.declined
    cell["trust"] = [auto.trust_.low, auto.trust_.accuracy, auto.trust_.high]
    cell["confidence"] = float(auto.predict_proba(task.X_target).max(axis=1).mean())
    if seed == 0:
        codes = np.searchsorted(auto.classes_, task.y_target)
        cell["candidates"] = {
            candidate: float(np.mean(rule(task.X_target).argmax(axis=1) == codes))
            for candidate, rule in auto.candidate_rules_.items()
        }
    write_atomically(path, json.dumps(cell).encode())


def table(cells: list[dict]) -> str:
    methods = ("SourceOnly", "GMMWBT", "GMMDaDiL", "GMMDaDiL own scale, lda", "AutoMSDA")
    lines = ["| set | tasks | " + " | ".join(methods) + " | gain | worst task |"]
    lines.append("|" + "---|" * (len(methods) + 4))
    for name in SETS:
        own = [c for c in cells if c["set"] == name]
        if not own:
            continue
        seeds = sorted({c["seed"] for c in own})
        means = []
        for method in methods:
            by_seed = [100 * np.mean([c[method] for c in own if c["seed"] == s]) for s in seeds]
            means.append(f"{np.mean(by_seed):.1f} ± {np.std(by_seed):.1f}")
        gains = _gains(own)
        row = (name, str(len(gains)), *means, f"{np.mean(gains):+.1f}", f"{min(gains):+.1f}")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def _gains(cells: list[dict]) -> list[float]:
    """Return the gain of AutoMSDA over source-only in points for each task, averaged over seeds."""
    tasks = sorted({(c["set"], c["target"]) for c in cells})
    return [
        100
        * float(
            np.mean(
                [c["AutoMSDA"] - c["SourceOnly"] for c in cells if (c["set"], c["target"]) == task]
            )
        )
        for task in tasks
    ]


def summary(cells: list[dict]) -> str:
    single = [100 * (c["AutoMSDA"] - c["SourceOnly"]) for c in cells]
    judged = [c for c in cells if "candidates" in c]
    regret = [100 * (max(c["candidates"].values()) - c["AutoMSDA"]) for c in judged]
    timed = [c for c in cells if "AutoMSDA seconds" in c]
    ratios = [c["AutoMSDA seconds"] / c["GMMDaDiL seconds"] for c in timed]
    lines = [
        f"runs (task × seed) more than 2 points below source-only: "
        f"{np.mean(np.array(single) < -2):.1%} of {len(single)}",
        f"declined: {np.mean([c['declined'] for c in cells]):.0%}",
        f"regret against the best candidate in hindsight (seed 0): {np.mean(regret):.2f} points",
    ]
    if ratios:
        lines.append(
            f"processor time over that of GMMDaDiL(): median {np.median(ratios):.1f}, nine in "
            f"ten below {np.quantile(ratios, 0.9):.1f}, largest {max(ratios):.1f}"
        )
    for label, part in (
        ("all sets", cells),
        ("development sets", [c for c in cells if c["set"] in DEVELOPMENT]),
        ("confirmation sets", [c for c in cells if c["set"] not in DEVELOPMENT]),
    ):
        if part:
            error = np.mean([100 * abs(c["trust"][1] - c["AutoMSDA"]) for c in part])
            inside = np.mean([c["trust"][0] <= c["AutoMSDA"] <= c["trust"][2] for c in part])
            calibration = np.mean([100 * abs(c["confidence"] - c["AutoMSDA"]) for c in part])
            lines.append(
                f"trust, {label}: mean absolute error {error:.1f} points, 80 % interval holds "
                f"{inside:.0%}; mean confidence is off by {calibration:.1f} points"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/selection"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    names = options.sets.split(",")
    targets = {name: len(SETS[name]().domain_names) for name in names}
    todo = [
        (options.out / f"{name}-{target}-{seed}.json", name, target, seed)
        for seed in range(options.seeds)
        for name in names
        for target in range(targets[name])
    ]
    open_cells = [cell for cell in todo if not cell[0].exists()]
    Parallel(n_jobs=options.jobs, verbose=5)(delayed(run_cell)(*cell) for cell in open_cells)
    cells = [json.loads(path.read_text()) for path, *_ in todo if path.exists()]
    print(table(cells) + "\n\n" + summary(cells))


if __name__ == "__main__":
    main()
