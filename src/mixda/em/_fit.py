"""Fit mixtures to samples by expectation-maximization.

Here are the public functions. The loop is in `mixda.em._loop`, the two steps in `mixda.em._steps`,
and initialization, floor and number of components in `mixda.em._search`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.errors import MixdaError
from mixda._core.namespace import check_dispatched, check_numpy, is_dispatched, namespace, to_numpy
from mixda._core.typing import Array
from mixda._core.validation import (
    check_choice,
    check_names,
    check_positive_int,
    check_X,
    encode_classes,
)
from mixda.chunks import (
    EncodedColumn,
    Grouping,
    RowBlock,
    RowSource,
    apply_sample_weight,
    column_names,
    from_arrays,
    from_dask,
    is_dask,
)
from mixda.em._loop import Constraints, Execution, FittedGroup, fit_rows, fit_source
from mixda.em._search import Settings
from mixda.mixture import SMALLEST_COMPONENT, Mixture


def fit_mixture(
    X: ArrayLike,
    n_components: int | Literal["bic"] = 1,
    *,
    min_std: float | ArrayLike | Literal["auto"] = "auto",
    sample_weight: ArrayLike | None = None,
    n_init: int = 1,
    max_iter: int = 100,
    tol: float = 1e-4,
    init: Mixture | Literal["k-means++", "systematic"] | None = "k-means++",
    max_components: int = 16,
    min_component_rows: int = 1,
    allow_exposed_rows: bool = False,
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
    X : array-like of shape (n, d), Dask array, or RowSource
        See `mixda.chunks` for data that do not fit in memory. NaN marks a missing value. With
        scikit-learn's array dispatch, the passes over a torch or CuPy array run on its device, in
        its precision.
    n_components : int or "bic"
        Number of components K. ``"bic"`` tries 1, 2, 3, 4, 6, 8, 12, … up to `max_components`
        and selects the lowest Bayesian information criterion.
    min_std : float, array-like of shape (d,), or "auto"
        Floor of the standard deviations. ``"auto"`` is
        :math:`10^{-3} \max(\sigma_j, \bar\sigma)`, with :math:`\sigma_j` the standard deviation
        of feature j in `X` and :math:`\bar\sigma` its average over the features, so that a
        constant feature cannot dominate a classifier. If all features are constant, it is
        :math:`10^{-6} (1 + \max_j |\bar x_j|)`. If the scales of features differ by more than a
        factor of a thousand, standardize them or give one floor per feature.
    sample_weight : array-like of shape (n,), optional
        Non-negative weight of each sample. Only ratios matter.
    n_init : int
        Number of initializations. The one with the best likelihood is kept.
    max_iter : int
        Maximum number of EM iterations per initialization.
    tol : float
        Stop when the mean log-likelihood changes by less than this. Zero disables early stopping.
    init : {"k-means++", "systematic"} or Mixture
        Initial mixture: k-means from means that are drawn at random; k-means from means that
        depend on the data alone, so that (up to 10,000 rows) `random_state` has no effect; or a
        given mixture, whose number of components replaces `n_components`.
    max_components : int
        Largest number of components that ``"bic"`` tries.
    min_component_rows : int
        After the fit, merge components until the mean of each averages at least this many rows
        (:math:`p_k n`; with weights, :math:`p_k \sum_i w_i / \max_i w_i`). A component whose
        standard deviations are negligible in all features counts as one row. Merging keeps the
        mean and the variance of the mixture. A fit with too few or equal rows is an error.
        `mixda.workflow.fit_files` and ``mixda fit`` use 5.
    allow_exposed_rows : bool
        Instead of that error, return a mixture with a single component.
    chunk_size : int, optional
        Rows processed at a time. Default: what fits in cache. It affects speed, not the result.
    random_state : None, int, RandomState or Generator
    n_jobs : int, optional
        Number of joblib processes (threads for data in memory) that read the partitions of the
        data. The result does not depend on it, up to rounding.
    client : dask.distributed.Client or str, optional
        Run on the workers of a Dask cluster, given by a client or by the address of its scheduler.
        Data stay in the memory of the workers if they fit. Otherwise every pass reads them.
    checkpoint : path, optional
        Save the state to this file after every pass, and resume from it if it exists. The file is
        deleted at the end. Requires an integer `random_state`.
    stepwise : bool
        Run a first pass in mini-batches. Useful when a full pass is expensive.
    verbose : bool
        Show progress on standard error if it is a terminal.

    Returns
    -------
    Mixture
        Unlabeled. A component that loses all its samples remains with a weight of about 1e-15,
        unless it is merged. ``info["smallest_component"]`` is the smallest number of rows that a
        mean averages.

    Notes
    -----
    Statistics are computed around the mean c of the data, so large offsets do no harm. The
    relative error of a variance is about :math:`10^{-16} (m_k - c)^2 / s_k^2`, at most
    :math:`10^{-10} / p_k` with the default floor. With a much smaller `min_std`, standard
    deviations below :math:`10^{-7} |m_k - c|` are not resolved.

    Missing values (NaN) are integrated out: the likelihood of a row is that of its observed
    features, which maximizes the observed-data likelihood if values are missing at random. A
    feature without any value in a class keeps the mean and the standard deviation that it has in
    all samples.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda import fit_mixture
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> p = fit_mixture(X, 2, random_state=0)
    >>> np.sort(p.means, axis=0).ravel(), p.stds.ravel()
    (array([ 0.5, 10.5]), array([0.5, 0.5]))
    """
    how, given = (init, None) if isinstance(init, str) else ("k-means++", init)
    settings = Settings.checked(
        n_components, n_init, max_iter, tol, max_components, chunk_size, how
    )
    execution = Execution(n_jobs, client, checkpoint, stepwise)
    grouping = Grouping()
    constraints = Constraints(
        min_std,
        min_component_rows=check_positive_int(min_component_rows, "min_component_rows"),
        allow_exposed_rows=allow_exposed_rows,
    )
    source = _as_source(X, None, sample_weight, chunk_size, execution)
    if source is not None:
        if given is not None:
            settings = settings.starting_from(given, source.n_features)
        (group,) = fit_source(
            source, grouping, settings, constraints, execution, random_state, verbose
        )
        return group.mixture
    feature_names, X = column_names(X), _in_memory(X)
    if given is not None:
        settings = settings.starting_from(given, X.shape[1])
    X, weight, _ = apply_sample_weight(X, sample_weight)
    rows = RowBlock(X, weight=weight)
    (group,) = fit_rows(rows, feature_names, grouping, settings, constraints, random_state, verbose)
    return group.mixture


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
    init: Mixture | Literal["k-means++", "systematic"] | None = "k-means++",
    max_components: int = 16,
    min_component_rows: int = 1,
    allow_exposed_rows: bool = False,
    chunk_size: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: str | Path | None = None,
    stepwise: bool = False,
    verbose: bool = False,
) -> Mixture:
    r"""Fit one mixture per class and join them into one labeled mixture.

    .. math:: P = \sum_{y} \pi_y \sum_{k} p_{y,k} \, \mathcal{N}(m_{y,k}, s_{y,k}), \qquad
              v_{y,k} = \mathrm{onehot}(y)

    Parameters
    ----------
    X : array-like of shape (n, d), Dask array, or RowSource
    y : array-like of shape (n,), or Dask array
        Classes: strings, numbers or booleans. A RowSource has its own.
    n_components : int or "bic"
        Components **per class**, at most the number of distinct samples of the class.
    class_prior : "empirical" or "uniform"
        Total weight of each class: its proportion of the (weighted) samples, or the same for all
        classes that occur.
    min_std, sample_weight, n_init, max_iter, tol, max_components, chunk_size
        As in `fit_mixture`. ``min_std="auto"`` uses the standard deviations of all samples.
    min_component_rows, allow_exposed_rows
        As in `fit_mixture`, within each class.
    init : {"k-means++", "systematic"} or Mixture
        As in `fit_mixture`. A given mixture is labeled, and its components of each class start the
        mixture of that class.
    classes : array-like of shape (nc,), optional
        Classes in the order of the columns of `labels`. A class that does not occur in `y` has a
        column but no component. Default: the sorted values of `y`.
    random_state, n_jobs, client, checkpoint, stepwise, verbose
        As in `fit_mixture`.

    Returns
    -------
    Mixture
        Labeled, with the components in the order of the classes.

    Examples
    --------
    >>> from mixda import fit_labeled_mixture
    >>> p = fit_labeled_mixture([[0.0], [1.0], [9.0]], ["ok", "ok", "fault"], random_state=0)
    >>> p.classes, p.weights, p.means.ravel()
    (array(['fault', 'ok'], dtype='<U5'), array([0.33333333, 0.66666667]), array([9. , 0.5]))
    """
    how, given = (init, None) if isinstance(init, str) else ("k-means++", init)
    settings = Settings.checked(
        n_components, n_init, max_iter, tol, max_components, chunk_size, how
    )
    check_choice(class_prior, "class_prior", ("empirical", "uniform"))
    execution = Execution(n_jobs, client, checkpoint, stepwise)
    grouping = Grouping(by_label=True)
    constraints = Constraints(
        min_std,
        rows_per_component=1,
        min_component_rows=check_positive_int(min_component_rows, "min_component_rows"),
        allow_exposed_rows=allow_exposed_rows,
    )
    source = _as_source(X, y, sample_weight, chunk_size, execution)
    if source is not None:
        if given is not None:
            settings = settings.starting_from(_labeled(given), source.n_features)
        groups = fit_source(
            source, grouping, settings, constraints, execution, random_state, verbose
        )
        if classes is None and sample_weight is not None:  # include classes of weight zero
            classes = np.unique(check_names(y, "y"))
        return _join_classes(groups, class_prior, classes)
    feature_names, X = column_names(X), _in_memory(X)
    names, codes = encode_classes(y if namespace(X) is np else to_numpy(y), classes, len(X))
    if given is not None:
        settings = settings.starting_from(_labeled(given), X.shape[1])
    X, weight, used = apply_sample_weight(X, sample_weight)
    rows = RowBlock(X, EncodedColumn(list(names), codes[used]), weight=weight)
    groups = fit_rows(rows, feature_names, grouping, settings, constraints, random_state, verbose)
    return _join_classes(groups, class_prior, names)


def fit_domains(
    source: RowSource,
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
    min_component_rows: int = 1,
    allow_exposed_rows: bool = False,
    random_state: Any = None,
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: str | Path | None = None,
    stepwise: bool = False,
    verbose: bool = False,
) -> dict[str | None, Mixture]:
    r"""Fit the mixtures of all domains of a source, reading the data once per EM iteration.

    Each mixture is the one that `fit_labeled_mixture`, or `fit_mixture` if the source has no
    classes, would fit to the domain alone.

    Parameters
    ----------
    source : RowSource
        Made by one of the functions of `mixda.chunks`.
    n_components : int or "bic"
        Per class if there are classes, else per domain; at most the number of distinct samples.
    class_prior, min_std, classes, n_init, max_iter, tol, max_components
        As in `fit_labeled_mixture`.
    standardize : bool or "auto"
        Fit each domain in units of the standard deviations of its features, and return the
        mixture in the units of the data. ``"auto"`` does so if these standard deviations differ by
        more than a factor of a hundred.
    rows_per_component : int
        Minimum average number of samples per component. Smaller groups have fewer components.
    min_component_rows, allow_exposed_rows
        As in `fit_labeled_mixture`.
    random_state, n_jobs, client, checkpoint, stepwise, verbose
        As in `fit_mixture`.

    Returns
    -------
    dict of Mixture
        Mixtures by the name of the domain, sorted. The name is None if the source has no domains.

    Examples
    --------
    >>> from mixda import chunks, fit_domains
    >>> source = chunks.from_arrays([[0.0], [1.0], [5.0], [7.0]], domain=["a", "a", "b", "b"])
    >>> {name: mixture.means.item() for name, mixture in fit_domains(source).items()}
    {'a': 0.5, 'b': 6.0}
    """
    if not isinstance(source, RowSource):
        raise MixdaError(
            f"source must be a RowSource, got {type(source).__name__}; make one with "
            "mixda.chunks, for example chunks.from_arrays(X, y, domain)."
        )
    check_choice(class_prior, "class_prior", ("empirical", "uniform"))
    groups = fit_source(
        source,
        Grouping(source.has_label, source.has_domain),
        Settings.checked(n_components, n_init, max_iter, tol, max_components),
        Constraints(
            min_std,
            check_choice(standardize, "standardize", (True, False, "auto")),
            check_positive_int(rows_per_component, "rows_per_component"),
            check_positive_int(min_component_rows, "min_component_rows"),
            allow_exposed_rows,
        ),
        Execution(n_jobs, client, checkpoint, stepwise),
        random_state,
        verbose,
    )
    domains: dict[str | None, list[FittedGroup]] = {}
    for group in groups:
        domains.setdefault(group.domain, []).append(group)
    return {
        name: _join_classes(domain, class_prior, classes) if source.has_label else domain[0].mixture
        for name, domain in domains.items()
    }


def _in_memory(X: Any) -> Array:
    """Return valid samples: those of torch or CuPy as they are, if dispatch is on."""
    if is_dispatched(X):
        samples: Array = check_dispatched(X)
        return samples
    return check_X(X, allow_nan=True)


def _labeled(init: Any) -> Any:
    if isinstance(init, Mixture) and not init.is_labeled:
        raise MixdaError("init must be a labeled mixture; fit it with fit_labeled_mixture.")
    return init


def _as_source(
    X: Any, y: Any, sample_weight: Any, chunk_size: int | None, execution: Execution
) -> RowSource | None:
    """Return the data as a `RowSource`, or None if they are arrays to be fitted in memory."""
    if not is_dask(X) and not isinstance(X, RowSource):
        if execution == Execution():
            return None
        if is_dispatched(X):
            check_numpy(X, "a fit with n_jobs, client, checkpoint or stepwise")
        return from_arrays(X, y, sample_weight=sample_weight, rows=chunk_size)
    if sample_weight is not None:
        raise MixdaError(
            f"sample_weight must be None if X is a {type(X).__name__}; give it to "
            "chunks.from_arrays instead."
        )
    if isinstance(X, RowSource):
        if y is not None:
            raise MixdaError(
                "y must be None if X is a RowSource, which has its own classes; make the source "
                "with a label."
            )
        return X
    return from_dask(X, y)


def _join_classes(
    groups: list[FittedGroup], class_prior: str, classes: ArrayLike | None
) -> Mixture:
    """Join the mixtures of the classes into one labeled mixture, in the order of the classes."""
    labels = np.array([group.label for group in groups])
    names, codes = encode_classes(labels, classes, len(groups))
    order = np.argsort(codes)
    mixtures = [groups[k].mixture for k in order]
    prior = np.array([groups[k].weight if class_prior == "empirical" else 1.0 for k in order])
    masses = zip(prior / math.fsum(prior), mixtures, strict=True)
    weights = np.concatenate([mass * p.weights for mass, p in masses])
    return Mixture(
        weights / math.fsum(weights),  # rounded once: the order of the classes does not matter
        np.vstack([p.means for p in mixtures]),
        np.vstack([p.stds for p in mixtures]),
        np.repeat(np.eye(len(names))[codes[order]], [p.n_components for p in mixtures], axis=0),
        names,
        feature_names=mixtures[0].feature_names,
        info={
            "n_samples": sum(group.n for group in groups),
            SMALLEST_COMPONENT: min(p.info[SMALLEST_COMPONENT] for p in mixtures),
        },
    )
