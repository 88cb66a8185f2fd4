"""Time GMM-DaDiL and DaDiL at the same K = n_b for different numbers of mini-batches M.

    python benchmarks/minibatches.py [--sizes 31 62 124] [--d 512] [--iterations 20]

Figure 5 (c) of the paper. The support of DaDiL has n = M n_b points, so one iteration takes M
steps, each of the size of one GMM-DaDiL step. Both use Adam and the same engine.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from mixda import learn_dictionary
from mixda.em import fit_labeled_mixture, fit_mixture
from mixda.empirical import learn_empirical_dictionary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[31, 62, 124])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--d", type=int, default=512)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    a = parser.parse_args()
    sources, target = make_domains(a.d, n=1240, nc=31)
    print(
        f"Seconds of {a.iterations} iterations, 3 atoms, 3 domains, d = {a.d}, best of {a.repeats}."
    )
    print("In brackets: ratio of DaDiL to GMM-DaDiL.\n")
    print("| K = n_b | GMM-DaDiL | " + " | ".join(f"DaDiL, M = {M}" for M in a.batches) + " |")
    print("|---|---|" + "---|" * len(a.batches))
    for size in a.sizes:
        per_class = size // 31
        mixtures = [fit_labeled_mixture(X, y, per_class, random_state=0) for X, y in sources]
        unlabeled = fit_mixture(target, size, random_state=0)
        options = {"optimizer": "adam", "n_iter": a.iterations, "tol": -np.inf}
        options |= {"precision": "float64", "n_components": size}
        ours = best(lambda: learn_dictionary(mixtures, unlabeled, **options), a.repeats)  # noqa: B023
        cells = []
        for M in a.batches:
            options = {"n_points": M * size, "batch_size": size, "n_epochs": a.iterations}
            run = lambda: learn_empirical_dictionary(sources, target, 31, **options)  # noqa: B023, E731
            seconds = best(run, a.repeats)
            cells.append(f"{seconds:.2f} ({seconds / ours:.1f}×)")
        print(f"| {size} | {ours:.2f} | {' | '.join(cells)} |", flush=True)


def best(run: object, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return min(times)


def make_domains(d: int, n: int, nc: int):
    rng = np.random.default_rng(0)
    centers, y = 0.55 * rng.standard_normal((nc, d)), np.arange(n) % nc
    clouds = [
        centers[y] + 0.3 * rng.standard_normal(d) + 0.8 * rng.standard_normal((n, d))
        for _ in range(3)
    ]
    return [(X, y) for X in clouds[:2]], clouds[2]


if __name__ == "__main__":
    main()
