"""Features of a target: raw, or of a frozen backbone that was trained on the sources only.

One file per target (and seed, if there is a backbone) stores the features of all domains and the
folds, so that all methods see the same numbers. The labels of the target are stored
separately and read only for scoring.
"""

from __future__ import annotations

import io
import itertools
import zipfile
import zlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.atomic import write_atomically
from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_choice
from mixda.benchmark._suites import make_folds
from mixda.datasets import DomainDataset
from mixda.estimators import DomainEncoder

Codes = NDArray[np.int64]

FEATURES = (
    *("raw", "standardized", "standardized-domain"),
    *("mlp", "standardized-mlp", "standardized-domain-mlp"),
    *("statistics", "statistics-mlp", "fcn"),
)
BACKBONES = tuple(kind for kind in FEATURES if kind.endswith(("mlp", "fcn")))  # one per seed
_OF_SERIES = ("statistics", "statistics-mlp", "fcn")
N_BANDS = 6  # of the spectrum in "statistics", of equal width in octaves
# Chosen by the accuracy on a held-out run of the sources of TEP mode 1 (0.69). More epochs or a
# larger learning rate did not help; larger batches lost up to 0.1.
FCN_EPOCHS = 30
FCN_BATCH = 16
FCN_STEPS = 3  # consecutive time steps that are averaged, which divides the cost by five
RECIPE = 1  # increase it whenever features or folds of the same data change
BACKBONE_RECIPE = 2  # since the seed of a cell is also that of its backbone


@dataclass(frozen=True, eq=False)
class FoldTask:
    """A fold of a target as a method sees it, without the labels of the target.

    Attributes
    ----------
    X, y, sample_domain : ndarray
        Sources, and the other folds of the target with y = -1, as in SKADA.
    X_test : ndarray of shape (n_test, f)
        The held-out fold.
    """

    X: Array
    y: Codes
    sample_domain: Codes
    X_test: Array


def check_backbone(features: str) -> None:
    """Raise an error at once if the backbone of these features cannot be trained."""
    if features == "fcn" and find_spec("torch") is None:
        raise MixdaError(
            "features='fcn' requires torch. Install it with: pip install 'mixda[deep]', or use "
            "features='statistics-mlp'."
        )


def make_features(
    data: DomainDataset, target: str, features: str, seed: int = 0
) -> dict[str, NDArray[Any]]:
    """Compute the features of all domains for one target, and its folds.

    Parameters
    ----------
    data : DomainDataset
    target : str
    features : str
        One of `FEATURES`. "raw": unchanged. "standardized": by the moments of the sources.
        "standardized-domain": each domain by its own moments. "mlp", "standardized-mlp",
        "standardized-domain-mlp": the last hidden layer of a network on these, trained on the
        sources. For time series (variables, steps), which are standardized per domain:
        "statistics", the mean, the logarithm of the standard deviation and the logarithmic power
        in frequency bands of each variable; "statistics-mlp", the last hidden layer of a network on
        them; "fcn", that of a convolutional network (requires torch). Standardization per domain
        includes the held-out fold of the target, but no labels.
    seed : int
        Of the backbone, if there is one.

    Returns
    -------
    dict
        ``Z`` (n, f) float32, ``y`` (-1 on target rows), ``domain``, ``fold`` (-1 on source
        rows), ``target_labels``, ``backbone_accuracy`` (on the sources; NaN without a backbone).

    Examples
    --------
    >>> from mixda.benchmark._features import make_features
    >>> from mixda.datasets import make_shifted_toy
    >>> made = make_features(make_shifted_toy(random_state=2), "target", "raw")
    >>> made["Z"].shape, sorted(set(made["fold"].tolist()))
    ((4000, 2), [-1, 0, 1, 2, 3, 4])
    """
    check_choice(features, "features", FEATURES)
    task = data.as_task(target)
    held_out = task.sample_domain < 0
    fold = np.full(len(data.X), -1)
    block = None if data.block is None else data.block[held_out]
    fold[held_out] = make_folds(int(held_out.sum()), block)
    Z, accuracy = _encode(data, task.y, task.sample_domain, features, seed)
    return {
        "Z": Z.astype(np.float32),
        "y": task.y,
        "domain": data.domain,
        "fold": fold,
        "target_labels": task.y_target,
        "backbone_accuracy": np.array(accuracy),
    }


def recipe(features: str) -> str:
    """Return the version of a kind of features, with the constants that it depends on.

    Examples
    --------
    >>> from mixda.benchmark._features import recipe
    >>> recipe("raw"), recipe("fcn")
    ('1', '2-30-16-3')
    """
    constants = {"fcn": (FCN_EPOCHS, FCN_BATCH, FCN_STEPS)}.get(features, ())
    version = BACKBONE_RECIPE if features in BACKBONES else RECIPE
    return "-".join(str(number) for number in (version, *constants))


FIRST_RECIPES = {"fcn": "1-30-16-3"}  # of runs that did not record it; "1" for other features


_STORED = ("Z", "y", "domain", "fold", "target_labels", "backbone_accuracy")


def write_features(path: Path, made: dict[str, NDArray[Any]]) -> None:
    """Write features to disk atomically."""
    buffer = io.BytesIO()
    np.savez(buffer, **made)  # type: ignore[arg-type]
    write_atomically(path, buffer.getvalue())


def is_whole(path: Path) -> bool:
    """Return whether a feature file exists and is undamaged."""
    try:
        with zipfile.ZipFile(path) as stored:
            names = {f"{name}.npy" for name in _STORED}
            return names <= set(stored.namelist()) and stored.testzip() is None
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError):
        return False


def read_task(path: Path, seed: int) -> FoldTask:
    """Read the task of fold ``seed % n_folds``, without target labels."""
    with np.load(path) as stored:
        Z, y = stored["Z"].astype(np.float64), stored["y"]
        domain, fold = stored["domain"], stored["fold"]
    test = fold == seed % (fold.max() + 1)
    number = np.where(fold >= 0, -1 - domain, 1 + domain)
    return FoldTask(Z[~test], y[~test], number[~test], Z[test])


def read_labels(path: Path, seed: int) -> tuple[Codes, Codes]:
    """Read the target labels of the folds adapted to and of the held-out fold."""
    with np.load(path) as stored:
        fold, labels = stored["fold"], stored["target_labels"]
    fold = fold[fold >= 0]
    test = fold == seed % (fold.max() + 1)
    return labels[~test], labels[test]


def read_accuracy(path: Path) -> float | None:
    """Read the training accuracy of the backbone; None without a backbone."""
    with np.load(path) as stored:
        accuracy = float(stored["backbone_accuracy"])
    return None if np.isnan(accuracy) else accuracy


def _encode(
    data: DomainDataset, y: Codes, ids: Codes, features: str, seed: int
) -> tuple[Array, float]:
    source = ids >= 0
    if features == "fcn":
        return _fcn(_series(data, ids), y, source, seed)
    if features in _OF_SERIES:
        scale: str | None = "domain"
        X = series_statistics(_series(data, ids))
    else:
        scale = None if features in ("raw", "mlp") else "sources"
        scale = "domain" if features.startswith("standardized-domain") else scale
        X = np.array(data.X)
    encoder = DomainEncoder(scale, "mlp" if features in BACKBONES else None, seed)
    Z = encoder.fit_transform(X, y[source], ids)
    if features not in BACKBONES:
        return Z, np.nan
    return Z, _linear_accuracy(Z[source], y[source])


def series_statistics(series: Array) -> Array:
    r"""Return level, amplitude and spectrum of each variable of time series.

    .. math:: \Bigl(\bar{x}, \; \log(\sigma_x + \epsilon), \;
              \log\bigl(\tfrac{1}{|B|} \textstyle\sum_{f \in B} |\hat{x}_f|^2 + \epsilon\bigr)_B
              \Bigr)

    Parameters
    ----------
    series : ndarray of shape (n, variables, steps)
        Standardized, so that :math:`\epsilon = 10^{-3}` is small.

    Returns
    -------
    ndarray of shape (n, variables * (2 + n_bands))
        At most six bands, of equal width in octaves.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.benchmark._features import series_statistics
    >>> series_statistics(np.zeros((5, 3, 100))).shape
    (5, 24)
    """
    mean, eps = series.mean(axis=2), 1e-3
    power = np.abs(np.fft.rfft(series - mean[:, :, None], axis=2, norm="ortho")[:, :, 1:]) ** 2
    edges = np.unique(np.geomspace(1, power.shape[2] + 1, N_BANDS + 1).round().astype(int)) - 1
    bands = [power[:, :, a:b].mean(axis=2) for a, b in itertools.pairwise(edges)]
    logs = [np.log(part + eps) for part in (series.std(axis=2), *bands)]
    return np.concatenate([mean, *logs], axis=1)


def _series(data: DomainDataset, ids: Codes) -> Array:
    """Return time series (n, variables, steps), each variable standardized per domain."""
    if len(data.sample_shape) != 2:
        raise MixdaError(
            f"features={', '.join(map(repr, _OF_SERIES))} require time series (variables, steps), "
            f"but samples have shape {data.sample_shape}. Use 'standardized' or 'mlp'."
        )
    series = np.array(data.X).reshape(len(data.X), *data.sample_shape)
    for k in np.unique(ids):
        part = series[ids == k]
        mean, std = part.mean(axis=(0, 2)), part.std(axis=(0, 2))
        std = np.where(std <= 1e-9 * (1.0 + np.abs(mean)), 1.0, std)
        series[ids == k] = (part - mean[:, None]) / std[:, None]
    return series


def _fcn(series: Array, y: Codes, source: NDArray[np.bool_], seed: int = 0) -> tuple[Array, float]:
    from mixda.deep import train_backbone

    n, channels, steps = series.shape
    kept = steps // FCN_STEPS * FCN_STEPS
    short = series[:, :, :kept].reshape(n, channels, -1, FCN_STEPS).mean(axis=3)
    encoder = train_backbone(
        short[source], y[source], "fcn", epochs=FCN_EPOCHS, batch_size=FCN_BATCH, random_state=seed
    )
    Z = encoder.transform(short)
    Z = (Z - Z[source].mean()) / Z[source].std()  # pooled normalized channels are small
    return Z, _linear_accuracy(Z[source], y[source])


def _linear_accuracy(Z: Array, y: Codes) -> float:
    """Return the training accuracy of a linear classifier on the features."""
    from sklearn.linear_model import LogisticRegression

    return float(LogisticRegression(max_iter=200).fit(Z, y).score(Z, y))
