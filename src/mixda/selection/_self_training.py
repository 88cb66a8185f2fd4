r"""Self-training: a classifier of the target's own clusters that starts from the committee.

Gaussian classes with a common covariance are fitted to the target's rows, with the committee's
probabilities as soft labels, and the pool becomes

.. math:: p(y \mid x) \propto p_{\text{committee}}(y \mid x)^a \,
          p_{\text{clusters}}(y \mid x)^g.

Both powers are learned on held-out sources, with a pull toward their usual values. Where classes do
not form clusters, the clusters' probabilities are nearly uniform and change little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax
from sklearn.decomposition import PCA

from mixda._core.typing import Array
from mixda.rules import Chain, Linear, Softmax, smooth_logs
from mixda.selection._pool import SMOOTHING, Fold

_MAX_AXES = 60  # principal components of the target's rows
_ROUNDS = 3
_SHRINKAGE = 0.3  # of the covariance toward a sphere
_MEAN_ROWS = 5.0  # that the mean of all rows counts for in the mean of a class
_USUAL = (1.0, 0.5)  # powers that held-out sources speak for or against
_PULL = 0.1  # of the powers toward these
_POWER_BOUNDS = np.array([0.05, 0.0]), np.array([4.0, 4.0])
_NEWTON_STEPS = 30
_MIN_POWER = 0.02  # below which self-training is left out


@dataclass(frozen=True)
class Powers:
    """Powers of the committee and of the self-trained classifier.

    `score` is the mean accuracy of the latter on held-out sources, if it is known.
    """

    committee: float = 1.0
    clusters: float = 0.0
    score: float | None = None

    def combine(self, committee: Array, clusters: Array) -> Array:
        """Return normalized log-probabilities, shape (n, nc)."""
        logs: Array = log_softmax(self.committee * committee + self.clusters * clusters, axis=1)
        return logs


def fit_clusters(Z: Array, proba: Array) -> Chain:
    """Fit Gaussian classes to rows with soft labels; return them as a rule.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Rows on their own scale.
    proba : ndarray of shape (n, nc)
        Soft labels to start from.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._self_training import fit_clusters
    >>> Z = np.array([[-1.1], [-1.0], [-0.9], [0.9], [1.0], [1.1]])
    >>> proba = np.repeat([[0.8, 0.2], [0.2, 0.8]], 3, axis=0)
    >>> fit_clusters(Z, proba)(Z).argmax(axis=1)
    array([0, 0, 0, 1, 1, 1])
    """
    axes, center = np.eye(Z.shape[1]), np.zeros(Z.shape[1])
    n_axes = max(1, min(_MAX_AXES, len(Z) // 3))
    if Z.shape[1] > n_axes and len(Z) > 1:
        pca = PCA(n_axes, svd_solver="randomized", random_state=0).fit(Z)
        axes, center = pca.components_.T, pca.mean_
    X = (Z - center) @ axes
    for _ in range(_ROUNDS):
        slopes, offsets = _discriminants(X, proba)
        proba = np.exp(log_softmax(X @ slopes + offsets, axis=1))
    return Chain((Linear(axes @ slopes, offsets - center @ axes @ slopes), Softmax()))


def _discriminants(X: Array, proba: Array) -> tuple[Array, Array]:
    """Return slopes and offsets of Gaussian classes with a common, shrunk covariance."""
    mass = proba.sum(axis=0) + 1e-3
    means = (proba.T @ X + _MEAN_ROWS * X.mean(axis=0)) / (mass + _MEAN_ROWS)[:, None]
    second = (X * proba.sum(axis=1)[:, None]).T @ X
    cross = means.T @ (proba.T @ X)
    within = (second - cross - cross.T + (means.T * proba.sum(axis=0)) @ means) / len(X)
    d = len(within)
    sphere = np.trace(within) / d * np.eye(d)
    within = (1.0 - _SHRINKAGE) * within + _SHRINKAGE * sphere + 1e-6 * np.eye(d)
    slopes = np.linalg.solve(within, means.T)
    offsets = np.log(mass / mass.sum()) - 0.5 * (means.T * slopes).sum(axis=0)
    return slopes, offsets


def answer(rule: Chain, Z: Array) -> Array:
    """Return smoothed log-probabilities of a self-trained classifier, as of any member."""
    return smooth_logs(rule(Z), SMOOTHING)


def learn_powers(folds: Sequence[Fold], committee: Sequence[Array]) -> tuple[Powers, list[Array]]:
    """Learn both powers on held-out sources; return them, and what the pair says there.

    Parameters
    ----------
    folds : sequence of Fold
    committee : sequence of ndarray of shape (n, nc)
        Log-probabilities of the committee on each fold, with weights from the others.
    """
    pairs = []
    for fold, logs in zip(folds, committee, strict=True):
        if fold.Z is None:
            return Powers(), list(committee)
        pairs.append((logs, answer(fit_clusters(fold.Z, np.exp(logs)), fold.Z)))

    values = np.array(_USUAL)
    for _ in range(_NEWTON_STEPS):
        gradient, curvature = 2.0 * _PULL * (values - _USUAL), 2.0 * _PULL * np.eye(2)
        for fold, pair in zip(folds, pairs, strict=True):
            proba = np.exp(Powers(*values).combine(*pair))
            centered = np.array([part - (proba * part).sum(axis=1, keepdims=True) for part in pair])
            share = 1.0 / (len(fold.truth) * len(folds))
            gradient -= share * centered[:, np.arange(len(fold.truth)), fold.truth].sum(axis=1)
            curvature += share * np.einsum("anc,bnc,nc->ab", centered, centered, proba)
        step = np.clip(np.linalg.solve(curvature, gradient), -0.5, 0.5)
        values, last = np.clip(values - step, *_POWER_BOUNDS), values
        if np.abs(values - last).max() < 1e-12:
            break
    hits = [
        (clusters.argmax(axis=1) == fold.truth) @ fold.rows
        for fold, (_, clusters) in zip(folds, pairs, strict=True)
    ]
    powers = Powers(float(values[0]), float(values[1]), float(np.mean(hits)))
    if powers.clusters < _MIN_POWER:
        return Powers(), list(committee)
    return powers, [powers.combine(*pair) for pair in pairs]
