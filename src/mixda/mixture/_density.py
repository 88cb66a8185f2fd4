"""Densities of axis-aligned Gaussians, shared by mixtures and EM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mixda._core.namespace import as_like, empty, namespace
from mixda._core.parallel import thread_map
from mixda._core.typing import Array

_LOG_2PI = float(np.log(2.0 * np.pi))
VALUES_PER_STEP = 1 << 18  # 2 MB: samples and their squares stay in cache
_SMALL_PRODUCT = 1_000_000  # multiplications up to which OpenBLAS has kernels for small matrices
_MIN_SMALL_ROWS = 64  # below this, the overhead of a step outweighs the faster products
_MIN_VALUES_FOR_THREADS = 1 << 20
_DEVICE_VALUES = 1 << 24  # of torch and CuPy at once: large, because every call has a cost
_CHUNK_VALUES = 1 << 20  # in a temporary array during a pass over samples
_MAX_SQUARED_RATIO = 1e7  # (m / s)² from which products would lose half of a density's digits


def log_gaussians(X: Array, means: Array, stds: Array) -> Array:
    r"""Log-densities of axis-aligned Gaussians, :math:`\log\mathcal{N}(x_i; m_k, s_k)`.

    NaN marks a missing value, and the density is that of the other features of the row: for
    axis-aligned Gaussians, marginalization leaves the missing features out of the product.

    Two matrix products around a common center. Components whose deviations are tiny compared with
    the distance to that center use differences instead, because products would cancel.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    means, stds : ndarray of shape (K, d), stds > 0

    Returns
    -------
    ndarray of shape (n, K)

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.mixture import log_gaussians
    >>> log_gaussians(np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1)))
    array([[-0.91893853]])
    """
    xp, (n, d) = namespace(X), X.shape
    center = means.mean(axis=0)
    kernel = LogGaussians.around(means - center, stds).like(X)
    center = as_like(center, X)
    out = empty((len(means), n), X)
    step = max(1, _CHUNK_VALUES // d)
    for start in range(0, n, step):
        x = X[start : start + step] - center
        density = kernel.marginal(x) if has_gaps(x) else kernel(x, xp.square(x))
        out[:, start : start + step] = density
    by_sample: Array = out.T
    return by_sample


def posterior_blocks(
    X: Array, means: Array, stds: Array, log_weights: Array
) -> Iterator[tuple[slice, Array, Array]]:
    r"""Yield rows, their posteriors :math:`P(k \mid x)` (K, n) and log-densities (n,).

    Blocks stay in the cache from the densities to whatever is made of the posteriors, and large
    arrays are divided among threads. Arrays of torch or CuPy are one block, on their device.
    """
    xp, (n, d) = namespace(X), X.shape
    center = means.mean(axis=0)
    kernel = LogGaussians.around(means - center, stds).like(X)
    center, log_weights = as_like(center, X), as_like(log_weights[:, None], X)
    step = min(n, rows_per_step(len(means), d)) if xp is np else n

    def evaluate(start: int) -> tuple[slice, Array, Array]:
        rows = slice(start, start + step)
        x = X[rows] - center
        posterior = kernel.marginal(x) if has_gaps(x) else kernel(x, xp.square(x))
        posterior += log_weights
        return rows, posterior, normalize_log_rows(posterior.T)

    with thread_map(xp is np and X.size >= _MIN_VALUES_FOR_THREADS) as run:
        yield from run(evaluate, range(0, n, step))


def rows_per_step(n_components: int, n_features: int) -> int:
    """Return how many samples to evaluate at once: products with few rows are the fastest.

    Such a product has n·d·K multiplications. Up to a million of them, OpenBLAS skips the packing
    that makes large products fast, and with K = 5 and d = 2048 a product takes a third of the time
    per sample.
    """
    small = _SMALL_PRODUCT // (n_components * n_features)
    most = max(1, VALUES_PER_STEP // max(n_components, n_features))
    return min(small, most) if small >= _MIN_SMALL_ROWS else most


def rows_at_once(x: Array, n_components: int) -> int:
    """Return how many rows of `x` to process at once, on its device."""
    n_features = int(x.shape[1])
    if namespace(x) is np:
        return rows_per_step(n_components, n_features)
    return max(1, _DEVICE_VALUES // n_features)


@dataclass(frozen=True, eq=False)
class LogGaussians:
    r"""The density kernel :math:`c_k + x \cdot m_k/s_k^2 - x^2 \cdot 1/(2 s_k^2)`.

    Samples and means are relative to a center near both. Rows are components, so that reductions
    over samples run along contiguous memory.
    """

    constants: Array  # (K, 1)
    linear: Array  # (K, d)
    quadratic: Array  # (K, d)
    means: Array
    stds: Array
    distant: tuple[int, ...]  # components where the products would cancel

    @classmethod
    def around(cls, means: Array, stds: Array) -> LogGaussians:
        """Prepare the densities of components whose `means` are already centered."""
        precisions = stds**-2.0
        linear = means * precisions
        squares = means * linear
        constants = -0.5 * (means.shape[1] * _LOG_2PI + squares.sum(axis=1))
        constants -= np.log(stds).sum(axis=1)
        distant = np.flatnonzero(squares.max(axis=1) >= _MAX_SQUARED_RATIO)
        precisions *= -0.5
        return cls(constants[:, None], linear, precisions, means, stds, tuple(distant.tolist()))

    def like(self, x: Array) -> LogGaussians:
        """Return the same densities with the library, precision and device of `x`."""
        if namespace(x) is np:
            return self
        names = ("constants", "linear", "quadratic", "means", "stds")
        return replace(self, **{name: as_like(getattr(self, name), x) for name in names})

    def __call__(self, x: Array, squares: Array, memory: Array | None = None) -> Array:
        """Log-densities of centered samples `x` (n, d), given their `squares`: shape (K, n).

        `memory`, of shape (2, K, n), holds the result and temporary values.
        """
        xp, (out, more) = namespace(x), (None, None) if memory is None else memory
        log_density: Array = xp.matmul(self.linear, x.T, out=out)
        log_density += xp.matmul(self.quadratic, squares.T, out=more)
        log_density += self.constants
        for k in self.distant:
            scaled = (x - self.means[k]) / self.stds[k]
            constant = self.means.shape[1] * _LOG_2PI + 2.0 * xp.log(self.stds[k]).sum()
            log_density[k] = -0.5 * (xp.einsum("ij,ij->i", scaled, scaled) + constant)
        return log_density

    def marginal(self, x: Array) -> Array:
        """Log-densities of the observed features of centered samples with NaN: shape (K, n)."""
        xp = namespace(x)
        observed = xp.ones_like(x)
        observed[xp.isnan(x)] = 0.0
        filled = xp.nan_to_num(x)
        by_feature = -0.5 * (_LOG_2PI + self.means * self.linear) - xp.log(self.stds)
        log_density: Array = self.linear @ filled.T
        log_density += self.quadratic @ xp.square(filled).T
        log_density += by_feature @ observed.T
        for k in self.distant:
            scaled = observed * (filled - self.means[k]) / self.stds[k]
            constants = observed @ (_LOG_2PI + 2.0 * xp.log(self.stds[k]))
            log_density[k] = -0.5 * (xp.einsum("ij,ij->i", scaled, scaled) + constants)
        return log_density


def has_gaps(x: Array) -> bool:
    """Return whether some values are missing (NaN); `x` has no infinite values."""
    return bool(namespace(x).isnan(x.sum()))


def normalize_log_rows(log_joint: Array) -> Array:
    """Turn rows of log-weights into probabilities in place; return their log-sum-exp, shape (n,).

    The largest weight of each row is subtracted first, so that sums do not underflow.
    """
    xp = namespace(log_joint)
    largest = xp.amax(log_joint, axis=1)
    log_joint -= largest[:, None]
    xp.exp(log_joint, out=log_joint)
    total: Array = log_joint.sum(axis=1)
    log_joint /= total[:, None]
    xp.log(total, out=total)
    total += largest
    return total
