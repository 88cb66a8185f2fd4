"""Mixtures with differential privacy: Gaussian noise on clipped sufficient statistics.

What is published is a function of noisy sums over the rows, of public settings and of independent
random numbers. Nothing else depends on the data: no range, no k-means++, no stopping rule.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from mixda._core.errors import MixdaError
from mixda._core.typing import Array, Codes
from mixda._core.validation import (
    check_array,
    check_number,
    check_positive_int,
    check_random_state,
    check_X,
    encode_classes,
)
from mixda.chunks import column_names
from mixda.mixture import Mixture, log_gaussians, normalize_log_rows

PRIVACY = "privacy"  # key in `info`

_COUNT_SHARE, _MEAN_SHARE, _SQUARE_SHARE = 0.15, 0.5, 0.35  # of the budget of a pass
_FIRST_SHARE = 0.5  # of the whole budget, for the pass that finds the Gaussian of each class
_MIN_COUNT = 2.0  # standard deviations of its noise, below which a count says nothing
_SHRINKAGE = 0.5  # relative spread of variances between components that noise is compared with


def fit_private_mixture(
    X: ArrayLike,
    y: ArrayLike | None = None,
    n_components: int = 1,
    *,
    bounds: ArrayLike,
    epsilon: float,
    delta: float = 1e-5,
    classes: ArrayLike | None = None,
    clip_norm: float | None = None,
    n_passes: int = 4,
    min_std: float = 0.02,
    random_state: Any = None,
) -> Mixture:
    r"""Fit a mixture with :math:`(\varepsilon, \delta)`-differential privacy.

    For any two data sets that differ by one row, and any set :math:`S` of mixtures,

    .. math:: P(\hat p(X) \in S) \le e^\varepsilon P(\hat p(X') \in S) + \delta.

    Rows are scaled to :math:`z \in [-1, 1]^d` by `bounds` and clipped to a norm of at most
    :math:`R`, `clip_norm`. Each pass publishes the sufficient statistics with Gaussian noise,

    .. math:: \sum_i r_{ik} + \tfrac{1}{\mu_t \sqrt{w_n}} g, \quad
              \sum_i r_{ik} z_i + \tfrac{R}{\mu_t \sqrt{w_x}} g, \quad
              \sum_i r_{ik} z_i^2 + \tfrac{R}{\mu_t \sqrt{w_{xx}}} g

    with :math:`w_n + w_x + w_{xx} = 1`. A row has responsibilities :math:`\sum_k r_{ik} = 1`
    within its class and :math:`\lVert z^2 \rVert \le \lVert z \rVert \le R`, so each pass is
    :math:`\mu_t`-Gaussian differentially private, and all together are :math:`\mu`-private with
    :math:`\mu^2 = \sum_t \mu_t^2` [1]_. The largest :math:`\mu` that `epsilon` and `delta` allow
    follows from the exact formula for the Gaussian mechanism [2]_, see `gaussian_delta`.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Without missing values.
    y : array-like of shape (n,), optional
        Classes. With them, the mixture is labeled, and the classes are protected too.
    n_components : int
        Components, per class if there are classes. One needs a single pass, so it has the least
        noise.
    bounds : array-like of shape (d, 2)
        Lowest and highest value of each feature. Values outside are clipped. Take them from what
        you know about the features, not from the rows: they are not protected.
    epsilon, delta : float
        `delta` should be well below 1 / n.
    classes : array-like of shape (nc,)
        The classes, required with `y`: which classes occur is not published either.
    clip_norm : float, optional
        The largest norm R of a scaled row; longer ones are shortened. Default: half the
        largest that is possible, :math:`\sqrt d / 2`.
    n_passes : int
        EM passes after the first one, if `n_components` is more than one.
    min_std : float
        Floor of the standard deviations, in units of half the range of a feature.
    random_state : None, int or numpy generator
        Of the initial means. The noise comes from the operating system and has no seed: whoever
        knows the seed could subtract it.

    Returns
    -------
    Mixture
        ``info["privacy"]`` holds the settings; ``info["n_samples"]`` is the noisy number of rows.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B, 2022.
    .. [2] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy",
       ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda import fit_private_mixture
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> p = fit_private_mixture(X, bounds=[[-4, 4], [-4, 4]], epsilon=1.0)
    >>> bool(np.abs(p.means).max() < 0.2 and np.abs(p.stds - 1).max() < 0.3)
    True
    """
    names, X = column_names(X), check_X(X)
    low, high = _check_bounds(bounds, X.shape[1])
    budget = gaussian_budget(epsilon, delta)
    n_components = check_positive_int(n_components, "n_components")
    n_passes = check_positive_int(n_passes, "n_passes") if n_components > 1 else 0
    floor = check_number(min_std, "min_std", above=True)
    radius = 0.5 * np.sqrt(X.shape[1]) if clip_norm is None else clip_norm
    radius = check_number(radius, "clip_norm", above=True)
    known, codes = _check_classes(y, classes, len(X))
    Z = _scaled(X, low, high, radius)
    rng = check_random_state(random_state)
    first = budget if n_passes == 0 else budget * np.sqrt(_FIRST_SHARE)
    n_classes = 1 if known is None else len(known)
    sums = _release(Z, codes, None, n_classes, 1, first, radius)
    state = _Gaussians.of_classes(sums).shrunk(floor)
    if n_passes:
        each = budget * np.sqrt((1.0 - _FIRST_SHARE) / n_passes)
        state = state.split(n_components, rng)
        for _ in range(n_passes):
            sums = _release(Z, codes, state, n_classes, n_components, each, radius)
            state = state.updated(sums).shrunk(floor)
    half, middle = 0.5 * (high - low), 0.5 * (high + low)
    labels = None
    if known is not None:
        labels = np.repeat(np.eye(len(known)), n_components, axis=0)
    counts = state.counts.ravel()
    settings = {"epsilon": epsilon, "delta": delta, "clip_norm": float(radius)}
    settings |= {"bounds": np.column_stack([low, high]).tolist(), "passes": 1 + n_passes}
    return Mixture(
        counts / counts.sum(),
        state.means.reshape(-1, X.shape[1]) * half + middle,
        state.stds.reshape(-1, X.shape[1]) * half,
        labels,
        known,
        names,
        {"n_samples": max(1, round(float(counts.sum()))), PRIVACY: settings},
    )


def gaussian_delta(mu: float, epsilon: float) -> float:
    r"""Return the smallest :math:`\delta` of a :math:`\mu`-Gaussian differentially private release.

    .. math:: \delta(\varepsilon) = \Phi\Bigl(\frac{\mu}{2} - \frac{\varepsilon}{\mu}\Bigr)
              - e^\varepsilon \Phi\Bigl(-\frac{\mu}{2} - \frac{\varepsilon}{\mu}\Bigr)

    A Gaussian mechanism whose noise has :math:`1 / \mu` times the standard deviation of its
    sensitivity is such a release, and so are several of them with :math:`\sum_t \mu_t^2 = \mu^2`.

    Examples
    --------
    >>> from mixda.em import gaussian_delta
    >>> round(gaussian_delta(1.0, 1.0), 4)
    0.1269
    """
    tail = np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
    return float(ndtr(mu / 2 - epsilon / mu) - tail)


def gaussian_budget(epsilon: float, delta: float) -> float:
    r"""Return the largest :math:`\mu` that `epsilon` and `delta` allow, see `gaussian_delta`.

    Examples
    --------
    >>> from mixda.em import gaussian_budget, gaussian_delta
    >>> round(gaussian_delta(gaussian_budget(1.0, 1e-5), 1.0), 8)
    1e-05
    """
    epsilon = check_number(epsilon, "epsilon", above=True)
    delta = check_number(delta, "delta", above=True)
    if delta >= 1.0 or epsilon > 1000.0:
        raise MixdaError(
            f"epsilon must be at most 1000 and delta below 1, got {epsilon:g} and {delta:g}."
        )
    return float(brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, 1e-8, 1e4, xtol=1e-12))


@dataclass(frozen=True, eq=False)
class _Sums:
    """Noisy sums per class and component, and the standard deviations of their noise."""

    counts: Array  # (nc, K)
    x: Array  # (nc, K, d)
    xx: Array
    count_noise: float
    square_noise: float


@dataclass(frozen=True, eq=False)
class _Gaussians:
    """Components of all classes in scaled units; a function of noisy sums only."""

    counts: Array
    means: Array
    stds: Array
    uncertainty: Array  # standard deviation of the noise in each variance, shape (nc, K, 1)

    @classmethod
    def of_classes(cls, sums: _Sums) -> _Gaussians:
        """Return one Gaussian per class; one of too few rows is that of all rows."""
        total = _Sums(
            sums.counts.sum(axis=0, keepdims=True),
            sums.x.sum(axis=0, keepdims=True),
            sums.xx.sum(axis=0, keepdims=True),
            sums.count_noise * np.sqrt(len(sums.counts)),
            sums.square_noise * np.sqrt(len(sums.counts)),
        )
        shape = sums.x.shape
        nothing = cls(np.ones((1, 1)), np.zeros(total.x.shape), np.full(total.x.shape, 0.5), _ZERO)
        whole = nothing.updated(total)
        return cls(
            np.ones(shape[:2]),
            np.broadcast_to(whole.means, shape),
            np.broadcast_to(whole.stds, shape),
            np.broadcast_to(whole.uncertainty, (*shape[:2], 1)),
        ).updated(sums)

    def updated(self, sums: _Sums) -> _Gaussians:
        """Return the parameters after an M-step; components of too few rows keep their own."""
        least = max(_MIN_COUNT * sums.count_noise, 1.0)
        alive = (sums.counts >= least)[..., None]
        n = np.maximum(sums.counts, least)[..., None]
        means = np.clip(sums.x / n, -1.0, 1.0)
        variances = np.clip(sums.xx / n - means**2, 0.0, 1.0)
        return _Gaussians(
            np.maximum(sums.counts, 1e-3 * least),
            np.where(alive, means, self.means),
            np.where(alive, np.sqrt(variances), self.stds),
            np.where(alive, sums.square_noise / n, self.uncertainty),
        )

    def shrunk(self, floor: float) -> _Gaussians:
        """Shrink noisy variances toward their mean over all components, and raise them to a floor.

        The less noise, the less they move: a variance v with noise of standard deviation u
        becomes (v + q m) / (1 + q), q = (u / (m / 2))², with m the mean over the components.
        """
        weights = self.counts / self.counts.sum()
        mean = np.maximum(np.einsum("ck,ckd->d", weights, self.stds**2), floor**2)
        q = (self.uncertainty / (_SHRINKAGE * mean)) ** 2
        variances = np.maximum((self.stds**2 + q * mean) / (1.0 + q), floor**2)
        return _Gaussians(self.counts, self.means, np.sqrt(variances), self.uncertainty)

    def split(self, k: int, rng: np.random.Generator) -> _Gaussians:
        """Return k components per class, with means drawn from its Gaussian."""
        shape = (len(self.counts), k, self.means.shape[2])
        means = np.clip(self.means + self.stds * rng.standard_normal(shape), -1.0, 1.0)
        return _Gaussians(
            np.repeat(self.counts / k, k, axis=1),
            means,
            np.broadcast_to(self.stds, shape),
            np.broadcast_to(self.uncertainty, (*shape[:2], 1)),
        )


_ZERO = np.zeros((1, 1, 1))


def _release(
    Z: Array, codes: Codes, state: _Gaussians | None, nc: int, k: int, mu: float, radius: float
) -> _Sums:
    """Return the sums over the rows of each class, with noise; the only use of the rows."""
    counts, x, xx = _sums(Z, codes, state, nc, k)
    count_noise = 1.0 / (mu * np.sqrt(_COUNT_SHARE))
    mean_noise = radius / (mu * np.sqrt(_MEAN_SHARE))
    square_noise = radius / (mu * np.sqrt(_SQUARE_SHARE))
    return _Sums(
        counts + count_noise * _secret_normal(counts.shape),
        x + mean_noise * _secret_normal(x.shape),
        xx + square_noise * _secret_normal(xx.shape),
        count_noise,
        square_noise,
    )


def _sums(
    Z: Array, codes: Codes, state: _Gaussians | None, nc: int, k: int
) -> tuple[Array, Array, Array]:
    d = Z.shape[1]
    counts, x, xx = np.zeros((nc, k)), np.zeros((nc, k, d)), np.zeros((nc, k, d))
    for c in range(nc):
        rows = Z[codes == c]
        r = np.ones((len(rows), 1))
        if state is not None:
            r = log_gaussians(rows, state.means[c], state.stds[c])
            r += np.log(state.counts[c] / state.counts[c].sum())
            normalize_log_rows(r)
        counts[c], x[c], xx[c] = r.sum(axis=0), r.T @ rows, r.T @ rows**2
    return counts, x, xx


def _secret_normal(shape: tuple[int, ...]) -> Array:
    """Return normal random numbers that nobody can reproduce."""
    bits = np.frombuffer(os.urandom(8 * int(np.prod(shape))), dtype=np.uint64)
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(ndtri(uniform)).reshape(shape)


def _scaled(X: Array, low: Array, high: Array, radius: float) -> Array:
    """Return rows in [-1, 1]^d with norms of at most `radius`."""
    Z = np.clip((2.0 * X - low - high) / (high - low), -1.0, 1.0)
    norms = np.sqrt((Z**2).sum(axis=1, keepdims=True))
    return np.asarray(Z * np.minimum(1.0, radius / np.maximum(norms, 1e-300)))


def _check_bounds(bounds: Any, d: int) -> tuple[Array, Array]:
    bounds = check_array(bounds, "bounds", ndim=2)
    if bounds.shape != (d, 2) or not (bounds[:, 0] < bounds[:, 1]).all():
        raise MixdaError(
            f"bounds must be a lowest and a larger highest value for each of the {d} features, got "
            f"an array of shape {bounds.shape}."
        )
    return bounds[:, 0], bounds[:, 1]


def _check_classes(y: Any, classes: Any, n: int) -> tuple[Any, Codes]:
    if y is None:
        return None, np.zeros(n, dtype=np.intp)
    if classes is None:
        raise MixdaError(
            "classes must be given with y, because which classes occur is private; name all that "
            "may occur."
        )
    return encode_classes(y, classes, n)
