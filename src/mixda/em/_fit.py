"""Fitting mixtures by expectation-maximization: the only place of mixda that touches samples.

Here are the public functions and the fit of arrays in memory. The steps are in `mixda.em._steps`,
the choices around them (starts, floor, number of components) in `mixda.em._search`, and the fit
of data of any size in `mixda.em._stream`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._core.errors import MixdaError
from mixda._core.parallel import Map, thread_map
from mixda._core.progress import Progress
from mixda._core.validation import (
    Array,
    check_choice,
    check_names,
    check_positive_int,
    check_random_state,
    check_X,
    encode_classes,
)
from mixda.chunks import ChunkSource, column_names, from_arrays, from_dask, weighed
from mixda.em._passes import distinct_rows, moments_of
from mixda.em._search import Problem, Search, Settings, check_varies, floor_of
from mixda.em._steps import CHUNK_VALUES, Chunk, expectation
from mixda.em._stream import Fitted, Streaming, fit_source, seed_rows
from mixda.mixture import Mixture


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
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: str | Path | None = None,
    stepwise: bool = False,
    verbose: bool = False,
) -> Mixture:
    r"""Fit an axis-aligned Gaussian mixture by expectation-maximization.

    .. math:: \max_{p, m, s \geq s_{\min}} \;
              \sum_i w_i \log \sum_{k=1}^{K} p_k \, \mathcal{N}(x_i; m_k, \mathrm{diag}(s_k)^2)

    Parameters
    ----------
    X : array-like of shape (n, d), Dask array, or ChunkSource
        Data of any size come from `mixda.chunks`.
    n_components : int or "bic"
        Number of components K; ``"bic"`` climbs 1, 2, 3, 4, 6, 8, 12, … up to `max_components`
        and keeps the least Bayesian information criterion.
    min_std : float, array-like of shape (d,), or "auto"
        Floor of the standard deviations. ``"auto"`` is
        :math:`10^{-3} \max(\sigma_j, \bar\sigma)`, with :math:`\sigma_j` the standard deviation
        of feature j in `X` and :math:`\bar\sigma` its average over the features, so that a
        constant feature cannot rule a classifier; if all features are constant it is
        :math:`10^{-6} (1 + \max_j |\bar x_j|)`. Standardize features whose units differ by more
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
    n_jobs : int, optional
        Read and pass over the parts of the data in this many processes (threads, if the data are
        in memory) of joblib. The result is the same to rounding wherever a fit runs.
    client : dask.distributed.Client or str, optional
        Do that on the workers of a Dask cluster, given by its client or its scheduler's address.
        Data stay in the memory of the workers if they fit there, else every pass reads them.
    checkpoint : path, optional
        Write the state to this file after every pass; if it exists, go on from there. It is
        deleted at the end. Needs an integer `random_state`.
    stepwise : bool
        Make a first pass in mini-batches, which brings the start closer when passes are dear.
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
    settings = Settings.checked(n_components, n_init, max_iter, tol, max_components, chunk_size)
    streaming = Streaming(n_jobs, client, checkpoint, stepwise)
    source = _source(X, None, sample_weight, chunk_size, streaming)
    if source is not None:
        if init is not None:
            settings = settings.starting_from(init, source.n_features)
        (fitted,) = fit_source(
            source,
            settings,
            streaming,
            by_label=False,
            by_domain=False,
            limit=0,
            min_std=min_std,
            standardize=False,
            random_state=random_state,
            verbose=verbose,
        )
        return fitted.mixture
    given, X = X, check_X(X)
    if init is not None:
        settings = settings.starting_from(init, X.shape[1])
    rng = check_random_state(random_state)
    X, weight, _ = weighed(X, sample_weight)
    settings.check_rows(len(X))
    moments = moments_of(X, weight)
    check_varies(moments.spread, moments.low, moments.high)
    floor = floor_of(min_std, moments.mean, moments.spread)
    problem = Problem(len(X), moments.mean, floor, np.ones(X.shape[1]), settings)
    rows = seed_rows(len(X), settings, rng) if init is None else None
    X = X - moments.mean
    with (
        thread_map(X.size >= 2 * CHUNK_VALUES) as run,
        Progress(max_iter, "EM", verbose) as progress,
    ):
        found = _fit_memory(problem, X, weight, rows, rng, run, progress, "")
    return replace(found, feature_names=column_names(given), info={"n_samples": len(X)})


def fit_labeled_mixture(
    X: ArrayLike,
    y: ArrayLike | None = None,
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
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: str | Path | None = None,
    stepwise: bool = False,
    verbose: bool = False,
) -> Mixture:
    r"""Fit one mixture per class and join them, every component labeled with its class.

    .. math:: P = \sum_{y} \pi_y \sum_{k} p_{y,k} \, \mathcal{N}(m_{y,k}, s_{y,k}), \qquad
              v_{y,k} = \mathrm{onehot}(y)

    Parameters
    ----------
    X : array-like of shape (n, d), Dask array, or ChunkSource
    y : array-like of shape (n,), or Dask array
        Classes: strings, integers, booleans, … A ChunkSource has its own.
    n_components : int or "bic"
        Components **per class**, limited by the class's number of distinct samples.
    class_prior : "empirical" or "uniform"
        Mass of each class: its share of the (weighted) samples, or the same for all present.
    min_std, sample_weight, n_init, max_iter, tol, max_components, chunk_size
        As in `fit_mixture`; the scale behind ``min_std="auto"`` is that of the whole of `X`.
    classes : array-like of shape (nc,), optional
        Names and order of the columns of `labels`. Classes that do not occur in `y` get a
        column but no component. Default: the sorted values of `y`.
    random_state, n_jobs, client, checkpoint, stepwise, verbose
        As in `fit_mixture`.

    Returns
    -------
    Mixture
        Labeled; components in the order of the classes.

    Examples
    --------
    >>> from mixda import fit_labeled_mixture
    >>> p = fit_labeled_mixture([[0.0], [1.0], [9.0]], ["ok", "ok", "fault"], random_state=0)
    >>> p.classes, p.weights, p.means.ravel()
    (array(['fault', 'ok'], dtype='<U5'), array([0.33333333, 0.66666667]), array([9. , 0.5]))
    """
    settings = Settings.checked(n_components, n_init, max_iter, tol, max_components, chunk_size)
    check_choice(class_prior, "class_prior", ("empirical", "uniform"))
    streaming = Streaming(n_jobs, client, checkpoint, stepwise)
    source = _source(X, y, sample_weight, chunk_size, streaming)
    if source is not None:
        fitted = fit_source(
            source,
            settings,
            streaming,
            by_label=True,
            by_domain=False,
            limit=1,
            min_std=min_std,
            standardize=False,
            random_state=random_state,
            verbose=verbose,
        )
        if classes is None and sample_weight is not None:  # also classes without weight
            classes = np.unique(check_names(y, "y"))
        return _labeled(fitted, class_prior, classes)
    given, X = X, check_X(X)
    names, codes = encode_classes(y, classes, len(X))
    rng = check_random_state(random_state)
    X, weight, kept = weighed(X, sample_weight)
    codes = codes[kept]
    whole = moments_of(X, weight)
    check_varies(whole.spread, whole.low, whole.high)
    floor, unit = floor_of(min_std, whole.mean, whole.spread), np.ones(X.shape[1])
    members = {int(code): np.flatnonzero(codes == code) for code in np.unique(codes)}
    parts: list[Fitted] = []
    limited = {
        code: settings.limited(len(distinct_rows(X[rows], settings.largest)))
        for code, rows in members.items()
    }
    chosen = {code: seed_rows(len(r), limited[code], rng) for code, r in members.items()}
    with (
        thread_map(X.size >= 2 * CHUNK_VALUES) as run,
        Progress(max_iter, "EM", verbose) as progress,
    ):
        for code, rows in members.items():
            part, part_weight, mass = X[rows], None, float(len(rows))
            if weight is not None:
                mass = float(weight[rows].sum())
                part_weight = weight[rows] / weight[rows].mean()
            center = moments_of(part, part_weight).mean
            part -= center
            problem = Problem(len(part), center, floor, unit, limited[code])
            title = f"class {names[code]}, "
            mixture = _fit_memory(
                problem, part, part_weight, chosen[code], rng, run, progress, title
            )
            parts.append(Fitted(None, names[code], mixture, len(part), mass))
    return replace(_labeled(parts, class_prior, names), feature_names=column_names(given))


def fit_domains(
    source: ChunkSource,
    n_components: int | Literal["bic"] = 1,
    *,
    class_prior: Literal["empirical", "uniform"] = "empirical",
    min_std: float | ArrayLike | Literal["auto"] = "auto",
    standardize: bool | Literal["auto"] = False,
    rows_per_component: int = 1,
    classes: ArrayLike | None = None,
    n_init: int = 1,
    max_iter: int = 100,
    tol: float = 1e-4,
    max_components: int = 16,
    random_state: Any = None,
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: str | Path | None = None,
    stepwise: bool = False,
    verbose: bool = False,
) -> dict[str | None, Mixture]:
    r"""Fit the mixtures of all domains of a source at once: one reading per EM iteration.

    Each comes out as if its domain was fitted alone, by `fit_labeled_mixture` if the source has
    classes, else by `fit_mixture`.

    Parameters
    ----------
    source : ChunkSource
        From `mixda.chunks`.
    n_components : int or "bic"
        Per class if there are classes, else per domain; limited by the distinct samples.
    class_prior, min_std, classes, n_init, max_iter, tol, max_components
        As in `fit_labeled_mixture`.
    standardize : bool or "auto"
        Find the mixture of a domain in units of its standard deviations, and give it in the
        units of the data. ``"auto"``: if these differ by more than a factor of a hundred.
    rows_per_component : int
        Mixtures with fewer samples per component get fewer components.
    random_state, n_jobs, client, checkpoint, stepwise, verbose
        As in `fit_mixture`.

    Returns
    -------
    dict of Mixture
        By name of the domain, in order; None is the name if the source has no domains.

    Examples
    --------
    >>> from mixda import chunks, fit_domains
    >>> source = chunks.from_arrays([[0.0], [1.0], [5.0], [7.0]], domain=["a", "a", "b", "b"])
    >>> {name: mixture.means.item() for name, mixture in fit_domains(source).items()}
    {'a': 0.5, 'b': 6.0}
    """
    if not isinstance(source, ChunkSource):
        raise MixdaError(
            f"source must come from mixda.chunks, got {type(source).__name__}; "
            "chunks.from_arrays(X, y, domain) makes one."
        )
    check_choice(class_prior, "class_prior", ("empirical", "uniform"))
    fitted = fit_source(
        source,
        Settings.checked(n_components, n_init, max_iter, tol, max_components, None),
        Streaming(n_jobs, client, checkpoint, stepwise),
        by_label=source.has_label,
        by_domain=source.has_domain,
        limit=check_positive_int(rows_per_component, "rows_per_component"),
        min_std=min_std,
        standardize=check_choice(standardize, "standardize", (True, False, "auto")),
        random_state=random_state,
        verbose=verbose,
    )
    domains: dict[str | None, list[Fitted]] = {}
    for part in fitted:
        domains.setdefault(part.domain, []).append(part)
    return {
        domain: _labeled(parts, class_prior, classes) if source.has_label else parts[0].mixture
        for domain, parts in domains.items()
    }


def _source(
    X: Any, y: Any, sample_weight: Any, chunk_size: int | None, streaming: Streaming
) -> ChunkSource | None:
    """Return the data as a source of chunks, or None if they are arrays to be fitted here."""
    is_dask = type(X).__module__.split(".")[0] in ("dask", "dask_expr")
    if not is_dask and not isinstance(X, ChunkSource):
        if not streaming.asked:
            return None
        return from_arrays(X, y, sample_weight=sample_weight, rows=chunk_size)
    if sample_weight is not None:
        raise MixdaError("sample_weight goes with arrays only; chunks.from_arrays takes it.")
    if isinstance(X, ChunkSource):
        if y is not None:
            raise MixdaError("a ChunkSource has its own classes; make it with a label, without y.")
        return X
    return from_dask(X, y)


def _fit_memory(
    problem: Problem,
    x: Array,
    weight: Array | None,
    rows: NDArray[np.intp] | None,
    rng: np.random.Generator,
    run: Map,
    progress: Progress,
    title: str,
) -> Mixture:
    """Search over centerd samples in memory; `rows` are those that the seeding looks at."""
    if rows is not None:
        w = np.ones(len(rows)) if weight is None else weight[rows]
        problem = problem.seeded((x if len(rows) == len(x) else x[rows], w), rng)
    search = Search.begin(problem)
    while not search.done:
        k = len(search.parameters.means)
        chunks = _cut(x, weight, problem.settings.chunk_size, k)
        search = search.advance(problem, expectation(chunks, search.parameters, run))
        note = f"{title}{k} component(s), mean log-likelihood {search.last:.6g}"
        progress.update(search.iteration, note)
    return search.mixture(problem.center)


def _cut(x: Array, weight: Array | None, size: int | None, n_components: int) -> list[Chunk]:
    n, d = x.shape
    step = size or max(1, CHUNK_VALUES // max(d, n_components))
    parts = [slice(start, start + step) for start in range(0, n, step)]
    return [(x[p], None if weight is None else weight[p]) for p in parts]


def _labeled(parts: list[Fitted], class_prior: str, classes: ArrayLike | None) -> Mixture:
    """Join the mixtures of the classes, in the order of the classes."""
    names, codes = encode_classes(np.array([part.label for part in parts]), classes, len(parts))
    order = np.argsort(codes)
    found = [parts[k].mixture for k in order]
    prior = np.array([parts[k].weight if class_prior == "empirical" else 1.0 for k in order])
    masses = zip(prior / prior.sum(), found, strict=True)
    weights = np.concatenate([mass * p.weights for mass, p in masses])
    return Mixture(
        weights / weights.sum(),
        np.vstack([p.means for p in found]),
        np.vstack([p.stds for p in found]),
        np.repeat(np.eye(len(names))[codes[order]], [p.n_components for p in found], axis=0),
        names,
        feature_names=found[0].feature_names,
        info={"n_samples": sum(part.n for part in parts)},
    )
