"""The value `Mixture`: an axis-aligned Gaussian mixture, labeled or not.

It has densities, a MAP classifier and a file format. Fitting and transport are elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._core.archive import check_json, read_archive, write_archive
from mixda._core.errors import MixdaError
from mixda._core.namespace import (
    as_like,
    check_dispatched,
    copy_of,
    empty,
    is_dispatched,
    namespace,
    to_numpy,
)
from mixda._core.notebook import summary_table
from mixda._core.text import listed
from mixda._core.typing import Array
from mixda._core.validation import (
    LARGEST,
    check_array,
    check_positive_int,
    check_random_state,
    check_simplex,
    check_X,
)
from mixda.mixture._checks import check_feature_names, check_labels, frozen
from mixda.mixture._density import posterior_blocks
from mixda.mixture._exposure import check_exposed
from mixda.mixture._sklearn import gaussian_mixture, parameters_from_sklearn

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

FORMAT = "mixda.mixture"
FORMAT_VERSION = 2


@dataclass(frozen=True, eq=False, repr=False)
class Mixture:
    r"""Axis-aligned Gaussian mixture whose components may have class labels (eq. 1 and 11).

    .. math:: P = \sum_{k=1}^{K} p_k \, \mathcal{N}(m_k, \mathrm{diag}(s_k)^2), \qquad
              P(y \mid x) = \sum_k P(k \mid x) \, v_{k,y}

    Parameters
    ----------
    weights : array-like of shape (K,)
        Non-negative, summing to one.
    means, stds : array-like of shape (K, d)
        Means and **standard deviations** (not variances). Zero standard deviations are allowed, so
        that a point cloud is a mixture too, but such a mixture has no density.
    labels : array-like of shape (K, nc), optional
        One distribution over the classes per component.
    classes : array-like of shape (nc,), optional
        Names of the classes, integers or strings in any order. By default ``0 … nc-1``.
    feature_names : sequence of d str, optional
        Names of the columns.
    info : dict, optional
        Further JSON values that are saved with the mixture and ignored by ``==``. Customary keys
        are "name", "n_samples" and "preprocessing" (a list of strings).

    Examples
    --------
    >>> from mixda import Mixture
    >>> p = Mixture([0.5, 0.5], [[0.0], [4.0]], [[1.0], [1.0]], [[1, 0], [0, 1]], ["ok", "fault"])
    >>> p
    Mixture(n_components=2, n_features=1, classes=['ok', 'fault'])
    >>> p.predict([[0.3], [3.1]])
    array(['ok', 'fault'], dtype='<U5')
    """

    weights: Array
    means: Array
    stds: Array
    labels: Array | None = None
    classes: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        means = check_array(self.means, "means", ndim=2)
        if means.shape[0] == 0 or means.shape[1] == 0:
            raise MixdaError(
                f"means has shape {means.shape}; a mixture needs at least one component."
            )
        weights = check_simplex(self.weights, "weights", size=means.shape[0])
        stds = check_array(self.stds, "stds", ndim=2)
        if stds.shape != means.shape:
            raise MixdaError(f"stds has shape {stds.shape}, but means has shape {means.shape}.")
        if (stds < 0).any():
            raise MixdaError(f"stds must not be negative, got a minimum of {stds.min():.6g}.")
        labels, classes = check_labels(self.labels, self.classes, means.shape[0])
        names = check_feature_names(self.feature_names, means.shape[1])
        arrays = [frozen(array) for array in (weights, means, stds, labels, classes)]
        values = [*arrays, names, check_json(self.info, "info")]
        for part, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, part.name, value)

    @property
    def n_components(self) -> int:
        """Number of components K."""
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        """Dimension d."""
        return int(self.means.shape[1])

    @property
    def is_labeled(self) -> bool:
        """Whether the components have class labels."""
        return self.labels is not None

    @property
    def class_proportions(self) -> Array:
        r"""Probability of each class, :math:`\sum_k p_k v_k`, shape (nc,)."""
        proportions: Array = self.weights @ self._labeled()[0]
        return proportions

    def log_prob(self, X: ArrayLike) -> Array:
        r"""Log-density :math:`\log \sum_k p_k \mathcal{N}(x; m_k, s_k)`.

        Parameters
        ----------
        X : array-like of shape (n, d)
            NaN marks a missing value. The density of such a row is that of its other features.

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> from mixda import Mixture
        >>> float(Mixture([1.0], [[0.0]], [[1.0]]).log_prob([[0.0]])[0])
        -0.9189385332046727
        """
        x = self._samples(X)
        log_prob: Array = empty((len(x),), x)
        for rows, _, density in self._blocks(x):
            log_prob[rows] = density
        return log_prob

    def responsibilities(self, X: ArrayLike) -> Array:
        r"""Probability of each component, :math:`P(k \mid x)`, for every row of `X`: shape (n, K).

        Examples
        --------
        >>> from mixda import Mixture
        >>> Mixture([0.5, 0.5], [[0.0], [9.0]], [[1.0], [1.0]]).responsibilities([[4.5]])
        array([[0.5, 0.5]])
        """
        x = self._samples(X)
        posterior: Array = empty((len(x), self.n_components), x)
        for rows, by_component, _ in self._blocks(x):
            posterior[rows] = by_component.T
        return posterior

    def predict_proba(self, X: ArrayLike) -> Array:
        r"""Probability of each class :math:`P(y \mid x) = \sum_k P(k \mid x) v_{k,y}`.

        Returns an array of shape (n, nc), columns in the order of `classes`. Missing values of
        `X` (NaN) are integrated out.

        Examples
        --------
        >>> from mixda import Mixture
        >>> p = Mixture([0.5, 0.5], [[0.0], [9.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])
        >>> p.predict_proba([[4.5]])
        array([[0.5, 0.5]])
        """
        x, (labels, _) = self._samples(X), self._labeled()
        proba: Array = empty((len(x), labels.shape[1]), x)
        by_class = as_like(labels.T, x)
        for rows, by_component, _ in self._blocks(x):
            joint = by_class @ by_component
            joint /= joint.sum(axis=0)
            proba[rows] = joint.T
        return proba

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Maximum-a-posteriori class of every row of `X`: shape (n,).

        Examples
        --------
        >>> from mixda import Mixture
        >>> Mixture([1.0], [[0.0]], [[1.0]], [[0.2, 0.8]], ["a", "b"]).predict([[0.0]])
        array(['b'], dtype='<U1')
        """
        _, classes = self._labeled()
        winners = self.predict_proba(X).argmax(axis=1)
        predicted: NDArray[Any] = classes[to_numpy(winners)]
        return predicted

    def impute(self, X: ArrayLike) -> Array:
        r"""Replace missing values (NaN) by their conditional means given the rest of the row.

        .. math:: \mathbb{E}[x_j \mid x_o] = \sum_k P(k \mid x_o) \, m_{k,j}

        where :math:`x_o` are the observed features of the row.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, d)

        Examples
        --------
        >>> from mixda import Mixture
        >>> p = Mixture([0.5, 0.5], [[0.0, 1.0], [9.0, 5.0]], [[1.0, 1.0], [1.0, 1.0]])
        >>> p.impute([[9.0, float("nan")]])
        array([[9., 5.]])
        """
        x = self._samples(X)
        missing = namespace(x).isnan(x)
        incomplete = missing.any(axis=1)
        if not incomplete.any():
            return x  # type: ignore[no-any-return]
        filled: Array = copy_of(x)
        expected = self.responsibilities(x[incomplete]) @ as_like(self.means, x)
        filled[incomplete] = namespace(x).where(missing[incomplete], expected, x[incomplete])
        return filled

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean log-density of `X`; `y` is ignored, as in scikit-learn.

        Examples
        --------
        >>> from mixda import Mixture
        >>> Mixture([1.0], [[0.0]], [[1.0]]).score([[0.0], [0.0]])
        -0.9189385332046727
        """
        return float(self.log_prob(X).mean())

    def sample(self, n_samples: int, random_state: Any = None) -> tuple[Array, NDArray[Any] | None]:
        r"""Draw :math:`k \sim p`, :math:`x \sim \mathcal{N}(m_k, s_k)` and :math:`y \sim v_k`.

        Returns
        -------
        X : ndarray of shape (n_samples, d)
        y : ndarray of shape (n_samples,), or None for a mixture without labels

        Examples
        --------
        >>> from mixda import Mixture
        >>> p = Mixture([0.5, 0.5], [[0.0], [9.0]], [[0.1], [0.1]], [[1, 0], [0, 1]], ["a", "b"])
        >>> X, y = p.sample(3, random_state=0)
        >>> X.shape, y.tolist()
        ((3, 1), ['b', 'a', 'a'])
        """
        n_samples = check_positive_int(n_samples, "n_samples")
        rng = check_random_state(random_state)
        component = rng.choice(self.n_components, n_samples, p=self.weights / self.weights.sum())
        X = rng.standard_normal((n_samples, self.n_features))
        X *= self.stds[component]
        X += self.means[component]
        if self.labels is None or self.classes is None:
            return X, None
        cumulative = self.labels.cumsum(axis=1)[component]
        draws = rng.random((n_samples, 1)) * cumulative[:, -1:]
        return X, self.classes[(draws >= cumulative).sum(axis=1)]

    def moments(self) -> tuple[Array, Array]:
        r"""Mean and standard deviation of every feature, two arrays of shape (d,).

        .. math:: \mu = \sum_k p_k m_k, \qquad
                  \sigma^2 = \sum_k p_k \bigl(s_k^2 + (m_k - \mu)^2\bigr)

        Examples
        --------
        >>> from mixda import Mixture
        >>> Mixture([0.5, 0.5], [[-3.0], [3.0]], [[4.0], [4.0]]).moments()
        (array([0.]), array([5.]))
        """
        mean: Array = self.weights @ self.means
        variance = self.weights @ (self.stds**2 + (self.means - mean) ** 2)
        return mean, np.sqrt(variance)

    def affine(self, mean: ArrayLike, scale: ArrayLike) -> Mixture:
        r"""Return the mixture of :math:`(x - \mu) / \sigma`; `mean` and `scale` have shape (d,).

        Examples
        --------
        >>> from mixda import Mixture
        >>> q = Mixture([1.0], [[5.0]], [[4.0]]).affine([1.0], [2.0])
        >>> q.means, q.stds
        (array([[2.]]), array([[2.]]))
        """
        mean, scale = check_array(mean, "mean", ndim=1), check_array(scale, "scale", ndim=1)
        if mean.shape != scale.shape or len(mean) != self.n_features or not scale.all():
            raise MixdaError(
                f"mean and scale must each have {self.n_features} values, and scale must not "
                "contain zero."
            )
        return replace(self, means=(self.means - mean) / scale, stds=self.stds / np.abs(scale))

    def marginal(self, feature_names: Sequence[str]) -> Mixture:
        """Return the mixture over the named features alone, in the given order.

        Examples
        --------
        >>> from mixda import Mixture
        >>> p = Mixture([1.0], [[1.0, 2.0]], [[1.0, 1.0]], feature_names=["a", "b"])
        >>> p.marginal(["b", "a"]).means
        array([[2., 1.]])
        """
        known = self.feature_names
        if known is None:
            raise MixdaError("this mixture has no feature names; create it with feature_names.")
        if not len(feature_names):
            raise MixdaError(f"feature_names is empty; choose from {list(known)}.")
        missing = [name for name in feature_names if name not in known]
        if missing:
            raise MixdaError(f"there is no feature {missing[0]!r}; choose from {list(known)}.")
        columns = [known.index(name) for name in feature_names]
        means, stds = self.means[:, columns], self.stds[:, columns]
        return replace(self, means=means, stds=stds, feature_names=tuple(feature_names))

    def save(self, path: str | Path, allow_exposed_rows: bool = False) -> None:
        """Write the mixture to `path` (usually ``.gmm``), atomically.

        The file is a NumPy ``.npz`` archive without pickles: ``numpy.load(path)`` opens it. It has
        the arrays `weights`, `means`, `stds` and, for a labeled mixture, `labels` and `classes`.
        The entry `header` is a JSON text: the format and its version, the feature names, `info`,
        the version of mixda and a SHA-256 checksum.

        Parameters
        ----------
        path : path
        allow_exposed_rows : bool
            Write the file even if a mean is known to average fewer than 5 rows
            (``info["smallest_component"]``), which may expose them. By default, this is an error.
        """
        check_exposed(self, allow_exposed_rows)
        header = {"format": FORMAT, "version": FORMAT_VERSION}
        remembered = {"feature_names": self.feature_names, "info": self.info}
        write_archive(path, {**header, **remembered}, self._arrays())

    @classmethod
    def load(cls, path: str | Path) -> Mixture:
        """Read a mixture written by `save`, bit for bit.

        Examples
        --------
        >>> import os, tempfile
        >>> from mixda import Mixture
        >>> p = Mixture([1.0], [[0.0]], [[1.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     p.save(os.path.join(folder, "p.gmm"))
        ...     Mixture.load(os.path.join(folder, "p.gmm")) == p
        True
        """
        header, arrays = read_archive(path, {FORMAT: FORMAT_VERSION})
        return cls._from_archive(path, header, arrays)

    @classmethod
    def _from_archive(cls, path: str | Path, header: dict[str, Any], arrays: Any) -> Mixture:
        try:
            names, info = header.get("feature_names"), header.get("info", {})
            return cls(**arrays, feature_names=names, info=info)
        except (TypeError, ValueError) as error:
            raise MixdaError(f"{path} does not hold a valid mixture: {error}") from None

    @classmethod
    def from_sklearn(cls, model: GaussianMixture) -> Mixture:
        """Take the parameters of a fitted ``GaussianMixture`` ("diag" or "spherical").

        Examples
        --------
        >>> from sklearn.mixture import GaussianMixture
        >>> from mixda import Mixture
        >>> model = GaussianMixture(1, covariance_type="diag").fit([[0.0], [2.0]])
        >>> Mixture.from_sklearn(model).means
        array([[1.]])
        """
        return cls(*parameters_from_sklearn(model))

    def to_sklearn(self) -> GaussianMixture:
        """Return a fitted ``GaussianMixture("diag")`` with these parameters (labels are dropped).

        Examples
        --------
        >>> from mixda import Mixture
        >>> p = Mixture([1.0], [[0.0]], [[1.0]])
        >>> float(p.to_sklearn().score_samples([[0.0]])[0]) == p.score([[0.0]])
        True
        """
        self._check_spread()
        return gaussian_mixture(self.weights, self.means, self.stds)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixture):
            return NotImplemented
        mine, theirs = self._arrays(), other._arrays()
        return (
            mine.keys() == theirs.keys()
            and all(np.array_equal(mine[name], theirs[name]) for name in mine)
            and self.feature_names == other.feature_names
        )

    def __hash__(self) -> int:
        return hash((self.means + 0.0).tobytes())  # -0.0 equals 0.0

    def __repr__(self) -> str:
        classes = "" if self.classes is None else f", classes={self.classes.tolist()}"
        return f"Mixture(n_components={self.n_components}, n_features={self.n_features}{classes})"

    def _repr_html_(self) -> str:
        shares = ""
        if self.classes is not None:
            parts = zip(self.classes, self.class_proportions, strict=True)
            shares = listed([f"{name} {share:.0%}" for name, share in parts])
        names = "" if self.feature_names is None else f": {listed(self.feature_names)}"
        rows = [
            ("name", self.info.get("name")),
            ("rows", self.info.get("n_samples")),
            ("components", self.n_components),
            ("features", f"{self.n_features}{names}"),
            ("classes", shares),
        ]
        return summary_table("Mixture", rows)

    def __reduce__(self) -> tuple[type[Mixture], tuple[Any, ...]]:
        return Mixture, tuple(getattr(self, part.name) for part in fields(self))

    @cached_property
    def _log_weights(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.weights))

    def _blocks(self, X: Any) -> Iterator[tuple[slice, Array, Array]]:
        self._check_spread()
        return posterior_blocks(X, self.means, self.stds, self._log_weights)

    def _samples(self, X: Any) -> Any:
        """Return valid samples: those of torch or CuPy as they are, if dispatch is on."""
        if is_dispatched(X):
            return check_dispatched(X, self.n_features)
        return check_X(X, n_features=self.n_features, allow_nan=True)

    def _check_spread(self) -> None:
        if self.stds.min() < 1.0 / LARGEST:
            raise MixdaError(
                "this mixture has no density, because some standard deviations are zero or nearly "
                "zero; fit it with min_std > 0."
            )

    def _labeled(self) -> tuple[Array, NDArray[Any]]:
        if self.labels is None or self.classes is None:
            raise MixdaError(
                "this mixture has no labels, so it cannot predict classes; fit it with "
                "fit_labeled_mixture or adapt it first."
            )
        return self.labels, self.classes

    def _arrays(self) -> dict[str, NDArray[Any]]:
        names = ("weights", "means", "stds", "labels", "classes")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}
