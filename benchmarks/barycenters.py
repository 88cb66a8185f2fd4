"""Barycenters against the exact optimum, a linear program over all tuples of components.

    python benchmarks/barycenters.py [--problems 60]

Tiny problems only: three inputs of at most six components give 216 tuples. Every row is the excess
of the objective over the optimum, in percent: "first input" is one fixed point from the input with
the largest coordinate, "all inputs" the best of the fixed points from every input, "free" has free
support and free weights, and "free, K" merges that support to as many components as the largest
input has. Times are processor seconds per problem.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from mixda import Mixture, barycenter, smw2
from mixda.transport import features

Array = NDArray[np.float64]
VARIANTS: dict[str, dict[str, Any]] = {
    "first input": {},
    "all inputs": {"component_weights": "start"},
    "free, K": {"component_weights": "free"},
    "free (default)": {},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=60, help="per row")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    kinds = {
        "uniform weights, equal sizes": (True, False, None),
        "non-uniform weights, equal sizes": (False, False, None),
        "non-uniform weights and sizes": (False, True, None),
        "non-uniform weights and sizes, labeled": (False, True, 2),
    }
    columns = ["problems", *(f"{name}: mean (largest), s" for name in VARIANTS)]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for kind, options in kinds.items():
        rng = np.random.default_rng(arguments.seed)
        excess: dict[str, list[float]] = {name: [] for name in VARIANTS}
        seconds = dict.fromkeys(VARIANTS, 0.0)
        for _ in range(arguments.problems):
            inputs, lam, beta = make_problem(rng, *options)
            best = optimum(inputs, lam, beta)
            for name, settings in VARIANTS.items():
                start = time.process_time()
                b = solve(name, inputs, lam, beta, settings)
                seconds[name] += time.process_time() - start
                value = sum(
                    x * smw2(b, p, beta=beta, squared=True)
                    for x, p in zip(lam, inputs, strict=True)
                )
                excess[name].append(100.0 * (value / best - 1.0))
        cells = [
            f"{np.mean(e):.2f} % ({np.max(e):.1f} %), {seconds[name] / arguments.problems:.3f}"
            for name, e in excess.items()
        ]
        print("| " + " | ".join([kind, *cells]) + " |", flush=True)


def solve(
    name: str, inputs: list[Mixture], lam: Array, beta: float, settings: dict[str, Any]
) -> Mixture:
    if name == "first input":  # the largest coordinate, then the most components
        first = max(range(len(lam)), key=lambda c: (lam[c], inputs[c].n_components))
        settings = {"init": inputs[first]}
    if name == "free, K":
        settings = {**settings, "n_components": max(p.n_components for p in inputs)}
    return barycenter(inputs, lam, beta=beta, **settings).mixture


def make_problem(
    rng: np.random.Generator, uniform: bool, sizes_differ: bool, nc: int | None
) -> tuple[list[Mixture], Array, float]:
    """Three random mixtures, coordinates and a label weight."""
    sizes = rng.integers(3, 7, 3) if sizes_differ else np.full(3, rng.integers(3, 7))
    inputs = []
    for K in sizes:
        weights = np.full(K, 1.0 / K) if uniform else rng.dirichlet(np.ones(K))
        labels = None if nc is None else np.eye(nc)[np.arange(K) % nc]
        stds = rng.uniform(0.1, 2.0, (K, 2))
        inputs.append(Mixture(weights, 2.0 * rng.standard_normal((K, 2)), stds, labels))
    return inputs, rng.dirichlet(np.full(3, 3.0)), 10.0 if nc else 0.0


def optimum(inputs: list[Mixture], lam: Array, beta: float) -> float:
    """Objective of the exact barycenter: the multi-marginal program over all tuples."""
    points = [
        features(p) if not p.is_labeled else np.hstack([features(p), np.sqrt(beta) * p.labels])
        for p in inputs
    ]
    offsets = np.cumsum([0, *(len(z) for z in points)])
    tuples = np.array(list(itertools.product(*(range(len(z)) for z in points))))
    picked = np.stack([z[i] for z, i in zip(points, tuples.T, strict=True)])
    mean = np.tensordot(lam, picked, axes=1)
    cost = np.tensordot(lam, ((picked - mean) ** 2).sum(axis=2), axes=1)
    rows = (tuples + offsets[:-1]).ravel()
    columns = np.repeat(np.arange(len(tuples)), len(points))
    marginals = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)))
    weights = np.concatenate([p.weights for p in inputs])
    return float(linprog(cost, A_eq=marginals, b_eq=weights).fun)


if __name__ == "__main__":
    main()
