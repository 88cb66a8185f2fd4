"""The search for one mixture as a value: initializations, iterations, numbers of components.

`Search.advance` takes the statistics of a pass and holds the parameters of the next one. So many
mixtures share a pass, and a search can be saved to a file between two passes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.order import canonical_order
from mixda._core.typing import Array
from mixda._core.validation import LARGEST, check_choice, check_number, check_positive_int
from mixda.em._kmeans import kmeans_plusplus, lloyd, members, sums_of_squares
from mixda.em._steps import Parameters, SuffStats, m_step
from mixda.mixture import Mixture, has_gaps

_MIN_FLOOR = 10.0 / LARGEST  # whose square does not underflow
_RELATIVE_FLOOR = 1e-3  # times the standard deviation of a feature
_MAX_SPREAD_RATIO = 100.0  # features whose spreads differ more have different units
_MIN_RELATIVE_SPREAD = 1e-12  # a feature that varies less, relative to its size, is constant
_MAX_INIT_ROWS = 10_000  # used by the initialization, or 20 per component if that is more
_INIT_ROWS_PER_COMPONENT = 20
_N_CANDIDATES = 20  # of each mean of a systematic initialization; the next one has one more
_BIC_PATIENCE = 2  # larger numbers of components tried without improvement


@dataclass(frozen=True)
class Settings:
    """Options of a fit, checked."""

    n_components: int | Literal["bic"]
    n_init: int
    max_iter: int
    tol: float
    max_components: int
    chunk_size: int | None
    init: Mixture | None = None
    systematic: bool = False  # whether initializations depend on the data alone

    @classmethod
    def checked(
        cls,
        n_components: Any,
        n_init: Any,
        max_iter: Any,
        tol: Any,
        max_components: Any,
        chunk_size: Any = None,
        init: Any = "k-means++",
    ) -> Settings:
        """Return the settings, or raise an error that names the wrong one."""
        check_choice(init, "init", ("k-means++", "systematic"))
        if isinstance(n_components, str):
            if n_components != "bic":
                raise MixdaError(
                    f"n_components must be a positive integer or 'bic', got {n_components!r}."
                )
        else:
            n_components = check_positive_int(n_components, "n_components")
        return cls(
            n_components,
            check_positive_int(n_init, "n_init"),
            check_positive_int(max_iter, "max_iter"),
            check_number(tol, "tol"),
            check_positive_int(max_components, "max_components"),
            None if chunk_size is None else check_positive_int(chunk_size, "chunk_size"),
            systematic=init == "systematic",
        )

    @property
    def largest(self) -> int:
        """Largest number of components that the fit may try."""
        return self.max_components if self.n_components == "bic" else self.n_components

    @property
    def max_init_rows(self) -> int:
        """Largest number of rows that the initialization uses."""
        return max(_MAX_INIT_ROWS, _INIT_ROWS_PER_COMPONENT * self.largest)

    def limited(self, max_components: int) -> Settings:
        """Return the settings with at most `max_components` components."""
        if self.n_components == "bic":
            return replace(self, max_components=min(self.max_components, max_components))
        return replace(self, n_components=min(self.n_components, max_components))

    def starting_from(self, init: Mixture, n_features: int) -> Settings:
        """Return the settings of a fit that is initialized with a mixture."""
        if not isinstance(init, Mixture):
            raise MixdaError(
                f"init must be a Mixture, 'k-means++' or 'systematic', got {type(init).__name__}."
            )
        if init.n_features != n_features:
            raise MixdaError(
                f"init has {init.n_features} features, but X has {n_features}; "
                "fit it on the same columns."
            )
        return replace(self, n_components=init.n_components, n_init=1, init=init)

    def check_rows(self, n: int) -> None:
        """Check that there are at least as many samples as components."""
        if self.n_components != "bic" and self.n_components > n and self.init is None:
            raise MixdaError(
                f"n_components={self.n_components} is more than the {n} sample(s) of X; "
                "ask for fewer components or give more samples."
            )


@dataclass(frozen=True, eq=False)
class MixtureProblem:
    """One mixture to find: size, center, floor and unit of its samples, and initializations."""

    n: int
    center: Array
    spread: Array  # standard deviations of the domain, where the samples have no value
    floor: Array
    unit: Array  # of each feature; k-means runs on features divided by it
    settings: Settings
    negligible_std: Array  # a component that is narrower in all features consists of equal rows
    starts: list[Parameters] = field(default_factory=list)
    sample: tuple[Array, Array] | None = None  # rows and weights, for "bic": starts on demand
    seed: int = 0

    def initialized(self, x: Array, weight: Array, rng: np.random.Generator) -> MixtureProblem:
        """Return the problem with initial parameters from centered rows and their weights.

        Random draws see the rows in a canonical order.
        """
        order = canonical_order(x, weight)
        x, weight = x[order], weight[order]
        if self.settings.n_components == "bic":
            return replace(self, sample=(x, weight), seed=int(rng.integers(2**63)))
        k = self.settings.n_components
        starts = [
            self._kmeans_start(x, weight, k, _N_CANDIDATES + i if self.settings.systematic else rng)
            for i in range(self.settings.n_init)
        ]
        return replace(self, starts=starts)

    def start(self, n_components: int, index: int) -> Parameters:
        """Return the initial parameters number `index` with this number of components."""
        if self.settings.init is not None:
            return self._start_from(self.settings.init)
        if self.sample is None:
            return self.starts[index]
        if self.settings.systematic:
            return self._kmeans_start(*self.sample, n_components, _N_CANDIDATES + index)
        rng = np.random.default_rng([self.seed, n_components, index])
        return self._kmeans_start(*self.sample, n_components, rng)

    @property
    def ladder(self) -> list[int]:
        """Numbers of components to try: the given one, or 1, 2, 3, 4, 6, 8, 12, … in order."""
        if self.settings.n_components != "bic":
            return [self.settings.n_components]
        largest = min(self.settings.max_components, self.n)
        rungs = sorted({2**i for i in range(largest.bit_length())} | {3 * 2**i for i in range(63)})
        return [k for k in rungs if k < largest] + [largest]

    def _start_from(self, init: Mixture) -> Parameters:
        min_weight = 10.0 * np.finfo(np.float64).eps
        log_weights = np.log(np.maximum(init.weights, min_weight))
        return Parameters(log_weights, init.means - self.center, np.maximum(init.stds, self.floor))

    def _kmeans_start(
        self, x: Array, weight: Array, k: int, rng: np.random.Generator | int
    ) -> Parameters:
        """Return the parameters of a k-means clustering.

        One sample with the pooled variance is added to the variance of each cluster. Otherwise
        clusters of a single sample would start at the floor and stay there.
        """
        if has_gaps(x):
            return self._kmeans_start_with_gaps(x, weight, k, rng)
        if not (np.asarray(self.unit) == 1.0).all():
            x = x / self.unit
        means, assignment = lloyd(x, weight, kmeans_plusplus(x, weight, k, rng))
        n_k = np.bincount(assignment, weight, minlength=k)
        squares = sums_of_squares(x, weight, assignment, k)
        within = np.maximum(squares - n_k[:, None] * means**2, 0.0)
        pooled = within.sum(axis=0) / weight.sum()
        variances = (within + pooled) / (n_k[:, None] + 1.0)
        log_weights = np.log(np.maximum(n_k, 1e-3)) - np.log(np.maximum(n_k, 1e-3).sum())
        stds = np.maximum(np.sqrt(variances) * self.unit, self.floor)
        return Parameters(log_weights, means * self.unit, stds)

    def _kmeans_start_with_gaps(
        self, x: Array, weight: Array, k: int, rng: np.random.Generator | int
    ) -> Parameters:
        """Cluster with the mean in place of missing values; take moments of the observed ones."""
        observed = ~np.isnan(x)
        x = np.where(observed, x, 0.0) / self.unit
        _, assignment = lloyd(x, weight, kmeans_plusplus(x, weight, k, rng))
        clusters = members(assignment, weight, k)
        n_k, n_kj = clusters.sum(axis=1), clusters @ observed.astype(np.float64)
        means = clusters @ x / np.where(n_kj > 0, n_kj, 1.0)
        within = np.maximum(clusters @ np.square(x) - n_kj * means**2, 0.0)
        total = n_kj.sum(axis=0)
        pooled = within.sum(axis=0) / np.where(total > 0, total, 1.0)
        pooled = np.where(total > 0, pooled, np.square(self.spread / self.unit))
        variances = (within + pooled) / (n_kj + 1.0)
        log_weights = np.log(np.maximum(n_k, 1e-3)) - np.log(np.maximum(n_k, 1e-3).sum())
        stds = np.maximum(np.sqrt(variances) * self.unit, self.floor)
        return Parameters(log_weights, means * self.unit, stds)


@dataclass(frozen=True, eq=False)
class Search:
    """State of the search for one mixture; the next pass evaluates `parameters`."""

    parameters: Parameters
    rung: int = 0
    start: int = 0
    iteration: int = 0
    last: float = -np.inf  # mean log-likelihood of the previous iteration
    settled: bool = False  # converged: the next pass only evaluates the likelihood
    waited: int = 0  # rungs of the ladder without improvement
    best: Parameters | None = None  # among the starts of this rung
    best_loglik: float = -np.inf
    chosen: Parameters | None = None  # among the previous rungs
    least_bic: float = np.inf
    done: bool = False

    @classmethod
    def begin(cls, problem: MixtureProblem) -> Search:
        """Return the state before the first pass."""
        return cls(problem.start(problem.ladder[0], 0))

    def advance(self, problem: MixtureProblem, stats: SuffStats) -> Search:
        """Return the state after a pass that evaluated the parameters."""
        mean = stats.loglik / stats.weight
        if self.settled:
            return self._compared(problem, mean)
        settings = problem.settings
        parameters = m_step(stats, problem.floor, self.parameters)
        final = abs(mean - self.last) < settings.tol or self.iteration + 1 == settings.max_iter
        moved = replace(self, parameters=parameters, iteration=self.iteration + 1, last=mean)
        if final and settings.n_components != "bic" and settings.n_init == 1:
            return replace(moved, chosen=parameters, done=True)  # no other start to compare with
        return replace(moved, settled=final)

    def _compared(self, problem: MixtureProblem, loglik: float) -> Search:
        """Keep the better start; go on with the next start or the next number of components."""
        best, best_loglik = self.best, self.best_loglik
        if best is None or loglik > best_loglik:
            best, best_loglik = self.parameters, loglik
        if self.start + 1 < problem.settings.n_init:
            start = problem.start(problem.ladder[self.rung], self.start + 1)
            return replace(
                self._restarted(start), start=self.start + 1, best=best, best_loglik=best_loglik
            )
        if problem.settings.n_components != "bic":
            return replace(self, chosen=best, done=True)
        return self._climbed(problem, best, best_loglik)

    def _climbed(self, problem: MixtureProblem, best: Parameters, loglik: float) -> Search:
        """Compare the BIC of this rung of the ladder with the best so far; climb or stop."""
        k, d = best.means.shape
        bic = (2 * k * d + k - 1) * np.log(problem.n) - 2.0 * problem.n * loglik
        here = replace(self, waited=self.waited + 1)
        if self.chosen is None or bic < self.least_bic:
            here = replace(here, chosen=best, least_bic=bic, waited=0)
        if here.waited == _BIC_PATIENCE or self.rung + 1 == len(problem.ladder):
            return replace(here, done=True)
        start = problem.start(problem.ladder[self.rung + 1], 0)
        return replace(
            here._restarted(start), rung=self.rung + 1, start=0, best=None, best_loglik=-np.inf
        )

    def _restarted(self, parameters: Parameters) -> Search:
        return replace(self, parameters=parameters, iteration=0, last=-np.inf, settled=False)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays, for a checkpoint file."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, value in self.__dict__.items():
            if isinstance(value, Parameters):
                for part, array in vars(value).items():
                    if part in Parameters.__annotations__ and array is not None:
                        arrays[f"{name}.{part}"] = array
            elif value is not None:
                arrays[name] = np.array(value)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Search:
        """Undo `to_arrays`."""
        values: dict[str, Any] = {}
        for name, array in arrays.items():
            field_name, _, part = name.partition(".")
            if part:
                values.setdefault(field_name, {})[part] = array
            else:
                values[field_name] = array.item()
        for name, value in values.items():
            values[name] = Parameters(**value) if isinstance(value, dict) else value
        return cls(**values)

    @property
    def result(self) -> Parameters:
        """The best parameters of a finished search."""
        return self.parameters if self.chosen is None else self.chosen


def class_part(mixture: Mixture, label: Any) -> Mixture:
    """Return the components of a labeled mixture that belong to a class, as a mixture."""
    names = [str(name) for name in np.asarray(mixture.classes).tolist()]
    if str(label) not in names:
        raise MixdaError(f"init has no component of class {label!r}; its classes are {names}.")
    own = np.asarray(mixture.labels)[:, names.index(str(label))] > 0.5
    if not own.any():
        raise MixdaError(f"init has no component of class {label!r}.")
    weights = mixture.weights[own]
    return Mixture(weights / weights.sum(), mixture.means[own], mixture.stds[own])


def check_varies(spread: Array, low: Array, high: Array) -> None:
    """Check that the squares of the variation of the data do not underflow."""
    min_spread = _MIN_FLOOR / _RELATIVE_FLOOR
    if spread.max() < min_spread and (high > low).any():
        raise MixdaError(
            f"X varies by less than {min_spread:.0e}, whose square underflows; rescale X."
        )


def feature_units(spread: Array, largest: Array, standardize: bool | str) -> Array:
    """Return the unit in which each feature is fitted: its spread if standardized, else 1.

    "auto" standardizes if the spreads of non-constant features differ by more than a factor of a
    hundred. Features in the same unit, such as pixels, are not standardized, because that would
    amplify the noise of features that hardly vary.
    """
    varies = spread > _MIN_RELATIVE_SPREAD * largest
    if standardize == "auto":
        spreads = spread[varies]
        ratio_exceeded = spreads.size and spreads.max() > _MAX_SPREAD_RATIO * spreads.min()
        standardize = bool(ratio_exceeded)
    return np.where(varies & bool(standardize), spread, 1.0)


def std_floor(min_std: Any, center: Array, spread: Array) -> Array:
    """Return the floor of the standard deviations, shape (d,); see `fit_mixture`."""
    if isinstance(min_std, str):
        check_choice(min_std, "min_std", ("auto",))
        if not spread.any():
            return np.full(len(center), 1e-6 * (1.0 + np.abs(center).max()))
        floor: Array = _RELATIVE_FLOOR * np.maximum(spread, spread.mean())
        return floor
    given = np.asarray(min_std)
    if given.dtype.kind not in "fiu" or given.shape not in ((), center.shape):
        raise MixdaError(
            f"min_std must be 'auto', a number or {len(center)} numbers (one per feature), "
            f"got {min_std!r}."
        )
    if not (np.isfinite(given).all() and (given >= _MIN_FLOOR).all() and (given <= LARGEST).all()):
        raise MixdaError(
            f"min_std must be finite and positive, from {_MIN_FLOOR:.0e} to {LARGEST:.0e}, "
            f"got {min_std!r}."
        )
    return np.broadcast_to(given.astype(np.float64), center.shape)
