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

from mixda._core.namespace import as_like, cast, namespace, to_float64
from mixda._core.typing import Array
from mixda.mixture import LogGaussians, has_gaps, normalize_log_rows

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

    def on_cpu(self) -> SuffStats:
        """Return the statistics as numpy arrays."""
        missing = self.missing if isinstance(self.missing, float) else to_float64(self.missing)
        sums = to_float64(self.n_k), to_float64(self.sum_x), to_float64(self.sum_xx)
        return SuffStats(*sums, self.loglik, self.weight, missing)

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

    `buffers` for the squares (n, d) and the posteriors (2, K, n) avoid memory allocation. Samples
    of torch or CuPy give statistics of the same library, on the same device.
    """
    squares_buffer, posterior_buffer = (None, None) if buffers is None else buffers
    xp, kernel = namespace(x), parameters.kernel.like(x)
    squares = xp.square(x, out=squares_buffer)
    posterior = kernel(x, squares, posterior_buffer)
    missing = None
    if has_gaps(posterior):  # NaN spreads to its row, and there are fewer components than features
        missing = xp.isnan(x)
        posterior = kernel.marginal(x)
        x = xp.nan_to_num(x)
        squares = xp.square(x, out=squares_buffer)
    posterior += as_like(parameters.log_weights[:, None], x)
    log_prob = normalize_log_rows(posterior.T)
    if xp is not np:  # rounding of a sum in single precision would delay or hasten convergence
        log_prob = cast(log_prob, "float64")
    wide = xp is np and x.shape[1] >= _MIN_FEATURES_FOR_SPARSE
    relevant = posterior > _NEGLIGIBLE if wide else None
    if weight is None:
        loglik, total = float(log_prob.sum()), float(len(x))
    else:
        posterior *= weight
        own = weight if xp is np else cast(weight, "float64")
        loglik, total = float(own @ log_prob), float(own.sum())
    n_k = posterior.sum(axis=1)
    responsibilities = posterior if relevant is None else _sparse_if_cheaper(posterior, relevant)
    sum_x, sum_xx = responsibilities @ x, responsibilities @ squares
    missing_mass: Array | float = 0.0
    if missing is not None:
        gaps = xp.zeros_like(x)
        gaps[missing] = 1.0
        missing_mass = responsibilities @ gaps
        sum_x += missing_mass * kernel.means
        sum_xx += missing_mass * (kernel.means**2 + kernel.stds**2)
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
