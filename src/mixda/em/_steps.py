"""The two steps of expectation-maximization as pure functions, with statistics that add up.

A pass over the data is ``reduce(merge, map(e_step, chunks))``: whoever supplies the chunks and
the ``map`` decides where it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mixda._core.parallel import Map
from mixda._core.validation import Array
from mixda.mixture import LogGaussians, normalize_log_rows

Chunk = tuple[Array, "Array | None"]  # centerd samples (n, d) and their weights (n,)

CHUNK_VALUES = 1 << 18  # 2 MB: a chunk and its squares stay in cache
_NEGLIGIBLE = 1e-30  # responsibility that adds nothing to a sum in double precision
_SPARSE_FEATURES = 256  # from here on, leaving out negligible responsibilities can pay


@dataclass(frozen=True, eq=False)
class Parameters:
    """What a pass over the data needs: log-weights (K,), means less the center, stds (K, d)."""

    log_weights: Array
    means: Array
    stds: Array

    @cached_property
    def kernel(self) -> LogGaussians:
        """The densities, prepared once per pass."""
        return LogGaussians.around(self.means, self.stds)


@dataclass(frozen=True, eq=False)
class SuffStats:
    r"""Sums over samples around a fixed center c, for responsibilities :math:`r_{ik}`.

    ``n_k`` (K,) is :math:`\sum_i r_{ik}`, ``sum_x`` (K, d) :math:`\sum_i r_{ik} (x_i - c)`,
    ``sum_xx`` (K, d) :math:`\sum_i r_{ik} (x_i - c)^2`, with :math:`r_{ik}` times the weight of
    sample i; ``loglik`` the weighted log-likelihood and ``weight`` the sum of the weights.
    """

    n_k: Array
    sum_x: Array
    sum_xx: Array
    loglik: float
    weight: float

    def merge(self, other: SuffStats) -> SuffStats:
        """Return the statistics of both sets of samples (around the same center)."""
        return SuffStats(
            self.n_k + other.n_k,
            self.sum_x + other.sum_x,
            self.sum_xx + other.sum_xx,
            self.loglik + other.loglik,
            self.weight + other.weight,
        )

    def scaled(self, factor: float) -> SuffStats:
        """Return the statistics of samples whose weights are multiplied by a number."""
        return SuffStats(
            factor * self.n_k,
            factor * self.sum_x,
            factor * self.sum_xx,
            factor * self.loglik,
            factor * self.weight,
        )


def e_step(
    chunk: Chunk, parameters: Parameters, memory: tuple[Array, Array] | None = None
) -> SuffStats:
    """Return the statistics of one chunk of centerd samples; pure, so it may run anywhere.

    `memory` for squares (n, d) and posteriors (2, K, n) spares asking the system for it.
    """
    x, weight = chunk
    of_squares, of_posteriors = (None, None) if memory is None else memory
    squares = np.square(x, out=of_squares)
    posterior = parameters.kernel(x, squares, of_posteriors)
    posterior += parameters.log_weights[:, None]
    log_prob = normalize_log_rows(posterior.T)
    shared = posterior > _NEGLIGIBLE if x.shape[1] >= _SPARSE_FEATURES else None
    if weight is None:
        loglik, total = float(log_prob.sum()), float(len(x))
    else:
        posterior *= weight
        loglik, total = float(weight @ log_prob), float(weight.sum())
    n_k = posterior.sum(axis=1)
    sums = posterior if shared is None else _without_negligible(posterior, shared)
    return SuffStats(n_k, sums @ x, sums @ squares, loglik, total)


def _without_negligible(posterior: Array, shared: NDArray[np.bool_]) -> Any:
    """Return a sparse posterior if that makes products with it cheaper, else the dense one.

    With many features nearly every sample belongs to one component, and what is left out is
    far below rounding.
    """
    if 3 * np.count_nonzero(shared) > shared.size:
        return posterior
    ends = np.concatenate([[0], np.cumsum(np.count_nonzero(shared, axis=1))])
    return csr_array((posterior[shared], np.nonzero(shared)[1], ends), shape=posterior.shape)


def m_step(stats: SuffStats, floor: Array, previous: Parameters) -> Parameters:
    """Maximize the expected log-likelihood subject to ``stds >= floor``; pure.

    A component without mass keeps its `previous` mean and standard deviation.
    """
    least = 10.0 * np.finfo(np.float64).eps * stats.weight
    alive = (stats.n_k > least)[:, None]
    n_k = np.maximum(stats.n_k, least)
    means = np.where(alive, stats.sum_x / n_k[:, None], previous.means)
    variances = stats.sum_xx / n_k[:, None] - means**2
    stds = np.sqrt(np.maximum(variances, floor**2))
    log_weights = np.log(n_k) - np.log(n_k.sum())
    return Parameters(log_weights, means, np.where(alive, stds, previous.stds))


def expectation(chunks: Sequence[Chunk], parameters: Parameters, run: Map) -> SuffStats:
    """One pass over the data: chunks go through `run` (an ordered ``map``), results add up."""
    _ = parameters.kernel  # prepared here once rather than in every worker
    results: Iterable[SuffStats] = run(partial(e_step, parameters=parameters), chunks)
    return reduce(SuffStats.merge, results)
