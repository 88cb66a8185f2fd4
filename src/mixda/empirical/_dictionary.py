"""The same verbs for samples instead of components: WBT, DaDiL and WJDOT without mixtures.

A labeled point cloud is a mixture whose components have no spread: its barycenters, plans and
gradients are those of `mixda.barycenters`, `mixda.transport` and the engine of the dictionary.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from mixda._core.progress import Progress
from mixda._core.validation import (
    Array,
    check_choice,
    check_number,
    check_positive_int,
    check_random_state,
    check_X,
    encode_classes,
)
from mixda.barycenters import Gram, auto_beta
from mixda.dictionary import (
    Adam,
    Dictionary,
    Engine,
    History,
    Reconstruction,
    State,
    coordinate_gradient,
    project_simplex,
)
from mixda.mixture import Mixture
from mixda.transport import Beta, solve_exact, squared_distances

Labeled = tuple[Array, NDArray[np.intp]]


def point_cloud(
    X: ArrayLike, y: ArrayLike | None = None, classes: ArrayLike | None = None
) -> Mixture:
    """Return samples as a mixture of n components without spread, labeled one-hot.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,), optional
    classes : array-like of shape (nc,), optional
        By default those of `y`.

    Examples
    --------
    >>> from mixda.empirical import point_cloud
    >>> point_cloud([[0.0], [1.0]], ["b", "a"]).labels
    array([[0., 1.],
           [1., 0.]])
    """
    X = check_X(X)
    weights = np.full(len(X), 1.0 / len(X))
    if y is None:
        return Mixture(weights, X, np.zeros_like(X))
    names, codes = encode_classes(y, classes, len(X))
    return Mixture(weights, X, np.zeros_like(X), np.eye(len(names))[codes], names)


def learn_empirical_dictionary(
    sources: Sequence[Labeled],
    target: Array,
    n_classes: int,
    *,
    n_atoms: int = 3,
    n_points: int = 200,
    batch_size: int = 100,
    n_epochs: int = 40,
    learning_rate: float = 0.1,
    beta: Beta = "auto",
    init: str = "sources",
    verbose: bool = False,
    random_state: Any = None,
) -> Dictionary:
    r"""Learn atoms that are labeled point clouds, by mini-batches (DaDiL).

    .. math:: \min_{\Lambda, \mathcal{P}} \; W_2(\hat Q_T, \mathcal{B}(\lambda_T, \mathcal{P}))^2
              + \sum_\ell W_{c,2}(\hat Q_\ell, \mathcal{B}(\lambda_\ell, \mathcal{P}))^2

    Each step draws `batch_size` samples of every domain and points of every atom, balanced over
    the classes, and takes an Adam step with the gradients of the GMM version's engine. An epoch
    is ``ceil(n_points / batch_size)`` steps.

    Parameters
    ----------
    sources : sequence of (X, codes)
        Samples and integer classes ``0 … n_classes - 1``.
    target : ndarray of shape (n, d)
    n_classes : int
    n_atoms, n_points, batch_size, n_epochs : int
    learning_rate : float
    beta : float, "auto" or "max"
    init : {"sources", "random"}
        Atoms start as samples of the sources (atom c at source c modulo N, a class that this
        one lacks at the others), or as in the paper at N(0, I) with one-hot logits.
    verbose : bool
    random_state : int or Generator, optional

    Returns
    -------
    Dictionary
        Whose atoms are mixtures without spread.

    References
    ----------
    .. [1] E. Fernandes Montesuma, F. Ngolè Mboula and A. Souloumiac, "Multi-source domain
       adaptation through dataset dictionary learning in Wasserstein space", ECAI 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.empirical import learn_empirical_dictionary
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 20)
    >>> X = rng.normal(size=(40, 2)) + 6.0 * y[:, None]
    >>> d = learn_empirical_dictionary([(X, y), (X + 1, y)], X + 2, 2, n_points=20, batch_size=10)
    >>> d.target.means.shape
    (20, 2)
    """
    rng = check_random_state(random_state)
    n_points = check_positive_int(n_points, "n_points")
    batch_size = min(check_positive_int(batch_size, "batch_size"), n_points)
    n_epochs = check_positive_int(n_epochs, "n_epochs")
    check_number(learning_rate, "learning_rate", above=True)
    check_choice(init, "init", ("sources", "random"))
    clouds = [X for X, _ in sources] + [target]
    if beta == "auto":
        beta = auto_beta([X[rng.permutation(len(X))[:500]] for X in clouds])
    codes = np.arange(n_points) * n_classes // n_points
    state = _start(sources, len(clouds), n_atoms, codes, n_classes, init, rng)
    steps = -(-n_points // batch_size)
    adam, rows, began = Adam(learning_rate), [], time.perf_counter()
    with Progress(n_epochs, "learning the dictionary", verbose) as progress:
        for epoch in range(n_epochs):
            losses = []
            for _ in range(steps):
                engine = _batch_engine(sources, target, n_classes, n_atoms, batch_size, beta, rng)
                own = state.labels.argmax(axis=1).reshape(n_atoms, n_points)
                picked = [_draw(classes, batch_size, rng) for classes in own]
                state, found = _batch_step(engine, adam, state, np.stack(picked), n_points)
                losses.append([r.loss for r in found])
            mean = np.mean(losses, axis=0)
            rows.append((mean.sum(), mean, state.coordinates, time.perf_counter() - began))
            progress.update(epoch + 1, f"loss {rows[-1][0]:.4g}")
    history = History(*(np.stack(column) for column in zip(*rows, strict=True)))
    return _dictionary(state, n_atoms, n_points, beta, history)


def _batch_engine(
    sources: Sequence[Labeled],
    target: Array,
    n_classes: int,
    n_atoms: int,
    batch_size: int,
    beta: Beta,
    rng: np.random.Generator,
) -> Engine:
    clouds: list[Array] = []
    labels: list[Array | None] = []
    for X, codes in sources:
        rows = _draw(codes, batch_size, rng)
        clouds.append(X[rows])
        labels.append(np.eye(n_classes)[codes[rows]])
    clouds.append(target[rng.permutation(len(target))[:batch_size]])
    weights = [np.full(len(X), 1.0 / len(X)) for X in clouds]
    return Engine(clouds, [*labels, None], weights, n_atoms, batch_size, beta)


def _start(
    sources: Sequence[Labeled],
    n_domains: int,
    n_atoms: int,
    codes: NDArray[np.intp],
    n_classes: int,
    init: str,
    rng: np.random.Generator,
) -> State:
    d = sources[0][0].shape[1]
    points = rng.standard_normal((n_atoms * len(codes), d))
    if init == "sources":
        everyone = np.vstack([X for X, _ in sources]), np.concatenate([y for _, y in sources])
        chosen = []
        for c in range(n_atoms):
            for code in codes:
                X, known = sources[c % len(sources)]
                if code not in known:
                    X, known = everyone
                chosen.append(X[rng.choice(np.flatnonzero(known == code))])
        points = np.stack(chosen)
    # one-hot vectors as logits, as in the authors' code, so that no class starts as certain
    logits = np.tile(np.eye(n_classes)[codes], (n_atoms, 1))
    if init == "sources":
        logits = 5.0 * logits
    labels = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    coordinates = np.full((n_domains, n_atoms), 1.0 / n_atoms)
    return State(points, labels, coordinates, np.full((n_atoms, len(codes)), 1.0 / len(codes)))


def _draw(codes: NDArray[np.intp], size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows of a batch in which every class that exists has the same share, up to one."""
    present = rng.permutation(np.unique(codes))
    shares = np.bincount(np.arange(size) % len(present), minlength=len(present))
    rows = []
    for code, share in zip(present, shares, strict=True):
        members = np.flatnonzero(codes == code)
        rows.append(rng.choice(members, share, replace=share > len(members)))
    return np.concatenate(rows)


def _batch_step(
    engine: Engine, adam: Adam, state: State, picked: NDArray[np.intp], n_points: int
) -> tuple[State, list[Reconstruction]]:
    """One Adam step on the whole atoms, whose other points have a gradient of zero."""
    rows = (picked + n_points * np.arange(len(picked))[:, None]).ravel()
    masses = np.full(picked.shape, 1.0 / picked.shape[1])
    part = State(state.points[rows] - engine.center, state.labels[rows], state.coordinates, masses)
    found = engine.evaluate(part)
    part_points, part_labels = engine.gradient(part, found, state.coordinates)
    points, labels = np.zeros_like(state.points), np.zeros_like(state.labels)
    np.add.at(points, rows, 2.0 * part_points)
    np.add.at(labels, rows, 2.0 * part_labels)
    gradient = 2.0 * coordinate_gradient(state.coordinates, found)
    return adam.apply(state, points, labels, gradient), found


def _dictionary(
    state: State, n_atoms: int, n_points: int, beta: float | str, history: History
) -> Dictionary:
    weights = np.full(n_points, 1.0 / n_points)
    points, labels = state.points.astype(np.float64), state.labels.astype(np.float64)
    atoms = tuple(
        Mixture(weights, Z, np.zeros_like(Z), v)
        for Z, v in zip(np.split(points, n_atoms), np.split(labels, n_atoms), strict=True)
    )
    engine = Engine([points], [None], [np.ones(1)], n_atoms, n_points, beta)
    gram = Gram.of(state.points - engine.center, state.labels).lifted(beta)
    alignments = [
        [plan.columns for plan in engine.align(gram, lam, None)] for lam in state.coordinates
    ]
    return Dictionary(atoms, state.coordinates, beta, np.array(alignments), history)


@dataclass(frozen=True)
class JointTransport:
    """A linear classifier learned by weighted joint-distribution transport.

    Attributes
    ----------
    coefficients, intercept : ndarray of shape (d, nc), (nc,)
        Scores are the sigmoid of ``x @ coefficients + intercept``.
    source_weights : ndarray of shape (N,)
        The weights α that the target gave the sources.
    history : ndarray
        Transport cost of every step.
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
    sources: Sequence[Labeled],
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
    r"""Learn a classifier of the target and the weights of the sources together (WJDOT).

    .. math:: \min_{f, \alpha \in \Delta_N} W\Bigl(\tfrac{1}{n_T} \sum_i
              \delta_{(x_i, f(x_i))}, \sum_\ell \tfrac{\alpha_\ell}{n_\ell} \sum_j
              \delta_{(x_j^\ell, y_j^\ell)}\Bigr), \quad
              c = \frac{\lVert x - x' \rVert^2}{\tau} + b \lVert f(x) - y' \rVert^2

    with a linear `f` under a sigmoid and :math:`\tau` the median feature cost, so that the
    label term does not vanish in many dimensions. The plan is exact; the gradient in α is the
    mean potential of every source, around its average, because potentials are defined up to a
    constant; α keeps a floor of 1e-6, because a source without mass has no potentials.

    Parameters
    ----------
    sources : sequence of (X, codes)
    target : ndarray of shape (n, d)
    n_classes : int
    label_weight : float
        b above.
    learning_rate, weight_rate : float
        Of Adam for the classifier, of projected gradient for α.
    batch_size : int or None
        Samples per source (balanced over its classes) and of the target in every step; None is
        the full batch of the paper.
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
            matched = np.zeros_like(f)  # the labels that the plan brings to every target sample
            np.add.at(matched, plan.rows, plan.mass[:, None] * batch.Y[plan.columns])
            slope = 2.0 * label_weight * (f / len(f) - matched) * f * (1.0 - f)
            coefficients = coefficients - adam.move("f", x.T @ slope)
            if n_sources > 1:
                pull = np.bincount(batch.owner, plan.duals(cost)[1]) / batch.counts
                alpha = project_simplex((alpha - weight_rate * (pull - pull.mean()))[None])[0]
                alpha = np.maximum(alpha, 1e-6) / np.maximum(alpha, 1e-6).sum()
            progress.update(step, f"cost {history[-1]:.4g}")
    weights = coefficients[:-1] / np.sqrt(scale)
    intercept = coefficients[-1] - center @ weights
    return JointTransport(weights, intercept, alpha, np.array(history))


@dataclass(frozen=True)
class _JointBatch:
    """Samples of one step: the target's, the sources' with labels and owners, and their cost."""

    x: Array
    Y: Array
    owner: NDArray[np.intp]
    counts: NDArray[np.intp]
    cost: Array

    @classmethod
    def draw(
        cls,
        sources: Sequence[Labeled],
        target: Array,
        n_classes: int,
        batch_size: int | None,
        rng: np.random.Generator,
    ) -> _JointBatch:
        """Take everything, or a batch of every domain, the sources' balanced over classes."""
        parts, x = list(sources), target
        if batch_size is not None:
            rows = [_draw(codes, min(batch_size, len(codes)), rng) for _, codes in sources]
            parts = [(X[r], codes[r]) for (X, codes), r in zip(sources, rows, strict=True)]
            x = target[rng.permutation(len(target))[:batch_size]]
        counts = np.array([len(codes) for _, codes in parts])
        Y = np.eye(n_classes)[np.concatenate([codes for _, codes in parts])]
        cost = squared_distances(x, np.vstack([X for X, _ in parts]))
        return cls(x, Y, np.repeat(np.arange(len(parts)), counts), counts, cost)
