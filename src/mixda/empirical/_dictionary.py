"""DaDiL: the dictionary of `mixda.dictionary` on samples, learned with mini-batches.

A labeled point cloud is a mixture whose components have zero deviations, so barycenters, plans and
gradients are those of mixtures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from mixda._core.namespace import add_rows, as_like, namespace, take, to_float64
from mixda._core.progress import Progress
from mixda._core.typing import Array, Codes, Source
from mixda._core.validation import (
    check_choice,
    check_number,
    check_positive_int,
    check_random_state,
)
from mixda.barycenters import Gram, auto_beta
from mixda.dictionary import (
    Adam,
    Dictionary,
    Engine,
    History,
    Record,
    State,
    align_atoms,
    coordinate_gradient,
)
from mixda.empirical._clouds import check_clouds, draw_balanced
from mixda.mixture import Mixture
from mixda.transport import Beta, LabelWeight

_BETA_SAMPLES = 500  # per domain, from which beta="auto" is computed
_SOURCE_LOGIT = 5.0  # of the class of a sample that an atom starts at


def learn_empirical_dictionary(
    sources: Sequence[Source],
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
    r"""Learn atoms that are labeled point clouds, with mini-batches (DaDiL).

    .. math:: \min_{\Lambda, \mathcal{P}} \; W_2(\hat Q_T, \mathcal{B}(\lambda_T, \mathcal{P}))^2
              + \sum_\ell W_{c,2}(\hat Q_\ell, \mathcal{B}(\lambda_\ell, \mathcal{P}))^2

    Each step draws `batch_size` samples of every domain and points of every atom, balanced over
    the classes, and takes an Adam step with the gradients that GMM-DaDiL uses. An epoch has
    ``ceil(n_points / batch_size)`` steps.

    Parameters
    ----------
    sources : sequence of (X, codes)
        Samples and integer classes ``0 … n_classes - 1``. With scikit-learn's array dispatch,
        samples of all domains may be torch or CuPy arrays. Atoms and gradients are then computed
        on their device, in their precision.
    target : ndarray of shape (n, d)
    n_classes : int
    n_atoms, n_points, batch_size, n_epochs : int
    learning_rate : float
    beta : float, "auto" or "max"
    init : {"sources", "random"}
        "sources": atom c starts at samples of source c modulo N; classes that this source lacks
        start at samples of the others. "random": as in the paper, N(0, I) with one-hot logits.
    verbose : bool
    random_state : int or Generator, optional

    Returns
    -------
    Dictionary
        Its atoms are mixtures with zero deviations.

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
    sources, target = check_clouds(sources, target)
    clouds = [X for X, _ in sources] + [target]
    if beta == "auto":
        beta = auto_beta([take(X, rng.permutation(len(X))[:_BETA_SAMPLES]) for X in clouds])
    weight = LabelWeight.parse(beta)
    codes = np.arange(n_points) * n_classes // n_points
    state = _starting_state(sources, len(clouds), n_atoms, codes, n_classes, init, rng)
    steps = -(-n_points // batch_size)
    adam, began = Adam(learning_rate), time.perf_counter()
    records: list[Record] = []
    with Progress(n_epochs, "learning the dictionary", verbose) as progress:
        for epoch in range(n_epochs):
            losses = []
            for _ in range(steps):
                engine = _batch_engine(sources, target, n_classes, n_atoms, batch_size, weight, rng)
                atom_codes = state.labels.argmax(axis=1).reshape(n_atoms, n_points)
                drawn = [draw_balanced(codes, batch_size, rng) for codes in atom_codes]
                state, domain_loss = _batch_step(engine, adam, state, np.stack(drawn), n_points)
                losses.append(domain_loss)
            mean = np.mean(losses, axis=0)
            seconds = time.perf_counter() - began
            records.append(Record(mean.sum(), mean, state.coordinates, seconds))
            progress.update(epoch + 1, f"loss {records[-1].loss:.4g}")
    return _dictionary(state, n_atoms, n_points, weight, History.stack(records))


def _batch_engine(
    sources: Sequence[Source],
    target: Array,
    n_classes: int,
    n_atoms: int,
    batch_size: int,
    weight: LabelWeight,
    rng: np.random.Generator,
) -> Engine:
    """Return an engine for one batch of every domain."""
    clouds: list[Array] = []
    labels: list[Array | None] = []
    for X, codes in sources:
        rows = draw_balanced(codes, batch_size, rng)
        clouds.append(take(X, rows))
        labels.append(np.eye(n_classes)[codes[rows]])
    clouds.append(take(target, rng.permutation(len(target))[:batch_size]))
    weights = [np.full(len(X), 1.0 / len(X)) for X in clouds]
    like = None if namespace(target) is np else target
    return Engine(clouds, [*labels, None], weights, n_atoms, batch_size, weight, like=like)


def _starting_state(
    sources: Sequence[Source],
    n_domains: int,
    n_atoms: int,
    codes: Codes,
    n_classes: int,
    init: str,
    rng: np.random.Generator,
) -> State:
    xp, d = namespace(sources[0][0]), sources[0][0].shape[1]
    points = rng.standard_normal((n_atoms * len(codes), d))
    if init == "sources":
        pooled = xp.vstack([X for X, _ in sources]), np.concatenate([y for _, y in sources])
        chosen = []
        for c in range(n_atoms):
            for code in codes:
                X, known = sources[c % len(sources)]
                if code not in known:
                    X, known = pooled
                chosen.append(X[int(rng.choice(np.flatnonzero(known == code)))])
        points = xp.stack(chosen)
    # one-hot logits, as in the authors' code, so that labels do not start at certainty
    logits = np.tile(np.eye(n_classes)[codes], (n_atoms, 1))
    if init == "sources":
        logits = _SOURCE_LOGIT * logits
    coordinates = np.full((n_domains, n_atoms), 1.0 / n_atoms)
    return State(
        points if namespace(points) is xp else as_like(points, sources[0][0]),
        softmax(logits, axis=1),
        coordinates,
        np.full((n_atoms, len(codes)), 1.0 / len(codes)),
    )


def _batch_step(
    engine: Engine, adam: Adam, state: State, drawn: Codes, n_points: int
) -> tuple[State, list[float]]:
    """One Adam step on the whole atoms, and the loss of every domain.

    Points that are not in the batch have a gradient of zero.
    """
    rows = (drawn + n_points * np.arange(len(drawn))[:, None]).ravel()
    weights = np.full(drawn.shape, 1.0 / drawn.shape[1])
    batch = State(
        take(state.points, rows) - engine.center, state.labels[rows], state.coordinates, weights
    )
    reconstructions = engine.evaluate(batch).reconstructions
    batch_points, batch_labels = engine.gradient(batch, reconstructions, state.coordinates)
    points, labels = (
        add_rows(2.0 * gradient, rows, len(state.points))
        for gradient in (batch_points, batch_labels)
    )
    coordinates = 2.0 * coordinate_gradient(state.coordinates, reconstructions)
    moved = adam.apply(state, points, labels, coordinates)
    return moved, [r.loss for r in reconstructions]


def _dictionary(
    state: State, n_atoms: int, n_points: int, weight: LabelWeight, history: History
) -> Dictionary:
    weights = np.full(n_points, 1.0 / n_points)
    points, labels = to_float64(state.points), state.labels.astype(np.float64)
    atoms = tuple(
        Mixture(weights, Z, np.zeros_like(Z), v)
        for Z, v in zip(np.split(points, n_atoms), np.split(labels, n_atoms), strict=True)
    )
    centered = points - points.mean(axis=0)
    gram = Gram.lifted(centered @ centered.T, labels @ labels.T, weight)
    offsets = np.arange(n_atoms) * n_points
    alignments = [(align_atoms(gram, lam, n_points) - offsets).T for lam in state.coordinates]
    coordinates = state.coordinates.copy()
    return Dictionary(atoms, coordinates, weight.parameter, np.stack(alignments), history)
