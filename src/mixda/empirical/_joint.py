"""WJDOT: weighted joint distribution optimal transport with a linear classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from mixda._core.namespace import check_numpy
from mixda._core.progress import Progress
from mixda._core.typing import Array, Codes, Source
from mixda._core.validation import check_number, check_positive_int, check_random_state
from mixda.dictionary import Adam, project_simplex
from mixda.empirical._clouds import draw_balanced
from mixda.transport import solve_exact, squared_distances

_MIN_SOURCE_WEIGHT = 1e-6


@dataclass(frozen=True)
class JointTransport:
    """A linear classifier learned with weighted joint distribution optimal transport.

    Attributes
    ----------
    coefficients, intercept : ndarray of shape (d, nc), (nc,)
        Scores are the sigmoid of ``x @ coefficients + intercept``.
    source_weights : ndarray of shape (N,)
        The learned weights α of the sources.
    history : ndarray
        Transport cost at every step.
    """

    coefficients: Array
    intercept: Array
    source_weights: Array
    history: Array

    def scores(self, X: Array) -> Array:
        """Sigmoid scores of the classes, shape (n, nc)."""
        scores: Array = expit(X @ self.coefficients + self.intercept)
        return scores


def learn_joint_transport(
    sources: Sequence[Source],
    target: Array,
    n_classes: int,
    *,
    label_weight: float = 1.0,
    learning_rate: float = 0.01,
    weight_rate: float = 0.01,
    batch_size: int | None = 200,
    n_iter: int = 300,
    verbose: bool = False,
    random_state: Any = None,
) -> JointTransport:
    r"""Learn a target classifier jointly with the weights of the sources (WJDOT).

    .. math:: \min_{f, \alpha \in \Delta_N} W\Bigl(\tfrac{1}{n_T} \sum_i
              \delta_{(x_i, f(x_i))}, \sum_\ell \tfrac{\alpha_\ell}{n_\ell} \sum_j
              \delta_{(x_j^\ell, y_j^\ell)}\Bigr), \quad
              c = \frac{\lVert x - x' \rVert^2}{\tau} + b \lVert f(x) - y' \rVert^2

    where `f` is linear under a sigmoid and :math:`\tau` is the median feature cost, so that the
    label term does not vanish in high dimension. The plan is exact. The gradient in α is the mean
    potential of every source. It is centered, because potentials are defined up to a constant. α is
    at least 1e-6, because a source without mass has no potentials.

    Parameters
    ----------
    sources : sequence of (X, codes)
    target : ndarray of shape (n, d)
    n_classes : int
    label_weight : float
        The weight b of the labels.
    learning_rate, weight_rate : float
        Learning rates of Adam for the classifier and of projected gradient descent for α.
    batch_size : int or None
        Samples drawn from every source (balanced over its classes) and from the target in each
        step. None uses all samples, as in the paper.
    n_iter : int
        Number of steps.
    verbose : bool
    random_state : int or Generator, optional

    Returns
    -------
    JointTransport

    References
    ----------
    .. [1] R. Turrisi, R. Flamary, A. Rakotomamonjy and M. Pontil, "Multi-source domain
       adaptation via weighted joint distributions optimal transport", UAI 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.empirical import learn_joint_transport
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 20)
    >>> X = rng.normal(size=(40, 2)) + 6.0 * y[:, None]
    >>> fitted = learn_joint_transport([(X, y), (X + 9, y)], X, 2, n_iter=50, random_state=0)
    >>> int(fitted.source_weights.argmax())
    0
    """
    rng = check_random_state(random_state)
    n_iter = check_positive_int(n_iter, "n_iter")
    if batch_size is not None:
        check_positive_int(batch_size, "batch_size")
    check_number(label_weight, "label_weight", above=True)
    check_number(learning_rate, "learning_rate", above=True)
    check_number(weight_rate, "weight_rate", above=True)
    for X in (*(X for X, _ in sources), target):
        check_numpy(X, "learn_joint_transport")
    n_sources, adam = len(sources), Adam(learning_rate)
    coefficients = np.zeros((target.shape[1] + 1, n_classes))
    alpha = np.full(n_sources, 1.0 / n_sources)
    center, scale, batch, history = target.mean(axis=0), 0.0, None, []
    with Progress(n_iter, "joint transport", verbose) as progress:
        for step in range(1, n_iter + 1):
            if batch is None or batch_size is not None:
                batch = _JointBatch.draw(sources, target, n_classes, batch_size, rng)
                scale = scale or float(np.median(batch.cost)) or 1.0
            x = np.hstack([(batch.x - center) / np.sqrt(scale), np.ones((len(batch.x), 1))])
            f = expit(x @ coefficients)
            cost = batch.cost / scale + label_weight * squared_distances(f, batch.Y)
            q = (alpha / batch.counts)[batch.owner]
            plan = solve_exact(np.full(len(f), 1.0 / len(f)), q / q.sum(), cost)
            history.append(plan.value(cost))
            # half-gradient in f(x_i): f_i / n - Σ_j ω_ij y_j, then through the sigmoid
            matched = np.zeros_like(f)
            np.add.at(matched, plan.rows, plan.mass[:, None] * batch.Y[plan.columns])
            slope = 2.0 * label_weight * (f / len(f) - matched) * f * (1.0 - f)
            coefficients = coefficients - adam.move("f", x.T @ slope)
            if n_sources > 1:
                slopes = np.bincount(batch.owner, plan.duals(cost)[1]) / batch.counts
                moved = alpha - weight_rate * (slopes - slopes.mean())
                alpha = np.maximum(project_simplex(moved[None])[0], _MIN_SOURCE_WEIGHT)
                alpha = alpha / alpha.sum()
            progress.update(step, f"cost {history[-1]:.4g}")
    weights = coefficients[:-1] / np.sqrt(scale)
    intercept = coefficients[-1] - center @ weights
    return JointTransport(weights, intercept, alpha, np.array(history))


@dataclass(frozen=True)
class _JointBatch:
    """The samples of one step: target, sources with labels and owners, and the feature cost."""

    x: Array
    Y: Array
    owner: Codes
    counts: Codes
    cost: Array

    @classmethod
    def draw(
        cls,
        sources: Sequence[Source],
        target: Array,
        n_classes: int,
        batch_size: int | None,
        rng: np.random.Generator,
    ) -> _JointBatch:
        """Take all samples, or a batch of every domain; those of sources are class-balanced."""
        parts, x = list(sources), target
        if batch_size is not None:
            rows = [draw_balanced(codes, min(batch_size, len(codes)), rng) for _, codes in sources]
            parts = [(X[r], codes[r]) for (X, codes), r in zip(sources, rows, strict=True)]
            x = target[rng.permutation(len(target))[:batch_size]]
        counts = np.array([len(codes) for _, codes in parts])
        Y = np.eye(n_classes)[np.concatenate([codes for _, codes in parts])]
        cost = squared_distances(x, np.vstack([X for X, _ in parts]))
        return cls(x, Y, np.repeat(np.arange(len(parts)), counts), counts, cost)
