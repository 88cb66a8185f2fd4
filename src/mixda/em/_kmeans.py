"""k-means on weighted, centerd samples: where expectation-maximization starts.

Our own rather than scikit-learn's, whose threads add up in any order: fits are bit for bit
reproducible here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mixda._core.validation import Array

_LLOYD_ROUNDS = 10


def kmeans_plusplus(x: Array, weight: Array, k: int, rng: np.random.Generator) -> Array:
    """Greedy k-means++: each new mean is the best of a few draws by squared distance."""
    n, trials = len(x), 2 + int(np.log(k))
    norms = np.einsum("ij,ij->i", x, x)
    chosen = [int(rng.choice(n, p=weight / weight.sum()))]
    nearest = np.maximum(norms - 2.0 * (x @ x[chosen[0]]) + norms[chosen[0]], 0.0)
    nearest[chosen[0]] = 0.0
    while len(chosen) < k:
        mass = np.cumsum(weight * nearest)
        if mass[-1] <= 0.0:  # every sample is already a mean
            chosen += rng.integers(n, size=k - len(chosen)).tolist()
            break
        draws = np.searchsorted(mass, rng.random(trials) * mass[-1], side="right")
        draws = np.minimum(draws, n - 1)
        distances = np.maximum(norms - 2.0 * (x[draws] @ x.T) + norms[draws, None], 0.0)
        distances[np.arange(trials), draws] = 0.0
        np.minimum(distances, nearest, out=distances)
        best = int(np.argmin(distances @ weight))
        chosen.append(int(draws[best]))
        nearest = distances[best]
    return x[chosen]


def lloyd(x: Array, weight: Array, means: Array) -> tuple[Array, Any]:
    """Run a few rounds of k-means; return means and the (K, n) sparse weights of the members."""
    k, n = len(means), len(x)
    winners: NDArray[np.intp] | None = None
    for _ in range(_LLOYD_ROUNDS):
        last, scores = winners, x @ means.T
        scores -= 0.5 * np.einsum("ij,ij->i", means, means)
        winners = scores.argmax(axis=1)
        members = csr_array((weight, (winners, np.arange(n))), shape=(k, n))
        n_k = members.sum(axis=1)[:, None]
        filled = n_k > 0
        means = np.where(filled, (members @ x) / np.where(filled, n_k, 1.0), means)
        if last is not None and np.array_equal(last, winners):
            break
    return means, members
