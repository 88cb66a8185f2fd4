"""The value everything else is made of: an axis-aligned Gaussian mixture, labelled or not.

A `Mixture` is frozen. It knows its densities, its classifier and its file, and nothing of how it
was fitted or transported.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._files import write_atomically
from mixda._validation import (
    LARGEST,
    Array,
    check_array,
    check_names,
    check_positive_int,
    check_random_state,
    check_simplex,
    check_X,
)

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

FORMAT = "mixda.mixture"
FORMAT_VERSION = 1

_NOT_AN_ARCHIVE = (ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile)
_LOG_2PI = float(np.log(2.0 * np.pi))
_CHUNK_VALUES = 1 << 20  # numbers held at once per temporary array in a pass over samples
_CANCELLATION = 1e7  # (m / s)² from which products would lose half of the digits of a density


@dataclass(frozen=True, eq=False, repr=False)
class Mixture:
    r"""Axis-aligned Gaussian mixture whose components may carry class labels.

    .. math:: P = \sum_{k=1}^{K} p_k \, \mathcal{N}(m_k, \mathrm{diag}(s_k)^2), \qquad
              P(y \mid x) = \sum_k P(k \mid x) \, v_{k,y}

    Parameters
    ----------
    weights : array-like of shape (K,)
        Non-negative, summing to one.
    means, stds : array-like of shape (K, d)
        Means and **standard deviations** (not variances). A zero standard deviation is allowed,
        so that a point cloud is a mixture too; only its densities are then undefined.
    labels : array-like of shape (K, nc), optional
        One distribution over the classes per component.
    classes : array-like of shape (nc,), optional
        The names of the classes, sorted or not: integers, strings, … Default ``0 … nc-1``.

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

    def __post_init__(self) -> None:
        means = check_array(self.means, "means", ndim=2)
        if means.shape[0] == 0 or means.shape[1] == 0:
            raise ValueError(f"means has shape {means.shape}; a mixture needs a component.")
        weights = check_simplex(self.weights, "weights", size=means.shape[0])
        stds = check_array(self.stds, "stds", ndim=2)
        if stds.shape != means.shape:
            raise ValueError(f"stds has shape {stds.shape}, but means has shape {means.shape}.")
        if (stds < 0).any():
            raise ValueError(f"stds must not be negative, got a minimum of {stds.min():.6g}.")
        labels, classes = _check_labels(self.labels, self.classes, means.shape[0])
        for name, array in (
            ("weights", weights),
            ("means", means),
            ("stds", stds),
            ("labels", labels),
            ("classes", classes),
        ):
            object.__setattr__(self, name, _frozen(array))

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
        """Whether the components carry class labels."""
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

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> from mixda import Mixture
        >>> float(Mixture([1.0], [[0.0]], [[1.0]]).log_prob([[0.0]])[0])
        -0.9189385332046727
        """
        return self._posterior(X)[1]

    def responsibilities(self, X: ArrayLike) -> Array:
        r"""Probability of each component, :math:`P(k \mid x)`, for every row of `X`: shape (n, K).

        Examples
        --------
        >>> from mixda import Mixture
        >>> Mixture([0.5, 0.5], [[0.0], [9.0]], [[1.0], [1.0]]).responsibilities([[4.5]])
        array([[0.5, 0.5]])
        """
        return self._posterior(X)[0]

    def predict_proba(self, X: ArrayLike) -> Array:
        r"""Probability of each class :math:`P(y \mid x) = \sum_k P(k \mid x) v_{k,y}`.

        Returns an array of shape (n, nc), columns in the order of `classes`.

        Examples
        --------
        >>> from mixda import Mixture
        >>> p = Mixture([0.5, 0.5], [[0.0], [9.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])
        >>> p.predict_proba([[4.5]])
        array([[0.5, 0.5]])
        """
        labels, _ = self._labeled()
        proba: Array = self.responsibilities(X) @ labels
        proba /= proba.sum(axis=1, keepdims=True)
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
        winners: NDArray[Any] = classes[self.predict_proba(X).argmax(axis=1)]
        return winners

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean log-density of `X` (`y` is ignored, as in scikit-learn's mixtures).

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

    def save(self, path: str | Path) -> None:
        """Write the mixture to `path` (customarily ``.gmm``), atomically.

        The file is a NumPy ``.npz`` archive without pickles: `weights`, `means`, `stds`, for a
        labelled mixture `labels` and `classes`, and `header`, a JSON text with the names of the
        format and its version and a SHA-256 of the arrays. ``numpy.load(path)`` opens it.
        """
        arrays = self._arrays()
        header = {"format": FORMAT, "version": FORMAT_VERSION, "sha256": _digest(arrays)}
        buffer = io.BytesIO()
        entries: dict[str, Any] = {"header": np.array(json.dumps(header)), **arrays}
        np.savez_compressed(buffer, **entries)
        write_atomically(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Mixture:
        """Read a mixture written by `save`; bit for bit the same.

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
        arrays = _read_arrays(Path(path))
        try:
            header = json.loads(str(arrays.pop("header")))
            known = header["format"] == FORMAT
            version, digest = int(header["version"]), header["sha256"]
        except (KeyError, TypeError, ValueError):
            known = False
        if not known:
            raise ValueError(f"{path} is not a mixture file written by mixda.")
        if version > FORMAT_VERSION:
            raise ValueError(
                f"{path} has format version {version}, this mixda reads up to {FORMAT_VERSION}; "
                "upgrade mixda to open it."
            )
        if digest != _digest(arrays):
            raise ValueError(f"{path} is damaged (its checksum does not match); copy it again.")
        try:
            return cls(**arrays)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} does not hold a valid mixture: {error}") from None

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
        kind = model.covariance_type
        if kind not in ("diag", "spherical"):
            raise ValueError(
                f"covariance_type must be 'diag' or 'spherical', got {kind!r}; refit the model "
                "with axis-aligned covariances."
            )
        if not hasattr(model, "means_"):
            raise ValueError("the GaussianMixture is not fitted; call its fit first.")
        variances = np.asarray(model.covariances_)
        if kind == "spherical":
            variances = np.repeat(variances[:, None], model.means_.shape[1], axis=1)
        return cls(model.weights_, model.means_, np.sqrt(variances))

    def to_sklearn(self) -> GaussianMixture:
        """Return a fitted ``GaussianMixture("diag")`` with these parameters (labels are dropped).

        Examples
        --------
        >>> from mixda import Mixture
        >>> p = Mixture([1.0], [[0.0]], [[1.0]])
        >>> float(p.to_sklearn().score_samples([[0.0]])[0]) == p.score([[0.0]])
        True
        """
        from sklearn.mixture import GaussianMixture

        self._check_spread()
        model = GaussianMixture(self.n_components, covariance_type="diag")
        model.weights_, model.means_ = self.weights.copy(), self.means.copy()
        model.covariances_ = self.stds**2
        model.precisions_, model.precisions_cholesky_ = 1.0 / self.stds**2, 1.0 / self.stds
        model.n_features_in_ = self.n_features
        model.converged_ = True
        model.n_iter_ = 0
        return model

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixture):
            return NotImplemented
        mine, theirs = self._arrays(), other._arrays()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(mine[name], theirs[name]) for name in mine
        )

    def __hash__(self) -> int:
        return hash((self.means + 0.0).tobytes())  # -0.0 equals 0.0

    def __repr__(self) -> str:
        classes = "" if self.classes is None else f", classes={self.classes.tolist()}"
        return f"Mixture(n_components={self.n_components}, n_features={self.n_features}{classes})"

    def __reduce__(self) -> tuple[type[Mixture], tuple[Any, ...]]:
        return Mixture, (self.weights, self.means, self.stds, self.labels, self.classes)

    @cached_property
    def _log_weights(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.weights))

    def _posterior(self, X: ArrayLike) -> tuple[Array, Array]:
        self._check_spread()
        log_joint = log_gaussians(check_X(X, n_features=self.n_features), self.means, self.stds)
        log_joint += self._log_weights
        log_prob = normalize_log_rows(log_joint)
        return log_joint, log_prob

    def _check_spread(self) -> None:
        if self.stds.min() < 1.0 / LARGEST:
            raise ValueError(
                "this mixture has components with a standard deviation of zero, or as good as "
                "zero, so it has no density; fit it with a floor (min_std) above zero."
            )

    def _labeled(self) -> tuple[Array, NDArray[Any]]:
        if self.labels is None or self.classes is None:
            raise ValueError(
                "this mixture has no labels, so it cannot classify; fit it with "
                "fit_labeled_mixture or adapt it first."
            )
        return self.labels, self.classes

    def _arrays(self) -> dict[str, NDArray[Any]]:
        names = ("weights", "means", "stds", "labels", "classes")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def log_gaussians(X: Array, means: Array, stds: Array) -> Array:
    r"""Log-densities of axis-aligned Gaussians, :math:`\log\mathcal{N}(x_i; m_k, s_k)`.

    Two matrix products around a common centre; for the components where cancellation would cost
    half of the digits (spread far below the distance to that centre), plain differences instead.

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
    n, d = X.shape
    center = means.mean(axis=0)
    kernel = LogGaussians.around(means - center, stds)
    out = np.empty((means.shape[0], n))
    step = max(1, _CHUNK_VALUES // d)
    for start in range(0, n, step):
        x = X[start : start + step] - center
        out[:, start : start + step] = kernel(x, np.square(x))
    by_sample: Array = out.T
    return by_sample


@dataclass(frozen=True, eq=False)
class LogGaussians:
    r"""The one density kernel: :math:`c_k + x \cdot m_k/s_k^2 - x^2 \cdot 1/(2 s_k^2)`.

    Samples and means are given relative to a centre near both. Rows are components, so that
    reductions over components run along contiguous memory.
    """

    constants: Array  # (K, 1)
    linear: Array  # (K, d)
    quadratic: Array  # (K, d)
    means: Array
    stds: Array
    distant: tuple[int, ...]  # components where the products would cancel

    @classmethod
    def around(cls, means: Array, stds: Array) -> LogGaussians:
        """Prepare the densities of components whose `means` are already centred."""
        precisions = stds**-2.0
        linear = means * precisions
        squares = means * linear
        constants = -0.5 * (means.shape[1] * _LOG_2PI + squares.sum(axis=1))
        constants -= np.log(stds).sum(axis=1)
        distant = np.flatnonzero(squares.max(axis=1) >= _CANCELLATION)
        precisions *= -0.5
        return cls(constants[:, None], linear, precisions, means, stds, tuple(distant.tolist()))

    def __call__(self, x: Array, squares: Array) -> Array:
        """Log-densities of centred samples `x` (n, d), given their `squares`: shape (K, n)."""
        out: Array = self.linear @ x.T
        out += self.quadratic @ squares.T
        out += self.constants
        for k in self.distant:
            scaled = (x - self.means[k]) / self.stds[k]
            constant = self.means.shape[1] * _LOG_2PI + 2.0 * np.log(self.stds[k]).sum()
            out[k] = -0.5 * (np.einsum("ij,ij->i", scaled, scaled) + constant)
        return out


def normalize_log_rows(log_joint: Array) -> Array:
    """Turn rows of log-weights into probabilities in place; return their log-sum-exp, shape (n,).

    The largest weight of a row is taken out first, so nothing underflows.
    """
    largest = log_joint.max(axis=1)
    log_joint -= largest[:, None]
    np.exp(log_joint, out=log_joint)
    total: Array = log_joint.sum(axis=1)
    log_joint /= total[:, None]
    np.log(total, out=total)
    total += largest
    return total


def _check_labels(
    labels: ArrayLike | None, classes: ArrayLike | None, n_components: int
) -> tuple[Array | None, NDArray[Any] | None]:
    if labels is None:
        if classes is not None:
            raise ValueError("classes were given without labels; give labels of shape (K, nc) too.")
        return None, None
    labels = check_array(labels, "labels", ndim=2)
    if labels.shape[0] != n_components or labels.shape[1] == 0:
        raise ValueError(
            f"labels has shape {labels.shape}, but there are {n_components} components; "
            "its rows are components, its columns classes."
        )
    if (labels < 0).any() or np.abs(labels.sum(axis=1) - 1.0).max() > 1e-6:
        raise ValueError("every row of labels must be non-negative and sum to one.")
    names = check_names(np.arange(labels.shape[1]) if classes is None else classes, "classes")
    if len(names) != labels.shape[1] or len(np.unique(names)) != len(names):
        raise ValueError(
            f"classes must be {labels.shape[1]} different names, one per column of labels, "
            f"got {names.tolist()!r}."
        )
    return labels, names


def _frozen(array: NDArray[Any] | None) -> NDArray[Any] | None:
    if array is None or not (array.flags.writeable or array.base is not None):
        return array
    array = array.copy()  # also of a read-only view: its owner may still write
    array.flags.writeable = False
    return array


def _digest(arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist.") from None
    except OSError as error:
        if error.errno is not None:
            raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
        raise ValueError(f"{path} is not a mixture file written by mixda.") from None
    except _NOT_AN_ARCHIVE:
        raise ValueError(f"{path} is not a mixture file written by mixda, or is cut off.") from None
    except Exception as error:  # a damaged archive can fail anywhere in zlib, struct or ast
        raise ValueError(f"{path} is damaged ({type(error).__name__}); copy it again.") from None
