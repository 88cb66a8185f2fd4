"""Predict with a Gaussian mixture and with scikit-learn's LogisticRegression, on the same rows.

Run ``python benchmarks/predict.py``. Both predict in the same process, alternating, with their
default number of threads. A logistic regression needs one matrix product per batch. A mixture needs
two of them with as many columns as components, and exponentials. Ratios are medians over rounds.
``--cpu-time`` measures processor time, for busy machines.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import mixda

CLASSES, ROUNDS = 10, 7
SIZES = ((1_000_000, 16, 1), (1_000_000, 16, 3), (200_000, 128, 1), (200_000, 128, 3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu-time", action="store_true")
    clock = time.process_time if parser.parse_args().cpu_time else time.perf_counter
    print(f"{'rows':>9} {'d':>4} {'K':>3} {'method':>14} {'LR':>9} {'mixda':>9} {'ratio':>6}")
    for n, d, per_class in SIZES:
        rng = np.random.default_rng(0)
        means = 1.5 * rng.standard_normal((CLASSES * per_class, d))
        labels = np.repeat(np.eye(CLASSES), per_class, axis=0)
        weights = np.full(len(means), 1.0 / len(means))
        mixture = mixda.Mixture(weights, means, rng.uniform(0.5, 1.5, means.shape), labels)
        X, y = mixture.sample(n, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # only the time of predictions matters
            theirs = LogisticRegression(max_iter=20).fit(X[:2000], y[:2000])
        for method in ("predict", "predict_proba"):
            times = [
                (
                    timed(getattr(theirs, method), X, clock),
                    timed(getattr(mixture, method), X, clock),
                )
                for _ in range(ROUNDS)
            ]
            ratio = np.median([a / b for a, b in times])
            a, b = np.min(times, axis=0)
            print(
                f"{n:9,d} {d:4d} {len(means):3d} {method:>14} {1e3 * a:6.0f} ms {1e3 * b:6.0f} ms"
                f" {ratio:5.2f}x",
                flush=True,
            )


def timed(function: Callable[[Any], object], X: Any, clock: Callable[[], float]) -> float:
    start = clock()
    function(X)
    return clock() - start


if __name__ == "__main__":
    main()
