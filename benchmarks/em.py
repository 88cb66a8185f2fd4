"""Time one EM iteration of mixda and of scikit-learn's GaussianMixture("diag") from the same start.

Run ``python benchmarks/em.py``. Both run in the same process, alternating, with their default
number of threads (set OMP_NUM_THREADS=1 for one each). The time of an iteration is the difference
between a long and a short fit, each the best of a few rounds, because other programs may be
running; ``--cpu-time`` measures processor time instead, for busy machines. The last columns are
the time of a fit that stops after its first iteration, which is mostly k-means: from k-means++ in
mixda, scikit-learn's default in GaussianMixture.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from mixda import Mixture, fit_mixture

SIZES = ((20_000, 128, 10), (2_000, 2_048, 5), (500_000, 16, 8))
SHORT, LONG, ROUNDS = 2, 8, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu-time", action="store_true")
    clock = time.process_time if parser.parse_args().cpu_time else time.perf_counter
    print(
        f"{'n':>8} {'d':>5} {'K':>3} {'sklearn':>10} {'mixda':>10} {'ratio':>6}"
        f" {'log-likelihoods':>22}   start: sklearn, mixda"
    )
    for n, d, k in SIZES:
        X, start = make_problem(n, d, k)
        runs = (run_sklearn, run_mixda)
        times = {(run, n_iter): np.inf for run in runs for n_iter in (SHORT, LONG)}
        for _ in range(ROUNDS):
            for run, n_iter in times:
                times[run, n_iter] = min(times[run, n_iter], timed(run, X, start, n_iter, clock))
        theirs, mine = (
            1e3 * (times[run, LONG] - times[run, SHORT]) / (LONG - SHORT) for run in runs
        )
        starts = ", ".join(
            f"{1e3 * min(timed(run, X, k, 1, clock) for _ in range(2)):.0f} ms"
            for run in (start_sklearn, start_mixda)
        )
        scores = [run(X, start, LONG).score(X) for run in runs]
        print(
            f"{n:8d} {d:5d} {k:3d} {theirs:7.1f} ms {mine:7.1f} ms {theirs / mine:5.1f}x"
            f"  {scores[0]:.6f} {scores[1]:.6f}   {starts}",
            flush=True,
        )


def make_problem(n: int, d: int, k: int) -> tuple[np.ndarray, Mixture]:
    rng = np.random.default_rng(0)
    means = 0.5 * rng.standard_normal((k, d))
    X = means[rng.integers(k, size=n)] + rng.uniform(0.5, 1.5, d) * rng.standard_normal((n, d))
    start = Mixture(np.full(k, 1 / k), X[:k], np.ones((k, d)))
    return X, start


def run_mixda(X: np.ndarray, start: Mixture, n_iter: int) -> Mixture:
    return fit_mixture(X, init=start, max_iter=n_iter, tol=0.0)


def run_sklearn(X: np.ndarray, start: Mixture, n_iter: int) -> GaussianMixture:
    model = GaussianMixture(
        start.n_components,
        covariance_type="diag",
        tol=0.0,
        max_iter=n_iter,
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=start.stds**-2.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def start_mixda(X: np.ndarray, k: int, n_iter: int) -> Mixture:
    return fit_mixture(X, k, max_iter=n_iter, random_state=0)


def start_sklearn(X: np.ndarray, k: int, n_iter: int) -> GaussianMixture:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GaussianMixture(k, covariance_type="diag", max_iter=n_iter, random_state=0).fit(X)


def timed(
    run: Callable[..., object], X: np.ndarray, start: Any, n_iter: int, clock: Callable[[], float]
) -> float:
    begin = clock()
    run(X, start, n_iter)
    return clock() - begin


if __name__ == "__main__":
    main()
