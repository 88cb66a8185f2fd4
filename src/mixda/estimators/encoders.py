"""The space where a method works: standardization, then an encoder trained on the sources.

Both steps are fitted without target labels. `DomainEncoder` does both; `LDAEncoder` and
`MLPEncoder` are the transformers of ``encoder="lda"`` and ``"mlp"``.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from mixda._core.errors import MixdaError
from mixda._core.typing import Array, Ids
from mixda._core.validation import check_choice
from mixda.estimators._canonical import CanonicalOrder
from mixda.estimators._export import hidden_layers, rule_of
from mixda.mixture import Mixture, has_gaps, pool_mixtures, without_floor
from mixda.rules import Affine, Chain, Linear, Rule

MeanAndStd = tuple[Array, Array]

_TARGET = -1
_RIDGE = 1e-9  # of the variance of the features, where shrinkage leaves a covariance singular


class DomainEncoder:
    r"""Standardization per domain followed by an encoder trained on the sources.

    .. math:: z = \phi\Bigl(\frac{x - \mu_\ell}{\sigma_\ell}\Bigr)

    Parameters
    ----------
    scale : {"auto", "domain", "sources", None}
        Standardize by the moments of each sample's domain, by those of all sources together, or
        not at all; "auto" is "sources". All negative ids are one domain, the target.
    encoder : {"lda", "mlp", None} or transformer
        Linear discriminants with shrinkage (`LDAEncoder`), the last hidden layer of a small network
        (`MLPEncoder`), nothing, or a scikit-learn transformer, of which a clone is trained on the
        standardized sources and their classes.
    seed : int
        The `random_state` of the encoder if it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.estimators import DomainEncoder
    >>> X, ids = np.array([[0.0], [2.0], [10.0], [30.0]]), np.array([1, 1, -2, -2])
    >>> DomainEncoder("domain", None).fit_transform(X, np.array([0, 1]), ids).ravel()
    array([-1.,  1., -1.,  1.])
    """

    def __init__(self, scale: str | None, encoder: Any, seed: int = 0) -> None:
        check_choice(scale, "scale", ("auto", "domain", "sources", None))
        self._model = _resolve(encoder, seed)
        self.scale = "sources" if scale == "auto" else scale
        self._moments: dict[int, MeanAndStd] = {}

    def fit_transform(
        self, X: Array, codes: NDArray[np.intp], ids: Ids, weight: Array | None = None
    ) -> Array:
        """Fit on samples of all domains and the classes of the source rows; encode them all."""
        is_source = ids >= 0
        weighted = {} if weight is None else {"sample_weight": weight[is_source]}
        self._pooled = sample_moments(X[is_source], **weighted)
        if self.scale == "domain":
            merged = np.maximum(ids, _TARGET)
            self._moments = {
                int(k): sample_moments(
                    X[merged == k], None if weight is None else weight[merged == k]
                )
                for k in np.unique(merged)
            }
        scaled = self._standardize(X, ids)
        if self._model is None:
            return scaled
        if weighted:
            check_takes_weights(self._model, "encoder")
        try:
            self._model.fit(
                scaled[is_source], _canonical_codes(scaled[is_source], codes), **weighted
            )
        except (ValueError, np.linalg.LinAlgError) as error:  # too few rows, constant features
            raise MixdaError(
                f"encoder could not be fitted to the sources ({str(error).rstrip('.')}); add rows, "
                "drop constant or repeated features, or use another encoder."
            ) from None
        return self._encode(scaled)

    def transform(self, X: Array, ids: Ids | None = None) -> Array:
        """Encode samples of the given domains, by default of the target.

        Domains that are unknown from the fit are standardized by the moments of all sources.
        """
        ids = np.full(len(X), _TARGET) if ids is None else ids
        scaled = self._standardize(X, ids)
        return scaled if self._model is None else self._encode(scaled)

    def fit_mixtures(self, sources: list[Mixture], target: Mixture) -> list[Mixture]:
        """Standardize mixtures by their own moments; return the sources' and then the target's.

        Sources are weighted by their numbers of samples if these are known (`info`). Features
        that are constant in the samples of a domain have no spread in its mixture.
        """
        if self._model is not None:
            raise MixdaError(
                "encoder needs samples, which mixtures do not hold; use encoder=None, or fit the "
                "estimator to data."
            )
        *sources, target = [without_floor(p) for p in (*sources, target)]
        self._pooled = _settled(*pool_mixtures(sources).moments())
        if self.scale == "domain":
            named = [*enumerate(sources), (_TARGET, target)]
            self._moments = {k: _settled(*p.moments()) for k, p in named}
        if self.scale is None:
            return [*sources, target]
        ids = [*range(len(sources)), _TARGET]
        moments = [self._moments.get(k, self._pooled) for k in ids]
        return [p.affine(*m) for p, m in zip([*sources, target], moments, strict=True)]

    @property
    def name(self) -> str | None:
        """What the encoder computes, in words; None without an encoder."""
        if self._model is None:
            return None
        words = {LDAEncoder: "linear discriminants", MLPEncoder: "a network"}
        return words.get(type(self._model), type(self._model).__name__)

    def rule(self) -> Rule | None:
        """Return the encoding of the target as a rule; None if it is the identity."""
        steps: list[Rule] = []
        if self.scale is not None:
            steps.append(Affine(*self._moments.get(_TARGET, self._pooled)))
        if self._model is not None:
            steps.append(rule_of(self._model))
        return Chain(tuple(steps)) if steps else None

    def _standardize(self, X: Array, ids: Ids) -> Array:
        if self.scale is None:
            return X
        result = np.empty_like(X)
        merged = np.maximum(ids, _TARGET)
        for k in np.unique(merged):
            mean, std = self._moments.get(int(k), self._pooled)
            result[merged == k] = (X[merged == k] - mean) / std
        return result

    def _encode(self, scaled: Array) -> Array:
        if not len(scaled):  # a block without rows of the domain; transformers refuse it
            return self._encode(np.zeros((1, scaled.shape[1])))[:0]
        Z = np.asarray(self._model.transform(scaled), dtype=np.float64)
        if Z.ndim != 2 or len(Z) != len(scaled):
            raise MixdaError(
                f"encoder must return one row per sample, got an array of shape {Z.shape} for "
                f"{len(scaled)} samples."
            )
        return Z


class LDAEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Linear discriminants with shrinkage: at most one feature less than there are classes.

    .. math:: \phi(x) = W^\top x, \qquad W = \hat\Sigma^{-1} (\mu_1 - \mu_0)

    with two classes, where :math:`\hat\Sigma` is the average of the Ledoit-Wolf estimates of the
    covariances of the classes. With more classes, W are the first generalized eigenvectors of
    :math:`\hat\Sigma_\text{total} - \hat\Sigma` and :math:`\hat\Sigma`, as in scikit-learn's
    `LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")`.

    The total covariance is shrunk less than that of the classes. With two classes, the first
    eigenvector is therefore not the discriminant. With more classes, eigenvectors favor directions
    of large variance, which transfer better. On the development sets of ``benchmarks/selection.py``
    (120 rows per domain), a logistic regression on the eigenvectors is 1.4 points more accurate
    than on exact discriminants for the seven sets of more than two classes, and 26 points less
    accurate for youtube_spam, which has two.

    Parameters
    ----------
    max_features : int
        More features are first reduced to this number of principal components.

    Attributes
    ----------
    scalings_ : ndarray of shape (d, m)
        The matrix W.
    classes_ : ndarray of shape (nc,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only if `X` had column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixda.estimators import LDAEncoder
    >>> X, y = load_iris(return_X_y=True)
    >>> LDAEncoder().fit_transform(X, y).shape, LDAEncoder().fit(X[:100], y[:100]).scalings_.shape
    ((150, 2), (4, 1))
    """

    def __init__(self, max_features: int = 500) -> None:
        self.max_features = max_features

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LDAEncoder:
        """Find the discriminants of the classes `y`; a weight counts as repetitions of the row."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if not weight.any():
            raise MixdaError("sample_weight is zero for all rows; give some a positive weight.")
        X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise MixdaError(f"y has one class only ({self.classes_[0]!r}); two are needed.")
        axes, X = self._reduced(X, weight)
        unit = None if axes is None else np.ones(X.shape[1])  # components are not standardized
        groups = [codes == k for k in range(len(self.classes_))]
        shares = np.array([weight[rows].sum() for rows in groups]) / weight.sum()
        center = np.average(X.mean(axis=1), weights=weight)
        variance = np.average(np.square(X - center).mean(axis=1), weights=weight)
        within = np.eye(X.shape[1]) * (_RIDGE * variance or _RIDGE)
        for share, rows in zip(shares, groups, strict=True):
            within += share * shrunk_covariance(X[rows], weight[rows], unit)
        if len(groups) == 2:
            means = [np.average(X[rows], axis=0, weights=weight[rows]) for rows in groups]
            W = np.linalg.solve(within, np.diff(means, axis=0).T)
            W = W / max(np.sqrt((W * (within @ W)).sum()), 1e-300)  # unit variance within classes
        else:
            d, m = X.shape[1], min(len(groups) - 1, X.shape[1])
            between = shrunk_covariance(X, weight, unit) - within
            W = eigh(between, within, subset_by_index=(d - m, d - 1))[1][:, ::-1]
        self.scalings_ = W if axes is None else axes @ W
        return self

    def _reduced(self, X: Array, weight: Array) -> tuple[Array | None, Array]:
        """Return principal axes (d, max_features) and the components; the features if few."""
        if X.shape[1] <= self.max_features:
            return None, X
        from sklearn.utils.extmath import randomized_svd

        centered = np.sqrt(weight)[:, None] * (X - np.average(X, axis=0, weights=weight))
        n_axes = min(self.max_features, len(X))
        axes: Array = randomized_svd(centered, n_axes, random_state=0)[2].T
        return axes, X @ axes

    def transform(self, X: Any) -> Array:
        """Return the discriminants, shape (n, m)."""
        check_is_fitted(self)
        return self._rule()(validate_data(self, X, dtype=np.float64, reset=False))

    def _rule(self) -> Rule:
        return Linear(self.scalings_, np.zeros(self.scalings_.shape[1]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class MLPEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Last hidden layer of a small classification network: features that separate the classes.

    .. math:: \phi(x) = h_L, \quad h_i = \max(0, W_i^\top h_{i-1} + b_i), \quad h_0 = x

    Parameters
    ----------
    hidden_layer_sizes : tuple of int
        Widths of the hidden layers; the last is the number of features.
    alpha : float
        L2 regularization.
    max_iter : int
        Maximum number of epochs.
    random_state : None, int or RandomState

    Attributes
    ----------
    network_ : MLPClassifier
    n_iter_ : int
        Number of epochs.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only if `X` had column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixda.estimators import MLPEncoder
    >>> X, y = load_iris(return_X_y=True)
    >>> MLPEncoder((8, 4), random_state=0).fit(X, y).transform(X).shape
    (150, 4)
    """

    def __init__(
        self,
        hidden_layer_sizes: tuple[int, ...] = (256, 128),
        alpha: float = 1e-3,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.alpha = alpha
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> MLPEncoder:
        """Train the network to tell the classes `y` apart."""
        from sklearn.neural_network import MLPClassifier

        X, y = validate_data(self, X, y, dtype=np.float64)
        network = MLPClassifier(
            self.hidden_layer_sizes,
            alpha=self.alpha,
            max_iter=self.max_iter,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():  # the features are good long before the loss converges
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.network_ = network.fit(X, y)
        self.n_iter_ = self.network_.n_iter_
        return self

    def transform(self, X: Any) -> Array:
        """Return the activations of the last hidden layer, shape (n, width)."""
        check_is_fitted(self)
        return self._rule()(validate_data(self, X, dtype=np.float64, reset=False))

    def _rule(self) -> Rule:
        return hidden_layers(self.network_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def shrunk_covariance(X: Array, weight: Array, unit: Array | None = None) -> Array:
    r"""Return the Ledoit-Wolf covariance of features divided by `unit`, in their own units.

    .. math:: \hat\Sigma = (1 - \alpha) S + \alpha \frac{\mathrm{tr}\, S}{d} I

    Parameters
    ----------
    X : ndarray of shape (n, d)
    weight : ndarray of shape (n,)
        Numbers of repetitions of the rows.
    unit : ndarray of shape (d,), optional
        By default the standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.covariance import ledoit_wolf
    >>> from mixda.estimators.encoders import shrunk_covariance
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> bool(np.allclose(shrunk_covariance(X, np.ones(20), np.ones(5)), ledoit_wolf(X)[0]))
    True
    """
    n, d = weight.sum(), X.shape[1]
    X = X - np.average(X, axis=0, weights=weight)
    if unit is None:
        unit = np.sqrt(weight @ X**2 / n)
        unit = np.where(unit > 0, unit, 1.0)
    X = X / unit
    S = (weight[:, None] * X).T @ X / n
    mean_variance = np.trace(S) / d
    fourth = weight @ np.square((X**2).sum(axis=1)) / n
    noise = max((fourth - (S**2).sum()) / n, 0.0)
    distance = (S**2).sum() - d * mean_variance**2
    alpha = min(noise / distance, 1.0) if distance > 0 else 1.0
    shrunk: Array = (1.0 - alpha) * S + alpha * mean_variance * np.eye(d)
    return shrunk * np.outer(unit, unit)


def _canonical_codes(Z: Array, codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return codes that do not depend on the order of the classes."""
    return CanonicalOrder.of_samples([(Z, codes)], int(codes.max()) + 1).ranks[codes]


def _resolve(encoder: Any, seed: int) -> Any:
    if encoder is None:
        return None
    if isinstance(encoder, str):
        check_choice(encoder, "encoder", ("lda", "mlp", None))
        if encoder == "mlp":
            return MLPEncoder(random_state=seed)
        return LDAEncoder()
    if not (hasattr(encoder, "fit") and hasattr(encoder, "transform")):
        raise MixdaError(
            f"encoder must be None, 'lda', 'mlp' or a transformer with fit and transform, "
            f"got {encoder!r}."
        )
    return seeded(encoder, seed)


def seeded(estimator: Any, seed: int) -> Any:
    """Return a clone in which each `random_state` of None is replaced by the seed.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from mixda.estimators.encoders import seeded
    >>> seeded(PCA(), 3).random_state, seeded(PCA(random_state=5), 3).random_state
    (3, 5)
    """
    copy = clone(estimator)
    unset = [name for name, value in copy.get_params().items() if value is None]
    return copy.set_params(**{n: seed for n in unset if n.split("__")[-1] == "random_state"})


def check_takes_weights(estimator: Any, name: str) -> None:
    """Raise an error if an estimator would ignore sample weights."""
    if not has_fit_parameter(estimator, "sample_weight"):
        raise MixdaError(
            f"{name} {type(estimator).__name__} does not use sample_weight; leave the weights out, "
            f"or choose another {name}."
        )


def sample_moments(X: Array, sample_weight: Array | None = None) -> MeanAndStd:
    """Return mean and standard deviation of each feature; 1 for constant features.

    Missing values (NaN) are left out.
    """
    if has_gaps(X) or sample_weight is not None:
        return _observed_moments(X, np.ones(len(X)) if sample_weight is None else sample_weight)
    varies = np.ptp(X, axis=0) > 0  # the deviation of many equal numbers is not exactly zero
    return _settled(X.mean(axis=0), np.where(varies, X.std(axis=0), 0.0))


def _observed_moments(X: Array, weight: Array) -> MeanAndStd:
    observed = np.where(np.isnan(X), 0.0, weight[:, None])
    n = observed.sum(axis=0)
    n = np.where(n > 0, n, 1.0)
    mean = (observed * np.nan_to_num(X)).sum(axis=0) / n
    std = np.sqrt((observed * np.square(np.nan_to_num(X - mean))).sum(axis=0) / n)
    return _settled(mean, std)


def _settled(mean: Array, std: Array) -> MeanAndStd:
    constant = std <= 10 * np.finfo(np.float64).eps * np.abs(mean)
    return mean, np.where(constant, 1.0, std)
