"""Learn a dictionary of many domains: time per step and peak memory.

    python benchmarks/many_domains.py [--out out/many_domains.png]

Each domain has 100 components in 128 dimensions and 10 classes; there are 3 atoms of 100
components. Each number of domains runs in its own process, which reports its peak memory. "before"
is the memory of the process after the mixtures are created.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import ot  # noqa: F401  (it may load torch, whose memory must not be counted)
from threadpoolctl import threadpool_limits

from mixda import Mixture, learn_dictionary

K, D, N_CLASSES, N_ATOMS = 100, 128, 10, 3
DOMAINS = (10, 20, 50, 100, 200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/many_domains.png"))
    parser.add_argument("--one", type=int, help="measure this many domains and print JSON")
    parser.add_argument("--domains", type=int, nargs="+", default=list(DOMAINS))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--n-jobs", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    if arguments.one is not None:
        print(json.dumps(measure(arguments.one, arguments.steps, arguments.n_jobs[0])))
        return
    results = []
    for n in arguments.domains:
        for n_jobs in arguments.n_jobs:  # alternating, under the same load
            options = ["--one", str(n), "--steps", str(arguments.steps), "--n-jobs", str(n_jobs)]
            command = [sys.executable, __file__, *options]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            results.append(json.loads(text))
            print(results[-1], flush=True)
    draw(results, arguments.out)
    print(f"Figure: {arguments.out}")


def measure(n_domains: int, steps: int, n_jobs: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    classes, centers = np.arange(K) % N_CLASSES, rng.standard_normal((N_CLASSES, D))
    mixtures = []
    for _ in range(n_domains):
        means = centers[classes] + 0.3 * rng.standard_normal((K, D)) + 0.2 * rng.standard_normal(D)
        weights = rng.dirichlet(np.full(K, 20.0))
        stds = rng.uniform(0.5, 1, (K, D))
        mixtures.append(Mixture(weights, means, stds, np.eye(N_CLASSES)[classes]))
    *sources, target = mixtures
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begin, processor = time.perf_counter(), time.process_time()
    options = {"n_atoms": N_ATOMS, "n_components": K, "tol": -np.inf, "random_state": 0}
    with threadpool_limits(n_jobs):
        spent: list[float] = []
        options["callback"] = lambda *_: spent.append(time.process_time())
        found = learn_dictionary(sources, target, n_iter=steps, **options)
    return {
        "domains": n_domains,
        "n_jobs": n_jobs,
        "seconds per step": float(np.median(np.diff(found.history.seconds))),
        "processor seconds per step": float(np.median(np.diff(spent))),
        "processor seconds in all": time.process_time() - processor,
        "seconds in all": time.perf_counter() - begin,
        "loss": float(found.history.loss[-1]),
        "MB before": before,
        "MB peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def draw(results: list[dict[str, float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for n_jobs, color in ((1, "#0072B2"), (2, "#D55E00")):
        chosen = [r for r in results if r["n_jobs"] == n_jobs]
        domains = [r["domains"] for r in chosen]
        label = f"n_jobs={n_jobs}"
        if not chosen:
            continue
        for name, line in (("seconds per step", "o--"), ("processor seconds per step", "o-")):
            times = [r[name] for r in chosen]
            left.plot(domains, times, line, color=color, label=f"{name.split(' per')[0]}, {label}")
        used = [r["MB peak"] - r["MB before"] for r in chosen]
        right.plot(domains, used, "o-", color=color, label=label)
    left.set_ylabel("per step")
    right.set_ylabel("peak memory above the start, MB")
    for ax in (left, right):
        ax.set_xlabel("domains")
        ax.set_ylim(0)
        ax.grid(alpha=0.3)
        ax.legend()
    figure.suptitle(f"Domains of {K} components in {D} dimensions, {N_ATOMS} atoms")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
