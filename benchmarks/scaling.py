"""Measure how the time of a dictionary step grows with K, d, atoms and domains, and peak memory.

    python benchmarks/scaling.py [--out out/scaling.png]

One quantity grows at a time, starting from (K, d, atoms, domains) = (93, 512, 3, 3). The memory of
the paper's largest setting (K = 910, d = 2048, 65 classes, 3 atoms, 4 domains) is the peak of a
separate process, including the interpreter and libraries.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

from mixda import Mixture, learn_dictionary

BASE = {"K": 93, "d": 512, "atoms": 3, "domains": 3}
GRID = {
    "K": [31, 62, 124, 217, 434],
    "d": [64, 256, 1024, 2048, 4096],
    "atoms": [2, 3, 4, 6, 8],
    "domains": [2, 3, 5, 9, 17],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/scaling.png"))
    parser.add_argument("--memory-only", action="store_true", help="print the peak and stop")
    arguments = parser.parse_args()
    if arguments.memory_only:
        step_seconds(910, 2048, 3, 4, nc=65, steps=6, optimizer="block")
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2)
        return
    times = {
        name: [step_seconds(**{**BASE, name: value}) for value in values]
        for name, values in GRID.items()
    }
    print("| grows | " + " | ".join(["values", "milliseconds per step", "exponent"]) + " |")
    print("|---|---|---|---|")
    for name, values in GRID.items():
        slope = np.polyfit(np.log(values[1:]), np.log(times[name][1:]), 1)[0]
        shown = ", ".join(f"{1e3 * t:.1f}" for t in times[name])
        print(f"| {name} | {', '.join(map(str, values))} | {shown} | {slope:.2f} |")
    command = [sys.executable, __file__, "--memory-only"]
    peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print(f"\nPeak memory at K = 910, d = 2048, 65 classes, 3 atoms, 4 domains: {peak:.2f} GB")
    draw(times, arguments.out)
    print(f"Figure: {arguments.out}")


def step_seconds(
    K: int,
    d: int,
    atoms: int,
    domains: int,
    nc: int = 31,
    steps: int = 8,
    optimizer: str = "adam",
) -> float:
    """Return the median time of an Adam step, because Adam moves the atoms in every step."""
    rng = np.random.default_rng(0)
    classes, centers = np.arange(K) % nc, rng.standard_normal((nc, d))
    mixtures = []
    for _ in range(domains):
        means = centers[classes] + 0.3 * rng.standard_normal((K, d)) + 0.2 * rng.standard_normal(d)
        weights = rng.dirichlet(np.full(K, 20.0))
        mixtures.append(Mixture(weights, means, rng.uniform(0.5, 1, (K, d)), np.eye(nc)[classes]))
    *sources, target = mixtures
    options = {"n_atoms": atoms, "n_components": K, "optimizer": optimizer, "tol": -np.inf}
    history = learn_dictionary(sources, target, n_iter=steps, **options).history
    return float(np.median(np.diff(history.seconds)))


def draw(times: dict[str, list[float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(13, 3.2), sharey=True, layout="constrained")
    for ax, (name, values) in zip(axes, GRID.items(), strict=True):
        ax.loglog(values, [1e3 * t for t in times[name]], "o-", color="#0072B2")
        ax.set_xticks(values, [str(v) for v in values])
        ax.minorticks_off()
        ax.set_xlabel(name)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("milliseconds per step")
    figure.suptitle(f"A step of the dictionary, around {BASE}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
