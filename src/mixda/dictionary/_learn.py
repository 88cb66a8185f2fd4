"""GMM-DaDiL: learn atoms and coordinates that express every domain as a barycenter (Algorithm 2).

`learn_dictionary` takes mixtures, never samples, and returns a frozen `Dictionary`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._core.errors import MixdaError
from mixda._core.namespace import as_like, check_like, namespace, to_numpy
from mixda._core.progress import Progress
from mixda._core.typing import Array
from mixda._core.validation import (
    LARGEST,
    check_choice,
    check_number,
    check_positive_int,
    check_random_state,
    check_tol,
    check_X,
)
from mixda.barycenters import label_weight
from mixda.dictionary._checkpoint import Checkpoint, Snapshot, Updated
from mixda.dictionary._dictionary import Dictionary, History, Record
from mixda.dictionary._engine import Engine
from mixda.dictionary._optimizers import Adam, Block, Optimizer, ProjectedGradient
from mixda.dictionary._starts import (
    default_size,
    start_at_random,
    start_from_dictionary,
    start_from_sources,
)
from mixda.dictionary._state import Aligned, AtomProducts, Evaluation, State
from mixda.mixture import Mixture
from mixda.transport import Beta, align_labels, check_same_features, features

OPTIMIZERS = ("block", "adam", "gradient")

_WEIGHT_RATE = 0.1  # of the way to freely chosen component weights, per step
_TARGET_FIT = 2.0  # times the mean loss of the sources; see benchmarks/unlearning.py
_SETTLED = 0.99  # of the loss of the sources that a step leaves, if they have settled
_BISECTIONS = 4  # of the last step, if it fits the target better than the sources
_STOPPING_SPAN = 5  # steps over which the loss has to decrease
_MIN_FEATURES_FOR_FLOAT32 = 256

Callback = Callable[[Dictionary], bool | None]


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
    target_fit: float | str = "auto",
    init: str | Dictionary = "sources",
    component_weights: str = "fixed",
    min_std: float | str = "auto",
    precision: str = "auto",
    samples: Sequence[ArrayLike] | None = None,
    callback: Callback | None = None,
    checkpoint: str | Path | None = None,
    verbose: bool = False,
    random_state: int | np.random.Generator | None = None,
    like: Any = None,
) -> Dictionary:
    r"""Learn atoms whose barycenters are the domains (GMM-DaDiL, eq. 16 and Algorithm 2).

    .. math:: \min_{\Lambda, \mathcal{P}} \;
              \mathcal{MW}_2(Q_T, \mathcal{B}(\lambda_T, \mathcal{P}))^2
              + \sum_{\ell=1}^{N} \mathcal{SMW}_2(Q_\ell, \mathcal{B}(\lambda_\ell, \mathcal{P}))^2

    Parameters
    ----------
    sources : sequence of N labeled Mixture
    target : Mixture
        Its labels, if any, are ignored.
    n_atoms : int
        Number of atoms C. Use fewer atoms than domains, so that the target has to share atoms with
        the sources: labels reach it only through shared atoms.
    n_components : int, optional
        Components K of every atom; by default the largest number among the sources. If a source
        lacks a class, at least the sum over the classes of the largest number among the sources.
    beta : float, "auto" or "max"
        Weight of the labels. "auto" is the largest feature cost between components of any two
        domains, a constant. "max" is recomputed for every plan, as in the authors' code.
    optimizer : {"block", "adam", "gradient"}
        "block" minimizes in the coordinates and then in the atoms, with all plans fixed and with
        damping. "adam" is what the authors' code does. "gradient" is the projected gradient
        descent of the paper, with a backtracking line search, so that the loss never increases.
    learning_rate : float
        Learning rate of "adam", and the first one of "gradient".
    damping : float
        Damping of "block": how strongly a block is pulled toward its last value; at least 1e-6.
    n_iter : int
        Maximum number of steps.
    tol : float
        Stop when the loss decreased by less than this fraction over the last five steps. A negative
        value turns off all early stopping.
    target_fit : float or "auto"
        Stop as soon as the target is reconstructed nearly as well as the sources are: when its loss
        is this multiple of their mean loss, and theirs no longer decreases as the atoms move. The
        labels of the target come from the sources alone. Atoms that follow its components further
        than the sources allow lose them. 0 turns the rule off and reconstructs the target as well
        as possible. "auto" is 2 for ``optimizer="block"`` with more atoms than sources, where the
        target may get an atom of its own. Otherwise, and for a dictionary that is continued, it
        is 0.
    init : {"sources", "random"} or Dictionary
        Start of the atoms. "sources": the components of the sources, aligned by their barycenter;
        with fewer atoms than sources, every atom starts at a group of sources. "random": as in the
        paper, means drawn from N(0, I), unit deviations and uniform labels. A dictionary with the
        same numbers of atoms, components and sources is continued; the target may differ.
    component_weights : {"fixed", "learned"}
        Whether the atoms' component weights stay uniform, as in the paper, or are learned.
    min_std : float or "auto"
        Minimum standard deviation of the atoms; "auto" is the smallest one among the domains, for
        every feature.
    precision : {"auto", "float64", "float32"}
        Precision of the large matrix products and of the costs made from them. "auto" is float32
        from 256 features on, where products take most of the time. The error of the loss is then
        about 1e-6 of the squared size of the features: use float64 if domains nearly coincide.
    samples : sequence of L array-like of shape (n_l, d), optional
        Samples of all domains, target last, used only to record their negative log-likelihood.
    callback : callable, optional
        Called with the dictionary at the start and after every step. Returning True stops.
    checkpoint : path, optional
        File that is updated during learning. If it exists and belongs to the same problem,
        learning resumes from it.
    verbose : bool
        Show progress on a terminal.
    random_state : int or Generator, optional
        Used only with ``init="random"``.
    like : torch tensor or CuPy array, optional
        Atoms are kept and products are computed with its library, on its device and in its
        precision. Requires scikit-learn's array dispatch. Plans are computed on the CPU, and the
        dictionary is one of numpy. Default: numpy.

    Returns
    -------
    Dictionary
        The one of the lowest loss; `history` has all steps.

    Notes
    -----
    A source that lacks a class is compared only with the components of its reconstruction that
    belong to its own classes. Otherwise its mass would be sent to components of the missing class.
    With ``init="sources"``, the components of the missing class start where they are in the other
    sources. With ``init="random"``, atoms that only such sources use may not learn the class.

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
    K = default_size(sources) if n_components is None else n_components
    K, C = check_positive_int(K, "n_components"), check_positive_int(n_atoms, "n_atoms")
    check_choice(component_weights, "component_weights", ("fixed", "learned"))
    if check_choice(precision, "precision", ("auto", "float64", "float32")) == "auto":
        wide = target.n_features >= _MIN_FEATURES_FOR_FLOAT32
        precision = "float32" if wide else "float64"
    elif like is not None:
        raise MixdaError(f"precision={precision!r} is that of like; leave it out, or like.")
    if check_like(like) is not None and checkpoint is not None:
        raise MixdaError("checkpoint must be None with like; leave out one of them.")
    tracked = _check_samples(samples, len(sources) + 1, target.n_features)

    domains = [*sources, target]
    labels, classes = align_labels(sources)
    clouds = [features(q) for q in domains]
    weight = label_weight(beta, clouds, like)
    weights = [q.weights for q in domains]
    engine = Engine(clouds, [*labels, None], weights, C, K, weight, precision, like)
    learner = _Learner(
        engine,
        _optimizer(optimizer, learning_rate, damping),
        floor=_floor(min_std, domains),
        classes=classes,
        feature_names=names,
        learn_weights=component_weights == "learned",
        samples=tracked,
    )
    if isinstance(init, Dictionary):
        state = start_from_dictionary(engine, init, classes)
    elif check_choice(init, "init", ("sources", "random")) == "sources":
        state = start_from_sources(engine, sources)
    else:
        state = start_at_random(engine, check_random_state(random_state))
    state = learner.project(state)
    saved = None
    if checkpoint is not None:
        settings = (optimizer, learning_rate, damping, component_weights, precision, target_fit)
        arrays = [engine.points, engine.labels, *weights, learner.floor]
        arrays += [state.points, state.labels, state.coordinates, state.weights]
        more = (C, K, weight.parameter, tracked is not None)
        saved = Checkpoint(checkpoint, arrays, (settings, more))
    if isinstance(target_fit, str):
        check_choice(target_fit, "target_fit", ("auto",))
        # the target can have an atom of its own only if there are more atoms than sources
        private = len(sources) < C and isinstance(init, str)
        target_fit = _TARGET_FIT if optimizer == "block" and private else 0.0
    fit = check_number(target_fit, "target_fit", also=" or 'auto'") if tol >= 0 else 0.0
    return learner.learn(state, n_iter, tol, fit, callback, saved, verbose)


class _Accepted(NamedTuple):
    """The last state that was recorded, to which a line search returns."""

    state: State
    evaluation: Evaluation

    @property
    def loss(self) -> float:
        return self.evaluation.loss

    def settles(self, state: State, evaluation: Evaluation, target_fit: float) -> bool:
        """Whether a step of the atoms fits the target and leaves the loss of the sources."""
        if not _fits_target(evaluation, target_fit):
            return False
        if _source_loss(evaluation) < _SETTLED * _source_loss(self.evaluation):
            return False
        return not bool((state.points == self.state.points).all())


def _source_loss(evaluation: Evaluation) -> float:
    return float(np.mean([r.loss for r in evaluation.reconstructions[:-1]]))


def _fits_target(evaluation: Evaluation, target_fit: float) -> bool:
    return evaluation.reconstructions[-1].loss <= target_fit * _source_loss(evaluation)


@dataclass(frozen=True, eq=False)
class _Learner:
    """The loop of Algorithm 2 around an engine and an optimizer."""

    engine: Engine
    optimizer: Optimizer
    floor: Array
    classes: NDArray[Any]
    feature_names: tuple[str, ...] | None
    learn_weights: bool
    samples: list[Array] | None

    def learn(
        self,
        state: State,
        n_iter: int,
        tol: float,
        target_fit: float,
        callback: Callback | None,
        checkpoint: Checkpoint | None,
        verbose: bool,
    ) -> Dictionary:
        """Evaluate, record, step; the returned dictionary is that of the lowest loss."""
        records: list[Record] = []
        warm_start, products, accepted, best = None, None, None, None
        began = time.perf_counter()
        snapshot = None if checkpoint is None else checkpoint.load()
        if snapshot is not None:
            state, records, warm_start = snapshot.state, snapshot.records, snapshot.warm_start
            self.optimizer.memory, best = snapshot.memory, snapshot.best
            if snapshot.products is not None:
                own, cross, n_updates = snapshot.products
                products = self.engine.with_labels(own, cross, state, n_updates)
            began -= records[-1].seconds
        with Progress(n_iter, "learning the dictionary", verbose) as progress:
            while True:
                evaluation = self.engine.evaluate(state, warm_start, products)
                if accepted is not None and not self.optimizer.accepts(
                    accepted.loss, evaluation.loss
                ):
                    state, evaluation = accepted.state, accepted.evaluation
                    if not self.optimizer.shorten():
                        break
                else:
                    if checkpoint is not None and best is not None:
                        kept = self.optimizer.memory, Updated.of(products), best
                        checkpoint.save(Snapshot(state, list(records), warm_start or [], *kept))
                    fits = accepted is not None and accepted.settles(state, evaluation, target_fit)
                    if fits and accepted is not None:
                        state, evaluation = self._shortened(accepted, state, evaluation, target_fit)
                    current = Aligned.of(state, evaluation)
                    records.append(self._record(current, evaluation, time.perf_counter() - began))
                    progress.update(len(records) - 1, f"loss {records[-1].loss:.4g}")
                    if best is None or records[-1].loss <= min(r.loss for r in records):
                        best = current
                    done = fits or len(records) > n_iter or _has_converged(records, tol)
                    if callback is not None:
                        done |= bool(callback(self._dictionary(current, records)))
                    if done:
                        break
                    accepted = _Accepted(state, evaluation)
                state, products = self._step(state, evaluation)
                warm_start = [r.warm_start for r in evaluation.reconstructions]
        assert best is not None  # the start is always recorded
        dictionary = self._dictionary(best, records)
        if checkpoint is not None:
            checkpoint.remove()
        return dictionary

    def _shortened(
        self, before: _Accepted, state: State, evaluation: Evaluation, target_fit: float
    ) -> tuple[State, Evaluation]:
        """Return the shortest step between two states that still fits the target: bisection."""
        if _fits_target(before.evaluation, target_fit):
            return before.state, before.evaluation
        warm_start = [r.warm_start for r in before.evaluation.reconstructions]
        low, high, names = 0.0, 1.0, ("points", "labels", "coordinates", "weights")
        full = state
        for _ in range(_BISECTIONS):
            t = 0.5 * (low + high)
            arrays = {k: getattr(before.state, k) for k in names}
            tried = State(**{k: v + t * (getattr(full, k) - v) for k, v in arrays.items()})
            found = self.engine.evaluate(tried, warm_start)
            if _fits_target(found, target_fit):
                high, state, evaluation = t, tried, found
            else:
                low = t
        return state, evaluation

    def project(self, state: State) -> State:
        """Project the standard deviations onto ``s ≥ s_min`` (constraint (i) of the paper)."""
        d = len(self.floor)
        lowest = np.full(2 * d, -np.inf)  # means are free
        lowest[d:] = self.floor - self.engine.center[d:]
        lowest = as_like(lowest.astype(self.engine.dtype), state.points)
        return replace(state, points=namespace(state.points).maximum(state.points, lowest))

    def _step(self, state: State, evaluation: Evaluation) -> tuple[State, AtomProducts | None]:
        """Return the next state, and the products of its atoms if they need not be recomputed."""
        reconstructions = evaluation.reconstructions
        products: AtomProducts | None = evaluation.products
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is reported below
            new, atoms_moved, points_map = self.optimizer.step(self.engine, state, reconstructions)
        if not float(namespace(new.points).abs(new.points).max()) <= LARGEST:
            raise MixdaError(
                "learning diverged; use a smaller learning_rate, standardized features or "
                "optimizer='block'."
            )
        if atoms_moved:
            unprojected, new, products = new.points, self.project(new), None
            if points_map is not None:
                products = self.engine.updated_products(
                    evaluation.products, points_map, unprojected, new
                )
        if self.learn_weights:
            weights = self.engine.updated_weights(state, reconstructions, _WEIGHT_RATE)
            new = replace(new, weights=weights)
        return new, products

    def _record(self, current: Aligned, evaluation: Evaluation, seconds: float) -> Record:
        losses = np.array([r.loss for r in evaluation.reconstructions])
        record = Record(float(losses.sum()), losses, current.state.coordinates, seconds)
        if self.samples is None:
            return record
        dictionary = self._dictionary(current, [record])
        scores = [dictionary.reconstruct(l).score(X) for l, X in enumerate(self.samples)]
        return replace(record, nll=-np.array(scores))

    def _dictionary(self, current: Aligned, records: Sequence[Record]) -> Dictionary:
        state, engine, d = current.state, self.engine, len(self.floor)
        C, K = engine.n_atoms, engine.n_components
        points = (to_numpy(state.points) + engine.center).reshape(C, K, 2 * d)
        labels = state.labels.astype(np.float64).reshape(C, K, -1)
        labels = labels / labels.sum(axis=2, keepdims=True)
        names = self.classes, self.feature_names
        atoms = tuple(
            Mixture(w / w.sum(), z[:, :d], np.maximum(z[:, d:], self.floor), v, *names)
            for w, z, v in zip(state.weights, points, labels, strict=True)
        )
        offsets = np.arange(C) * K
        return Dictionary(
            atoms,
            state.coordinates.copy(),
            engine.label_weight.parameter,
            np.stack([(columns - offsets).T for columns in current.columns]),
            History.stack(records),
        )


def _check_domains(sources: Sequence[Mixture], target: Mixture) -> tuple[str, ...] | None:
    if not sources:
        raise MixdaError("sources is empty; at least one labeled mixture is needed.")
    unlabeled = [i for i, q in enumerate(sources) if q.labels is None]
    if unlabeled:
        raise MixdaError(
            f"source {unlabeled[0]} has no labels; fit every source with fit_labeled_mixture."
        )
    return check_same_features([*sources, target])


def _check_samples(
    samples: Sequence[ArrayLike] | None, n_domains: int, n_features: int
) -> list[Array] | None:
    if samples is None:
        return None
    arrays = [check_X(X, "samples", n_features) for X in samples]
    if len(arrays) != n_domains:
        raise MixdaError(
            f"samples must hold {n_domains} arrays, one per domain, got {len(arrays)}."
        )
    return arrays


def _floor(min_std: float | str, domains: Sequence[Mixture]) -> Array:
    """Return the minimum standard deviation of every feature, shape (d,)."""
    if isinstance(min_std, str):
        check_choice(min_std, "min_std", ("auto",))
        lowest: Array = np.min([q.stds.min(axis=0) for q in domains], axis=0)
        return lowest
    return np.full(domains[0].n_features, check_number(min_std, "min_std", also=" or 'auto'"))


def _optimizer(name: str, learning_rate: float, damping: float) -> Optimizer:
    check_choice(name, "optimizer", OPTIMIZERS)
    learning_rate = check_number(learning_rate, "learning_rate", above=True)
    damping = check_number(damping, "damping", least=1e-6)  # smaller values are lost in float32
    if name == "block":
        return Block(damping)
    return Adam(learning_rate) if name == "adam" else ProjectedGradient(learning_rate)


def _has_converged(records: Sequence[Record], tol: float) -> bool:
    """Whether the loss decreased by at most the fraction `tol` over the last steps."""
    if len(records) <= _STOPPING_SPAN:
        return False
    before, *recent = [record.loss for record in records[-1 - _STOPPING_SPAN :]]
    return before - min(recent) <= tol * before
