"""Time one EM iteration of mixda and of scikit-learn's GaussianMixture("diag") from the same start.

Run ``python benchmarks/em.py``. Both run in the same process, alternating, with their default
number of threads (set OMP_NUM_THREADS=1 for one each). The time of an iteration is the difference
between a long and a short fit, each the best of a few rounds, because other programs may be
running.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.mixture import GaussianMixture

from mixda import Mixture, fit_mixture

SIZES = ((20_000, 128, 10), (2_000, 2_048, 5), (500_000, 16, 8))
SHORT, LONG, ROUNDS = 2, 8, 5


def main() -> None:
    print(f"{'n':>8} {'d':>5} {'K':>3} {'sklearn':>10} {'mixda':>10} {'ratio':>6}  log-likelihoods")
    for n, d, k in SIZES:
        X, start = make_problem(n, d, k)
        runs = (run_sklearn, run_mixda)
        times = {(run, n_iter): np.inf for run in runs for n_iter in (SHORT, LONG)}
        for _ in range(ROUNDS):
            for run, n_iter in times:
                times[run, n_iter] = min(times[run, n_iter], timed(run, X, start, n_iter))
        theirs, mine = (
            1e3 * (times[run, LONG] - times[run, SHORT]) / (LONG - SHORT) for run in runs
        )
        scores = [run(X, start, LONG).score(X) for run in runs]
        print(
            f"{n:8d} {d:5d} {k:3d} {theirs:7.1f} ms {mine:7.1f} ms {theirs / mine:5.1f}x"
            f"  {scores[0]:.6f} {scores[1]:.6f}",
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


def timed(run: Callable[..., object], X: np.ndarray, start: Mixture, n_iter: int) -> float:
    begin = time.perf_counter()
    run(X, start, n_iter)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
