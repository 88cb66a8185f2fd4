"""GMM-DaDiL: learn atoms and coordinates that express every domain as a barycenter (Algorithm 2).

`learn_dictionary` sees mixtures only, never samples, and returns a frozen `Dictionary`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.errors import MixdaError
from mixda._core.progress import Progress
from mixda._core.validation import (
    LARGEST,
    Array,
    check_choice,
    check_number,
    check_positive_int,
    check_random_state,
    check_tol,
    check_X,
)
from mixda.barycenters import constant_beta
from mixda.dictionary._checkpoint import Checkpoint
from mixda.dictionary._dictionary import Dictionary, History
from mixda.dictionary._engine import Engine, Reconstruction, State
from mixda.dictionary._optimizers import Adam, Block, Optimizer, ProjectedGradient
from mixda.dictionary._starts import start_at_random, start_from_dictionary, start_from_sources
from mixda.mixture import Mixture
from mixda.transport import Beta, align_labels, check_same_features, features

OPTIMIZERS = ("block", "adam", "gradient")
_MASS_RATE = 0.1  # of the way to freely chosen weights, per step


def learn_dictionary(
    sources: Sequence[Mixture],
    target: Mixture,
    *,
    n_atoms: int = 3,
    n_components: int | None = None,
    beta: Beta = "auto",
    optimizer: str = "block",
    learning_rate: float = 0.1,
    damping: float = 0.1,
    n_iter: int = 100,
    tol: float = 1e-4,
    init: str | Dictionary = "sources",
    component_weights: str = "fixed",
    min_std: float | str = "auto",
    precision: str = "auto",
    samples: Sequence[ArrayLike] | None = None,
    callback: Callable[[Dictionary], bool | None] | None = None,
    checkpoint: str | Path | None = None,
    verbose: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Dictionary:
    r"""Learn atoms whose barycenters are the domains (GMM-DaDiL, Algorithm 2).

    .. math:: \min_{\Lambda, \mathcal{P}} \;
              \mathcal{MW}_2(Q_T, \mathcal{B}(\lambda_T, \mathcal{P}))^2
              + \sum_{\ell=1}^{N} \mathcal{SMW}_2(Q_\ell, \mathcal{B}(\lambda_\ell, \mathcal{P}))^2

    Parameters
    ----------
    sources : sequence of N labeled Mixture
    target : Mixture
        Its labels, if it has any, are not looked at.
    n_atoms : int
        Number of atoms C. Fewer than the number of domains, so that the target has to share atoms
        with the sources: labels reach it through them only.
    n_components : int, optional
        Components K of every atom; default the largest number among the sources.
    beta : float, "auto" or "max"
        Weight of the labels: "auto" is the largest feature cost between components of any two
        domains, a constant; "max" is computed anew for every plan, as in the authors' code.
    optimizer : {"block", "adam", "gradient"}
        "block" minimizes in the coordinates, then in the atoms, with all plans fixed (damped);
        "adam" is what the authors' code does; "gradient" is the paper's plain projected gradient.
    learning_rate : float
        Of "adam" and "gradient".
    damping : float
        Of "block": how strongly each block is held where it was; at least 1e-6.
    n_iter : int
        Largest number of steps.
    tol : float
        Stop when the loss fell by less than this fraction over the last five steps.
    init : {"sources", "random"} or Dictionary
        Atoms start as the sources' own components, aligned by their barycenter (groups of sources
        when there are fewer atoms), or as in the paper with means drawn from N(0, I), unit
        deviations and uniform labels; or go on from a dictionary with the same numbers of atoms,
        components and sources (its target may have changed since).
    component_weights : {"fixed", "learned"}
        Keep the atoms' component weights uniform, as in the paper, or learn them.
    min_std : float or "auto"
        Floor of the atoms' standard deviations; "auto" is the smallest that any domain has in
        that feature.
    precision : {"auto", "float64", "float32"}
        Of the large matrix products and of the costs made from them; "auto" is float32 from 256
        features on, where products are most of the time. Losses then have some six digits of the
        size of the features, not of the loss: ask for float64 when domains nearly coincide.
    samples : sequence of L array-like of shape (n_l, d), optional
        Samples of all domains, target last, only to record their negative log-likelihood.
    callback : callable, optional
        Called with the dictionary at the start and after every step; a true value stops.
    checkpoint : path, optional
        File that is written as the learning goes; if it exists and belongs to this very problem,
        the learning goes on from there.
    verbose : bool
        Show progress, if on a terminal.
    random_state : int or Generator, optional
        Only for ``init="random"``.

    Returns
    -------
    Dictionary

    Notes
    -----
    A source that lacks a class is compared with the other components of its reconstruction only:
    otherwise the mass of its own classes would have to go to those of the class that it lacks.

    References
    ----------
    .. [1] E. Fernandes Montesuma, F. Ngolè Mboula and A. Souloumiac, "Lighter, better, faster
       multi-source domain adaptation with Gaussian mixture models and optimal transport",
       ECML-PKDD 2024.

    Examples
    --------
    >>> from mixda import Mixture, learn_dictionary
    >>> p = Mixture([0.5, 0.5], [[0.0], [8.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])
    >>> q = Mixture([0.5, 0.5], [[2.0], [10.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])
    >>> t = Mixture([0.5, 0.5], [[1.0], [9.0]], [[1.0], [1.0]])
    >>> d = learn_dictionary([p, q], t, n_atoms=2)
    >>> d.target.predict([[3.0], [7.0]]), d.coordinates.shape
    (array([0, 1]), (3, 2))
    """
    sources = list(sources)
    names = _check_domains(sources, target)
    n_iter, tol = check_positive_int(n_iter, "n_iter"), check_tol(tol)
    K = max(q.n_components for q in sources) if n_components is None else n_components
    K, C = check_positive_int(K, "n_components"), check_positive_int(n_atoms, "n_atoms")
    check_choice(component_weights, "component_weights", ("fixed", "learned"))
    if check_choice(precision, "precision", ("auto", "float64", "float32")) == "auto":
        precision = "float32" if target.n_features >= 256 else "float64"
    d = target.n_features
    tracked = None if samples is None else [check_X(X, "samples", d) for X in samples]
    if tracked is not None and len(tracked) != len(sources) + 1:
        raise MixdaError(f"samples must hold {len(sources) + 1} arrays, got {len(tracked)}.")

    labels, classes = align_labels(sources)
    clouds = [features(q) for q in (*sources, target)]
    beta = constant_beta(beta, clouds)
    masses = [q.weights for q in (*sources, target)]
    engine = Engine(clouds, [*labels, None], masses, C, K, beta, precision)
    floor = _floor(min_std, [*sources, target])
    steps = _optimizer(optimizer, learning_rate, damping)
    learn_masses = component_weights == "learned"
    problem = _Problem(engine, floor, (classes, names), steps, learn_masses, tracked)
    if isinstance(init, Dictionary):
        state = start_from_dictionary(engine, init, classes)
    elif check_choice(init, "init", ("sources", "random")) == "sources":
        state = start_from_sources(engine, sources, C, K)
    else:
        state = start_at_random(engine, check_random_state(random_state))
    _raise_to_floor(engine, state, floor)
    saved = None
    if checkpoint is not None:
        settings = (optimizer, learning_rate, damping, component_weights, precision)
        arrays = [engine.points, engine.stacked_labels, *masses, floor]
        arrays += [state.points, state.labels, state.coordinates, state.masses]
        more = (C, K, beta, tracked is not None)
        saved = Checkpoint(checkpoint, arrays, (settings, more))
    return problem.learn(state, n_iter, tol, callback, saved, verbose)


class _Problem:
    """The loop of Algorithm 2 around an engine and an optimizer."""

    def __init__(
        self,
        engine: Engine,
        floor: Array,
        names: tuple[Any, tuple[str, ...] | None],
        optimizer: Optimizer,
        learn_masses: bool,
        samples: list[Array] | None,
    ) -> None:
        self.engine, self.floor, self.names = engine, floor, names  # of classes and features
        self.optimizer, self.learn_masses, self.samples = optimizer, learn_masses, samples

    def learn(
        self,
        state: State,
        n_iter: int,
        tol: float,
        callback: Callable[[Dictionary], bool | None] | None,
        saved: Checkpoint | None,
        verbose: bool,
    ) -> Dictionary:
        """Evaluate, record, step; the returned dictionary is the last one evaluated."""
        rows: list[dict[str, Any]] = []
        found: list[Reconstruction] | None = None
        began = time.perf_counter()
        if saved is not None:
            state, rows, found = saved.restore(self.engine, state, self.optimizer)
            began -= rows[-1]["seconds"] if rows else 0.0
        with Progress(n_iter, "learning the dictionary", verbose) as progress:
            while True:
                found = self.engine.evaluate(state, found)
                rows.append(self._record(state, found, time.perf_counter() - began))
                progress.update(len(rows) - 1, f"loss {rows[-1]['loss']:.4g}")
                done = len(rows) > n_iter or _resting([row["loss"] for row in rows], tol)
                if callback is not None:
                    done |= bool(callback(self._dictionary(state, found, rows)))
                if done:
                    break
                state = self._step(state, found)
                if saved is not None:
                    saved.write(state, rows, found, self.optimizer)
        dictionary = self._dictionary(state, found, rows)
        if saved is not None:
            saved.remove()
        return dictionary

    def _step(self, state: State, found: Sequence[Reconstruction]) -> State:
        with np.errstate(over="ignore", invalid="ignore"):  # a divergence gets a sentence
            new = self.optimizer.step(self.engine, state, found)
        if not float(np.abs(new.points).max()) <= LARGEST:
            raise MixdaError(
                "the learning diverged; use a smaller learning_rate, standardized features or "
                "optimizer='block'."
            )
        if new.points is not state.points:
            _raise_to_floor(self.engine, new, self.floor)
        if self.learn_masses:
            new.masses = self.engine.pulled_masses(state, found, _MASS_RATE)
        return new

    def _record(
        self, state: State, found: Sequence[Reconstruction], seconds: float
    ) -> dict[str, Any]:
        losses = np.array([r.loss for r in found])
        row = {
            "loss": float(losses.sum()),
            "domain_loss": losses,
            "coordinates": state.coordinates,
            "seconds": seconds,
        }
        if self.samples is not None:
            dictionary = self._dictionary(state, found, [row])
            row["nll"] = np.array(
                [-dictionary.reconstruct(l).score(X) for l, X in enumerate(self.samples)]
            )
        return row

    def _dictionary(
        self, state: State, found: Sequence[Reconstruction], rows: Sequence[dict[str, Any]]
    ) -> Dictionary:
        engine, d = self.engine, len(self.floor)
        C, K = engine.n_atoms, engine.n_components
        points = (state.points + engine.center).reshape(C, K, 2 * d)
        labels = state.labels.astype(np.float64).reshape(C, K, -1)
        labels = labels / labels.sum(axis=2, keepdims=True)
        atoms = tuple(
            Mixture(w / w.sum(), z[:, :d], np.maximum(z[:, d:], self.floor), v, *self.names)
            for w, z, v in zip(state.masses, points, labels, strict=True)
        )
        offsets = np.arange(C) * K
        alignments = np.stack([(r.columns - offsets).T for r in found])
        history = History(
            *(
                np.stack([row[name] for row in rows])
                for name in History.__annotations__
                if name in rows[0]
            )
        )
        return Dictionary(atoms, state.coordinates.copy(), engine.beta, alignments, history)


def _check_domains(sources: Sequence[Mixture], target: Mixture) -> tuple[str, ...] | None:
    if not sources:
        raise MixdaError("sources is empty; at least one labeled mixture is needed.")
    unlabeled = [i for i, q in enumerate(sources) if q.labels is None]
    if unlabeled:
        raise MixdaError(
            f"source {unlabeled[0]} has no labels; fit every source with fit_labeled_mixture."
        )
    return check_same_features([*sources, target])


def _resting(losses: Sequence[float], tol: float, span: int = 5) -> bool:
    return len(losses) > span and losses[-1 - span] - min(losses[-span:]) <= tol * losses[-1 - span]


def _floor(min_std: float | str, domains: Sequence[Mixture]) -> Array:
    if isinstance(min_std, str):
        check_choice(min_std, "min_std", ("auto",))
        lowest: Array = np.min([q.stds.min(axis=0) for q in domains], axis=0)
        return lowest
    return np.full(domains[0].n_features, check_number(min_std, "min_std", also=" or 'auto'"))


def _raise_to_floor(engine: Engine, state: State, floor: Array) -> None:
    """Project the standard deviations of a state that nobody else holds yet."""
    d = len(floor)
    lowest = (floor - engine.center[d:]).astype(state.points.dtype)
    np.maximum(state.points[:, d:], lowest, out=state.points[:, d:])


def _optimizer(name: str, learning_rate: float, damping: float) -> Optimizer:
    check_choice(name, "optimizer", OPTIMIZERS)
    learning_rate = check_number(learning_rate, "learning_rate", above=True)
    damping = check_number(damping, "damping", least=1e-6)  # less is lost in float32
    if name == "block":
        return Block(damping)
    return Adam(learning_rate) if name == "adam" else ProjectedGradient(learning_rate)
