"""Time and memory of AutoMSDA, and of the rivals that its user would fit instead.

    python benchmarks/auto.py                                          # 5 sources × 2,000 × 100

Sources and target are Gaussian classes on scales of their own. Each fit runs in a process of its
own, first alone and then two at once, because a machine is rarely idle. "all threads" is AutoMSDA
without its limit of one thread per fit.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
import warnings
from contextlib import nullcontext

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import mixda
from mixda.selection import _trials, auto

N_CLASSES = 8
KINDS = ("random forest", "AutoMSDA, all threads", "AutoMSDA", "AutoMSDA, n_jobs=2")


def make_task(n: int, d: int, n_sources: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    means = 0.35 * rng.normal(size=(N_CLASSES, d))
    y = rng.integers(0, N_CLASSES, (n_sources + 1) * n)
    ids = np.repeat([*range(n_sources), -1], n)
    X = means[y] + rng.normal(size=(len(y), d))
    for k in np.unique(ids):
        X[ids == k] *= 1.0 + 0.3 * rng.normal(size=d)
        X[ids == k] += 0.5 * rng.normal(size=d)
    return X, y, ids


def fit(kind: str, size: tuple[int, int, int]) -> tuple[float, float, float, float]:
    """Return wall-clock and processor seconds, peak memory in GB, and the target accuracy."""
    warnings.simplefilter("ignore")
    X, y, ids = make_task(*size)
    if kind == "AutoMSDA, all threads":
        auto.one_thread = _trials.one_thread = lambda *_, **__: nullcontext()
    wall, processor = time.perf_counter(), time.process_time()
    if kind == "random forest":
        model = RandomForestClassifier(200, random_state=0).fit(X[ids >= 0], y[ids >= 0])
    else:
        n_jobs = 2 if "n_jobs" in kind else None
        model = mixda.AutoMSDA(random_state=0, n_jobs=n_jobs).fit(X, y, sample_domain=ids)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return wall, processor, memory, float(np.mean(model.predict(X[ids < 0]) == y[ids < 0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000, help="per domain")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--sources", type=int, default=5)
    options = parser.parse_args()
    size = options.rows, options.features, options.sources
    context = multiprocessing.get_context("spawn")
    print("fit, at once: wall-clock s, processor s, peak GB, accuracy", flush=True)
    for kind in KINDS:
        for at_once in (1, 2):
            with context.Pool(at_once, maxtasksperchild=1) as pool:
                runs = pool.starmap(fit, [(kind, size)] * at_once, chunksize=1)
            shown = ", ".join(f"{value:.2f}" for value in np.mean(runs, axis=0))
            print(f"{kind}, {at_once}: {shown}", flush=True)


if __name__ == "__main__":
    main()
