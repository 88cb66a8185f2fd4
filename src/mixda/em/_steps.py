"""The two steps of expectation-maximization as pure functions of statistics that add up.

A pass over the data is ``reduce(SuffStats.merge, map(e_step, blocks))``; the callers decide how
the data are split and where the map runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mixda._core.validation import Array
from mixda.mixture import LogGaussians, has_gaps, normalize_log_rows

VALUES_PER_STEP = 1 << 18  # 2 MB: samples and their squares stay in cache
_SMALL_PRODUCT = 1_000_000  # multiplications up to which OpenBLAS has kernels for small matrices
_MIN_SMALL_ROWS = 64  # below this, the overhead of a step outweighs the faster products
_NEGLIGIBLE = 1e-30  # a responsibility below this adds nothing to a sum in double precision
_MIN_FEATURES_FOR_SPARSE = 256  # below this, sparse responsibilities do not pay
_MIN_SPARSITY = 6  # one of so many responsibilities may be relevant for sparse ones to pay


@dataclass(frozen=True, eq=False)
class Parameters:
    """Parameters of a mixture: log-weights (K,), means less the center (K, d), stds (K, d).

    ``variances`` (K, d) are those of the samples, before the floor; None before the first M-step.
    ``observed`` (K, d) is the share of each component's mass in rows that have a value; None if no
    value is missing.
    """

    log_weights: Array
    means: Array
    stds: Array
    variances: Array | None = None
    observed: Array | None = None

    @cached_property
    def kernel(self) -> LogGaussians:
        """The log-densities of the components, prepared once per pass."""
        return LogGaussians.around(self.means, self.stds)


@dataclass(frozen=True, eq=False)
class SuffStats:
    r"""Sufficient statistics around a fixed center c, for responsibilities :math:`r_{ik}`.

    ``n_k`` (K,) is :math:`\sum_i r_{ik}`, ``sum_x`` (K, d) is :math:`\sum_i r_{ik} (x_i - c)` and
    ``sum_xx`` (K, d) is :math:`\sum_i r_{ik} (x_i - c)^2`, where :math:`r_{ik}` includes the
    weight of sample i. ``loglik`` is the weighted log-likelihood, ``weight`` the sum of weights,
    and ``missing`` (K, d) the sum of the :math:`r_{ik}` of samples without a value, or zero.
    """

    n_k: Array
    sum_x: Array
    sum_xx: Array
    loglik: float
    weight: float
    missing: Array | float = 0.0

    def merge(self, other: SuffStats) -> SuffStats:
        """Return the statistics of both sets of samples (around the same center)."""
        return SuffStats(
            self.n_k + other.n_k,
            self.sum_x + other.sum_x,
            self.sum_xx + other.sum_xx,
            self.loglik + other.loglik,
            self.weight + other.weight,
            self.missing + other.missing,
        )

    def scaled(self, factor: float) -> SuffStats:
        """Return the statistics after multiplying the weights of the samples by a factor."""
        return SuffStats(
            factor * self.n_k,
            factor * self.sum_x,
            factor * self.sum_xx,
            factor * self.loglik,
            factor * self.weight,
            factor * self.missing,
        )


def rows_per_step(n_components: int, n_features: int) -> int:
    """Return how many samples one `e_step` should take: products with few rows are the fastest.

    Products of a step have n·d·K multiplications. Up to a million of them, OpenBLAS skips the
    packing that makes large products fast, and with K = 5 and d = 2048 a product takes a third of
    the time per sample.
    """
    small = _SMALL_PRODUCT // (n_components * n_features)
    most = max(1, VALUES_PER_STEP // max(n_components, n_features))
    return min(small, most) if small >= _MIN_SMALL_ROWS else most


def e_step(
    x: Array,
    weight: Array | None,
    parameters: Parameters,
    buffers: tuple[Array, Array] | None = None,
) -> SuffStats:
    r"""Return the statistics of centered samples (n, d) with optional weights (n,).

    Responsibilities are those of the observed features. A missing value (NaN) adds its
    conditional moments given the component, :math:`m_{kj}` to ``sum_x`` and
    :math:`m_{kj}^2 + s_{kj}^2` to ``sum_xx`` (Ghahramani and Jordan, 1994).

    `buffers` for the squares (n, d) and the posteriors (2, K, n) avoid memory allocation.
    """
    squares_buffer, posterior_buffer = (None, None) if buffers is None else buffers
    missing = np.isnan(x) if has_gaps(x) else None
    if missing is None:
        squares = np.square(x, out=squares_buffer)
        posterior = parameters.kernel(x, squares, posterior_buffer)
    else:
        posterior = parameters.kernel.marginal(x)
        x = np.where(missing, 0.0, x)
        squares = np.square(x, out=squares_buffer)
    posterior += parameters.log_weights[:, None]
    log_prob = normalize_log_rows(posterior.T)
    relevant = posterior > _NEGLIGIBLE if x.shape[1] >= _MIN_FEATURES_FOR_SPARSE else None
    if weight is None:
        loglik, total = float(log_prob.sum()), float(len(x))
    else:
        posterior *= weight
        loglik, total = float(weight @ log_prob), float(weight.sum())
    n_k = posterior.sum(axis=1)
    responsibilities = posterior if relevant is None else _sparse_if_cheaper(posterior, relevant)
    sum_x, sum_xx = responsibilities @ x, responsibilities @ squares
    missing_mass: Array | float = 0.0
    if missing is not None:
        missing_mass = responsibilities @ missing.astype(np.float64)
        sum_x += missing_mass * parameters.means
        sum_xx += missing_mass * (parameters.means**2 + parameters.stds**2)
    return SuffStats(n_k, sum_x, sum_xx, loglik, total, missing_mass)


def _sparse_if_cheaper(posterior: Array, relevant: NDArray[np.bool_]) -> Any:
    """Drop negligible responsibilities if that makes products with the matrix cheaper.

    With many features, nearly every sample belongs to a single component.
    """
    if _MIN_SPARSITY * np.count_nonzero(relevant) > relevant.size:
        return posterior
    ends = np.concatenate([[0], np.cumsum(np.count_nonzero(relevant, axis=1))])
    return csr_array((posterior[relevant], np.nonzero(relevant)[1], ends), shape=posterior.shape)


def m_step(stats: SuffStats, floor: Array, previous: Parameters) -> Parameters:
    """Maximize the expected log-likelihood subject to ``stds >= floor``.

    A component without mass keeps its `previous` mean and standard deviation.
    """
    min_mass = 10.0 * np.finfo(np.float64).eps * stats.weight
    alive = (stats.n_k > min_mass)[:, None]
    n_k = np.maximum(stats.n_k, min_mass)
    means = np.where(alive, stats.sum_x / n_k[:, None], previous.means)
    variances = np.maximum(stats.sum_xx / n_k[:, None] - means**2, 0.0)
    stds = np.sqrt(np.maximum(variances, floor**2))
    log_weights = np.log(n_k) - np.log(n_k.sum())
    observed = None
    if isinstance(stats.missing, np.ndarray):
        observed = np.clip(1.0 - stats.missing / n_k[:, None], 0.0, 1.0)
    stds = np.where(alive, stds, previous.stds)
    return Parameters(log_weights, means, stds, variances, observed)
