"""k-means on weighted, centered samples: the initialization of expectation-maximization.

Not scikit-learn's: the threads of its Lloyd iterations add up in any order, while fits are
reproducible to the bit here; and checking its arguments makes `sklearn.cluster.kmeans_plusplus`
slower on small data. Best of 15 alternating runs with scikit-learn 1.9, one
thread, on a loaded two-core machine, ours against theirs:
n=60, d=5, k=3: 0.2 against 1.1 ms; n=2000, d=20, k=10: 1.0 against 2.2 ms; n=10000, d=128, k=10:
15 against 19 ms; n=10000, d=16, k=30: 13 against 11 ms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mixda._core.validation import Array

_MAX_LLOYD_ITERATIONS = 10


def kmeans_plusplus(x: Array, weight: Array, k: int, rng: np.random.Generator) -> Array:
    """Choose initial means by greedy k-means++.

    Each new mean is the best of 2 + log(k) candidates drawn with probability proportional to
    weight times squared distance to the nearest mean (Arthur and Vassilvitskii, 2007).
    """
    n, n_candidates = len(x), 2 + int(np.log(k))
    norms = np.einsum("ij,ij->i", x, x)
    chosen = [int(rng.choice(n, p=weight / weight.sum()))]
    nearest = np.maximum(norms - 2.0 * (x @ x[chosen[0]]) + norms[chosen[0]], 0.0)
    nearest[chosen[0]] = 0.0
    while len(chosen) < k:
        mass = np.cumsum(weight * nearest)
        if mass[-1] <= 0.0:  # every distinct sample is a mean already
            chosen += rng.integers(n, size=k - len(chosen)).tolist()
            break
        candidates = np.searchsorted(mass, rng.random(n_candidates) * mass[-1], side="right")
        candidates = np.minimum(candidates, n - 1)
        distances = np.maximum(norms - 2.0 * (x[candidates] @ x.T) + norms[candidates, None], 0.0)
        distances[np.arange(n_candidates), candidates] = 0.0
        np.minimum(distances, nearest, out=distances)
        best = int(np.argmin(distances @ weight))
        chosen.append(int(candidates[best]))
        nearest = distances[best]
    return x[chosen]


def lloyd(x: Array, weight: Array, means: Array) -> tuple[Array, Any]:
    """Run a few Lloyd iterations; return the means and the sparse (K, n) weights of members."""
    k, n = len(means), len(x)
    assignment: NDArray[np.intp] | None = None
    for _ in range(_MAX_LLOYD_ITERATIONS):
        previous, scores = assignment, x @ means.T
        scores -= 0.5 * np.einsum("ij,ij->i", means, means)
        assignment = scores.argmax(axis=1)
        members = csr_array((weight, (assignment, np.arange(n))), shape=(k, n))
        n_k = members.sum(axis=1)[:, None]
        filled = n_k > 0
        means = np.where(filled, (members @ x) / np.where(filled, n_k, 1.0), means)
        if previous is not None and np.array_equal(previous, assignment):
            break
    return means, members
