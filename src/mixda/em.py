"""Fitting mixtures by expectation-maximisation: the only place of mixda that touches samples.

The steps themselves are in `mixda._em_steps`; here are the public functions, what they accept,
and the choices around the loop (floor, start, restarts, number of components).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._em_steps import CHUNK_VALUES, Chunk, Map, Parameters, expectation, local_map, m_step
from mixda._kmeans import kmeans_plusplus, lloyd
from mixda._validation import (
    LARGEST,
    Array,
    check_array,
    check_choice,
    check_names,
    check_positive_int,
    check_random_state,
    check_X,
)
from mixda.mixture import Mixture

_LEAST_STD = 10.0 / LARGEST  # the least floor
_RELATIVE_FLOOR = 1e-3  # of a feature's standard deviation
_SEED_ROWS = 10_000  # seeding looks at no more rows than this (or 20 per component)
_PATIENCE = 2  # rungs of the BIC ladder without progress before it ends


def fit_mixture(
    X: ArrayLike,
    n_components: int | Literal["bic"] = 1,
    *,
    min_std: float | ArrayLike | Literal["auto"] = "auto",
    sample_weight: ArrayLike | None = None,
    n_init: int = 1,
    max_iter: int = 100,
    tol: float = 1e-4,
    init: Mixture | None = None,
    max_components: int = 16,
    chunk_size: int | None = None,
    random_state: Any = None,
    verbose: bool = False,
) -> Mixture:
    r"""Fit an axis-aligned Gaussian mixture by expectation-maximisation.

    .. math:: \max_{p, m, s \geq s_{\min}} \;
              \sum_i w_i \log \sum_{k=1}^{K} p_k \, \mathcal{N}(x_i; m_k, \mathrm{diag}(s_k)^2)

    Parameters
    ----------
    X : array-like of shape (n, d)
    n_components : int or "bic"
        Number of components K; ``"bic"`` climbs 1, 2, 3, 4, 6, 8, 12, … up to `max_components`
        and keeps the least Bayesian information criterion.
    min_std : float, array-like of shape (d,), or "auto"
        Floor of the standard deviations. ``"auto"`` is
        :math:`10^{-3} \max(\sigma_j, \bar\sigma)`, with :math:`\sigma_j` the standard deviation
        of feature j in `X` and :math:`\bar\sigma` its average over the features, so that a
        constant feature cannot rule a classifier; if all features are constant it is
        :math:`10^{-6} (1 + \max_j |\bar x_j|)`. Standardise features whose units differ by more
        than a factor of a thousand, or give one floor per feature.
    sample_weight : array-like of shape (n,), optional
        Non-negative importance of each sample; only ratios matter.
    n_init : int
        Number of k-means++ starts; the best likelihood is kept.
    max_iter : int
        Largest number of EM iterations per start.
    tol : float
        Stop when the mean log-likelihood changes by less than this. Zero: never stop early.
    init : Mixture, optional
        Start from this mixture (its number of components replaces `n_components`).
    max_components : int
        Upper end of the ladder of ``"bic"``.
    chunk_size : int, optional
        Rows per step of a pass. Default: what fits in cache. Changes the speed, not the result.
    random_state : None, int, RandomState or Generator
    verbose : bool
        Show the iterations on standard error if it is a terminal.

    Returns
    -------
    Mixture
        Without labels. A component that loses all its samples keeps its place with a weight
        of about 1e-15.

    Notes
    -----
    Statistics are taken around the mean c of the data. Offsets of any size are harmless;
    the relative error of a variance is about :math:`10^{-16} (m_k - c)^2 / s_k^2`, at most
    :math:`10^{-10} / p_k` with the default floor. With a floor of your own far below it,
    standard deviations under :math:`10^{-7} |m_k - c|` are not resolved.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda import fit_mixture
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> p = fit_mixture(X, 2, random_state=0)
    >>> np.sort(p.means, axis=0).ravel(), p.stds.ravel()
    (array([ 0.5, 10.5]), array([0.5, 0.5]))
    """
    X = check_X(X)
    settings = _Settings.checked(n_components, n_init, max_iter, tol, max_components, chunk_size)
    if init is not None:
        settings = settings.starting_from(init, X.shape[1])
    if settings.n_components != "bic" and settings.n_components > len(X) and init is None:
        raise ValueError(
            f"n_components={settings.n_components} is more than the {len(X)} sample(s) of X; "
            "ask for fewer components or give more samples."
        )
    rng = check_random_state(random_state)
    X, weight, _ = _weighed(X, sample_weight)
    center, spread = _moments(X, weight)
    _check_varies(X, spread)
    floor = _floor(min_std, center, spread)
    progress = _Progress(verbose)
    with local_map(X.size) as run:
        mixture = _fit(_Task(X - center, weight, center, floor, settings, run, progress), rng)
    progress.close()
    return mixture


def fit_labeled_mixture(
    X: ArrayLike,
    y: ArrayLike,
    n_components: int | Literal["bic"] = 1,
    *,
    class_prior: Literal["empirical", "uniform"] = "empirical",
    min_std: float | ArrayLike | Literal["auto"] = "auto",
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    n_init: int = 1,
    max_iter: int = 100,
    tol: float = 1e-4,
    max_components: int = 16,
    chunk_size: int | None = None,
    random_state: Any = None,
    verbose: bool = False,
) -> Mixture:
    r"""Fit one mixture per class and join them, every component labelled with its class.

    .. math:: P = \sum_{y} \pi_y \sum_{k} p_{y,k} \, \mathcal{N}(m_{y,k}, s_{y,k}), \qquad
              v_{y,k} = \mathrm{onehot}(y)

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,)
        Classes: strings, integers, booleans, …
    n_components : int or "bic"
        Components **per class**, limited by the class's number of distinct samples.
    class_prior : "empirical" or "uniform"
        Mass of each class: its share of the (weighted) samples, or the same for all present.
    min_std, sample_weight, n_init, max_iter, tol, max_components, chunk_size
        As in `fit_mixture`; the scale behind ``min_std="auto"`` is that of the whole of `X`.
    classes : array-like of shape (nc,), optional
        Names and order of the columns of `labels`. Classes that do not occur in `y` get a
        column but no component. Default: the sorted values of `y`.
    random_state, verbose
        As in `fit_mixture`.

    Returns
    -------
    Mixture
        Labelled; components in the order of the classes.

    Examples
    --------
    >>> from mixda import fit_labeled_mixture
    >>> p = fit_labeled_mixture([[0.0], [1.0], [9.0]], ["ok", "ok", "fault"], random_state=0)
    >>> p.classes, p.weights, p.means.ravel()
    (array(['fault', 'ok'], dtype='<U5'), array([0.33333333, 0.66666667]), array([9. , 0.5]))
    """
    X = check_X(X)
    settings = _Settings.checked(n_components, n_init, max_iter, tol, max_components, chunk_size)
    check_choice(class_prior, "class_prior", ("empirical", "uniform"))
    names, codes = _encode(y, classes, len(X))
    rng = check_random_state(random_state)
    X, weight, kept = _weighed(X, sample_weight)
    codes = codes[kept]
    center, spread = _moments(X, weight)
    _check_varies(X, spread)
    floor = _floor(min_std, center, spread)
    progress = _Progress(verbose)
    present, masses, parts = np.unique(codes), [], []
    with local_map(X.size) as run:
        for code in present:
            rows = np.flatnonzero(codes == code)
            part, part_weight = X[rows], None
            masses.append(float(len(rows)))
            if weight is not None:
                masses[-1] = float(weight[rows].sum())
                part_weight = weight[rows] / weight[rows].mean()
            center, _ = _moments(part, part_weight)
            part -= center
            progress.title = f"class {names[code]}, "
            limited = settings.limited(_count_distinct(part, settings.largest))
            task = _Task(part, part_weight, center, floor, limited, run, progress)
            parts.append(_fit(task, rng))
    progress.close()
    prior = np.array(masses) if class_prior == "empirical" else np.ones(len(masses))
    return _join(parts, prior / prior.sum(), np.eye(len(names))[present], names)


@dataclass(frozen=True)
class _Settings:
    n_components: int | Literal["bic"]
    n_init: int
    max_iter: int
    tol: float
    max_components: int
    chunk_size: int | None
    init: Mixture | None = None

    @classmethod
    def checked(
        cls, n_components: Any, n_init: Any, max_iter: Any, tol: Any, most: Any, chunk_size: Any
    ) -> _Settings:
        if isinstance(n_components, str):
            if n_components != "bic":
                raise ValueError(
                    f"n_components must be a positive integer or 'bic', got {n_components!r}."
                )
        else:
            n_components = check_positive_int(n_components, "n_components")
        if not isinstance(tol, (int, float, np.number)) or not 0 <= tol < np.inf:
            raise ValueError(f"tol must be a number of at least zero, got {tol!r}.")
        return cls(
            n_components,
            check_positive_int(n_init, "n_init"),
            check_positive_int(max_iter, "max_iter"),
            float(tol),
            check_positive_int(most, "max_components"),
            None if chunk_size is None else check_positive_int(chunk_size, "chunk_size"),
        )

    @property
    def largest(self) -> int:
        return self.max_components if self.n_components == "bic" else self.n_components

    def limited(self, most: int) -> _Settings:
        if self.n_components == "bic":
            return replace(self, max_components=min(self.max_components, most))
        return replace(self, n_components=min(self.n_components, most))

    def starting_from(self, init: Mixture, n_features: int) -> _Settings:
        if not isinstance(init, Mixture):
            raise ValueError(f"init must be a Mixture or None, got {type(init).__name__}.")
        if init.n_features != n_features:
            raise ValueError(
                f"init has {init.n_features} features, but X has {n_features}; "
                "fit it on the same columns."
            )
        return replace(self, n_components=init.n_components, n_init=1, init=init)


@dataclass(frozen=True, eq=False)
class _Task:
    """Samples around their centre, the floor, and how to pass over them."""

    x: Array
    weight: Array | None  # mean one
    center: Array
    floor: Array
    settings: _Settings
    run: Map
    progress: _Progress

    def chunks(self, n_components: int) -> list[Chunk]:
        n, d = self.x.shape
        step = self.settings.chunk_size or max(1, CHUNK_VALUES // max(d, n_components))
        parts = [slice(start, start + step) for start in range(0, n, step)]
        return [(self.x[p], None if self.weight is None else self.weight[p]) for p in parts]


def _fit(task: _Task, rng: np.random.Generator) -> Mixture:
    """Fit the asked or, by BIC, the best number of components."""
    if task.settings.n_components != "bic":
        return _mixture(_best_of_starts(task, task.settings.n_components, rng)[0], task.center)
    n, d = task.x.shape
    chosen, least, waited = None, np.inf, 0
    for k in _ladder(min(task.settings.max_components, n)):
        parameters, loglik = _best_of_starts(task, k, rng)
        bic = (2 * k * d + k - 1) * np.log(n) - 2.0 * n * loglik
        waited += 1
        if chosen is None or bic < least:
            chosen, least, waited = parameters, bic, 0
        if waited == _PATIENCE:
            break
    return _mixture(chosen, task.center)  # type: ignore[arg-type]


def _ladder(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, 16, … and `most`."""
    rungs = sorted({2**i for i in range(most.bit_length())} | {3 * 2**i for i in range(63)})
    return [k for k in rungs if k < most] + [most]


def _best_of_starts(task: _Task, k: int, rng: np.random.Generator) -> tuple[Parameters, float]:
    """Return the parameters with the best mean log-likelihood, and that likelihood."""
    chunks = task.chunks(k)
    if task.settings.n_components != "bic" and task.settings.n_init == 1:
        return _iterate(task, chunks, _start(task, k, rng)), np.nan  # nothing to compare with
    found: list[tuple[Parameters, float]] = []
    for _ in range(task.settings.n_init):
        parameters = _iterate(task, chunks, _start(task, k, rng))
        stats = expectation(chunks, parameters, task.run)
        found.append((parameters, stats.loglik / stats.weight))
    return max(found, key=lambda pair: pair[1])


def _iterate(task: _Task, chunks: Sequence[Chunk], parameters: Parameters) -> Parameters:
    """Expectation-maximisation from given parameters until the mean log-likelihood settles."""
    last = -np.inf
    for iteration in range(task.settings.max_iter):
        stats = expectation(chunks, parameters, task.run)
        parameters = m_step(stats, task.floor, parameters)
        mean = stats.loglik / stats.weight
        task.progress.show(len(parameters.means), iteration + 1, mean)
        if abs(mean - last) < task.settings.tol:
            break
        last = mean
    return parameters


def _start(task: _Task, k: int, rng: np.random.Generator) -> Parameters:
    """Return the parameters of `init`, or those of a k-means clustering of (a part of) the data.

    The variance of a cluster of n_k samples is mixed with one sample's worth of the pooled
    variance, so that clusters of one sample do not start, and stay, at the floor.
    """
    init = task.settings.init
    if init is not None:
        least = 10.0 * np.finfo(np.float64).eps
        log_weights = np.log(np.maximum(init.weights, least))
        return Parameters(log_weights, init.means - task.center, np.maximum(init.stds, task.floor))
    x, weight = task.x, np.ones(len(task.x)) if task.weight is None else task.weight
    most = max(_SEED_ROWS, 20 * k)
    if len(x) > most:
        rows = np.sort(rng.choice(len(x), most, replace=False))
        x, weight = x[rows], weight[rows]
    means, members = lloyd(x, weight, kmeans_plusplus(x, weight, k, rng))
    n_k = members.sum(axis=1)
    within = members @ np.square(x) - n_k[:, None] * means**2
    pooled = within.sum(axis=0) / weight.sum()
    variances = (np.maximum(within, 0.0) + pooled) / (n_k[:, None] + 1.0)
    log_weights = np.log(np.maximum(n_k, 1e-3)) - np.log(np.maximum(n_k, 1e-3).sum())
    return Parameters(log_weights, means, np.sqrt(np.maximum(variances, task.floor**2)))


class _Progress:
    """One line on standard error that is overwritten, and nothing at all in a pipe."""

    def __init__(self, verbose: bool) -> None:
        self.active = bool(verbose) and sys.stderr.isatty()
        self.title = ""

    def show(self, n_components: int, iteration: int, loglik: float) -> None:
        if self.active:
            text = f"{self.title}{n_components} component(s), iteration {iteration}"
            sys.stderr.write(f"\r\x1b[K{text}: mean log-likelihood {loglik:.6g}")
            sys.stderr.flush()

    def close(self) -> None:
        if self.active:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _weighed(X: Array, sample_weight: ArrayLike | None) -> tuple[Array, Array | None, Any]:
    """Return the samples of positive weight, weights of mean one, and which rows were kept."""
    if sample_weight is None:
        return X, None, slice(None)
    weight = check_array(sample_weight, "sample_weight", ndim=1)
    if len(weight) != len(X):
        raise ValueError(f"sample_weight has length {len(weight)}, but X has {len(X)} samples.")
    if (weight < 0).any() or not weight.any():
        raise ValueError(
            f"sample_weight must be non-negative with a positive sum, got a minimum of "
            f"{weight.min():.6g} and a sum of {weight.sum():.6g}."
        )
    kept = weight > 0
    weight = weight[kept] / weight.max()
    return X[kept], weight / weight.mean(), kept


def _moments(X: Array, weight: Array | None) -> tuple[Array, Array]:
    """Mean and standard deviation per feature; exact for a constant feature at any offset."""
    n, step = len(X), max(1, CHUNK_VALUES // X.shape[1])
    w = np.ones(n) if weight is None else weight
    center, total = X[0].copy(), np.zeros(X.shape[1])
    for power in (1, 2):
        total[:] = 0.0
        for start in range(0, n, step):
            total += w[start : start + step] @ (X[start : start + step] - center) ** power
        if power == 1:
            center += total / w.sum()
    return center, np.sqrt(total / w.sum())


def _check_varies(X: Array, spread: Array) -> None:
    least = _LEAST_STD / _RELATIVE_FLOOR
    if spread.max() < least and np.ptp(X, axis=0).any():
        raise ValueError(f"X varies by less than {least:.0e}, too little for squares; rescale it.")


def _floor(min_std: Any, center: Array, spread: Array) -> Array:
    """Smallest standard deviation of each feature, shape (d,); the formula is in `fit_mixture`."""
    if isinstance(min_std, str):
        check_choice(min_std, "min_std", ("auto",))
        if not spread.any():
            return np.full(len(center), 1e-6 * (1.0 + np.abs(center).max()))
        floor: Array = _RELATIVE_FLOOR * np.maximum(spread, spread.mean())
        return floor
    given = np.asarray(min_std)
    if given.dtype.kind not in "fiu" or given.shape not in ((), center.shape):
        raise ValueError(
            f"min_std must be 'auto', a number or {len(center)} numbers (one per feature), "
            f"got {min_std!r}."
        )
    if not (np.isfinite(given).all() and (given >= _LEAST_STD).all() and (given <= LARGEST).all()):
        raise ValueError(
            f"min_std must be finite and above zero ({_LEAST_STD:.0e} to {LARGEST:.0e}), "
            f"got {min_std!r}."
        )
    return np.broadcast_to(given.astype(np.float64), center.shape)


def _encode(y: Any, classes: Any, n: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Names of the classes and, for each sample, the place of its class among them."""
    y = check_names(y, "y")
    if len(y) != n:
        raise ValueError(f"y has length {len(y)}, but X has {n} samples.")
    present, codes = np.unique(y, return_inverse=True)
    if classes is None:
        return present, codes
    names = check_names(classes, "classes")
    if (names.dtype.kind == "U") != (present.dtype.kind == "U"):
        raise ValueError("y and classes must both be strings or both be numbers.")
    if len(np.unique(names)) != len(names):
        raise ValueError(f"classes must be different names, got {names.tolist()!r}.")
    unknown = np.setdiff1d(present, names)
    if unknown.size:
        raise ValueError(f"y holds {unknown.tolist()!r}, not among classes {names.tolist()!r}.")
    order = np.argsort(names)
    return names, order[np.searchsorted(names, present, sorter=order)][codes]


def _count_distinct(x: Array, enough: int) -> int:
    """Count the distinct rows, but no further than `enough`."""
    seen: set[bytes] = set()
    for row in x:
        seen.add((row + 0.0).tobytes())
        if len(seen) >= enough:
            break
    return len(seen)


def _mixture(parameters: Parameters, center: Array) -> Mixture:
    weights = np.exp(parameters.log_weights)
    return Mixture(weights / weights.sum(), parameters.means + center, parameters.stds)


def _join(parts: list[Mixture], prior: Array, labels: Array, names: NDArray[Any]) -> Mixture:
    weights = np.concatenate([mass * p.weights for mass, p in zip(prior, parts, strict=True)])
    return Mixture(
        weights / weights.sum(),
        np.vstack([p.means for p in parts]),
        np.vstack([p.stds for p in parts]),
        np.repeat(labels, [p.n_components for p in parts], axis=0),
        names,
    )
