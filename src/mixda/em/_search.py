"""The search for one mixture as a value: starts, iterations, restarts, numbers of components.

`Search.advance` takes the statistics of a pass and says which parameters to pass next, so many
mixtures can share a pass, and a search can be written to a file between two passes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import LARGEST, Array, check_choice, check_number, check_positive_int
from mixda.em._kmeans import kmeans_plusplus, lloyd
from mixda.em._steps import Parameters, SuffStats, m_step
from mixda.mixture import Mixture

_LEAST_STD = 10.0 / LARGEST  # the least floor
_RELATIVE_FLOOR = 1e-3  # of a feature's standard deviation
_MIXED_UNITS = 100.0  # ratio of spreads from which on features are of different units
_SEED_ROWS = 10_000  # seeding looks at no more rows than this (or 20 per component)
_PATIENCE = 2  # rungs of the BIC ladder without progress before it ends


@dataclass(frozen=True)
class Settings:
    """What was asked of a fit."""

    n_components: int | Literal["bic"]
    n_init: int
    max_iter: int
    tol: float
    max_components: int
    chunk_size: int | None
    init: Mixture | None = None

    @classmethod
    def checked(
        cls, n_components: Any, n_init: Any, max_iter: Any, tol: Any, most: Any, chunk_size: Any
    ) -> Settings:
        """Check every setting."""
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
            check_positive_int(most, "max_components"),
            None if chunk_size is None else check_positive_int(chunk_size, "chunk_size"),
        )

    @property
    def largest(self) -> int:
        """Most components that the fit may try."""
        return self.max_components if self.n_components == "bic" else self.n_components

    @property
    def seed_rows(self) -> int:
        """Most rows that the seeding looks at."""
        return max(_SEED_ROWS, 20 * self.largest)

    def limited(self, most: int) -> Settings:
        """Return the settings with no more than `most` components."""
        if self.n_components == "bic":
            return replace(self, max_components=min(self.max_components, most))
        return replace(self, n_components=min(self.n_components, most))

    def starting_from(self, init: Mixture, n_features: int) -> Settings:
        """Return the settings of a fit that starts from a mixture."""
        if not isinstance(init, Mixture):
            raise MixdaError(f"init must be a Mixture or None, got {type(init).__name__}.")
        if init.n_features != n_features:
            raise MixdaError(
                f"init has {init.n_features} features, but X has {n_features}; "
                "fit it on the same columns."
            )
        return replace(self, n_components=init.n_components, n_init=1, init=init)

    def check_rows(self, n: int) -> None:
        """Refuse more components than samples."""
        if self.n_components != "bic" and self.n_components > n and self.init is None:
            raise MixdaError(
                f"n_components={self.n_components} is more than the {n} sample(s) of X; "
                "ask for fewer components or give more samples."
            )


@dataclass(frozen=True, eq=False)
class Problem:
    """One mixture to find: moments, floor and unit of its samples, and where to start."""

    n: int
    center: Array
    floor: Array
    unit: Array  # per feature, what seeding divides by
    settings: Settings
    starts: list[Parameters] = field(default_factory=list)
    sample: tuple[Array, Array] | None = None  # for the starts of "bic", which are made on demand
    seed: int = 0

    def seeded(self, sample: tuple[Array, Array], rng: np.random.Generator) -> Problem:
        """Return the problem with its starts, from centerd rows and their weights."""
        if self.settings.n_components == "bic":
            return replace(self, sample=sample, seed=int(rng.integers(2**63)))
        k = self.settings.n_components
        starts = [self._start(sample, k, rng) for _ in range(self.settings.n_init)]
        return replace(self, starts=starts)

    def start(self, n_components: int, index: int) -> Parameters:
        """Return the parameters to start from."""
        if self.settings.init is not None:
            return self._given_start(self.settings.init)
        if self.sample is None:
            return self.starts[index]
        rng = np.random.default_rng([self.seed, n_components, index])
        return self._start(self.sample, n_components, rng)

    @property
    def ladder(self) -> list[int]:
        """Numbers of components to try: the asked, or 1, 2, 3, 4, 6, 8, 12, … and the largest."""
        if self.settings.n_components != "bic":
            return [self.settings.n_components]
        most = min(self.settings.max_components, self.n)
        rungs = sorted({2**i for i in range(most.bit_length())} | {3 * 2**i for i in range(63)})
        return [k for k in rungs if k < most] + [most]

    def _given_start(self, init: Mixture) -> Parameters:
        least = 10.0 * np.finfo(np.float64).eps
        log_weights = np.log(np.maximum(init.weights, least))
        return Parameters(log_weights, init.means - self.center, np.maximum(init.stds, self.floor))

    def _start(self, sample: tuple[Array, Array], k: int, rng: np.random.Generator) -> Parameters:
        """Return the parameters of a k-means clustering.

        The variance of a cluster of n_k samples is mixed with one sample's worth of the pooled
        variance, so that clusters of one sample do not start, and stay, at the floor.
        """
        x, weight = sample[0] / self.unit, sample[1]
        means, members = lloyd(x, weight, kmeans_plusplus(x, weight, k, rng))
        n_k = members.sum(axis=1)
        within = np.maximum(members @ np.square(x) - n_k[:, None] * means**2, 0.0)  # rounding
        pooled = within.sum(axis=0) / weight.sum()
        variances = (within + pooled) / (n_k[:, None] + 1.0)
        log_weights = np.log(np.maximum(n_k, 1e-3)) - np.log(np.maximum(n_k, 1e-3).sum())
        stds = np.maximum(np.sqrt(variances) * self.unit, self.floor)
        return Parameters(log_weights, means * self.unit, stds)


@dataclass(frozen=True, eq=False)
class Search:
    """Where the search for one mixture stands; `parameters` are the next to be evaluated."""

    parameters: Parameters
    rung: int = 0
    start: int = 0
    iteration: int = 0
    last: float = -np.inf  # mean log-likelihood of the iteration before
    settled: bool = False  # the next statistics only score the parameters
    waited: int = 0  # rungs without progress
    best: Parameters | None = None  # of the starts of this rung
    best_loglik: float = -np.inf
    chosen: Parameters | None = None  # of the rungs before
    least_bic: float = np.inf
    done: bool = False

    @classmethod
    def begin(cls, problem: Problem) -> Search:
        """Return the search before its first pass."""
        return cls(problem.start(problem.ladder[0], 0))

    def advance(self, problem: Problem, stats: SuffStats) -> Search:
        """Return the search after a pass with the parameters."""
        mean = stats.loglik / stats.weight
        if self.settled:
            return self._compared(problem, mean)
        settings = problem.settings
        parameters = m_step(stats, problem.floor, self.parameters)
        last = abs(mean - self.last) < settings.tol or self.iteration + 1 == settings.max_iter
        moved = replace(self, parameters=parameters, iteration=self.iteration + 1, last=mean)
        if last and settings.n_components != "bic" and settings.n_init == 1:
            return replace(moved, chosen=parameters, done=True)  # nothing to compare with
        return replace(moved, settled=last)

    def _compared(self, problem: Problem, loglik: float) -> Search:
        """Keep the better start, and go to the next one or to the next rung."""
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

    def _climbed(self, problem: Problem, best: Parameters, loglik: float) -> Search:
        k, d = best.means.shape
        bic = (2 * k * d + k - 1) * np.log(problem.n) - 2.0 * problem.n * loglik
        here = replace(self, waited=self.waited + 1)
        if self.chosen is None or bic < self.least_bic:
            here = replace(here, chosen=best, least_bic=bic, waited=0)
        if here.waited == _PATIENCE or self.rung + 1 == len(problem.ladder):
            return replace(here, done=True)
        start = problem.start(problem.ladder[self.rung + 1], 0)
        return replace(
            here._restarted(start), rung=self.rung + 1, start=0, best=None, best_loglik=-np.inf
        )

    def _restarted(self, parameters: Parameters) -> Search:
        return replace(self, parameters=parameters, iteration=0, last=-np.inf, settled=False)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the search as arrays, for a file."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, value in self.__dict__.items():
            if isinstance(value, Parameters):
                for part in Parameters.__annotations__:
                    arrays[f"{name}.{part}"] = getattr(value, part)
            elif value is not None:
                arrays[name] = np.array(value)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Search:
        """Return the search that `to_arrays` wrote."""
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

    def mixture(self, center: Array) -> Mixture:
        """Return what was found."""
        found = self.parameters if self.chosen is None else self.chosen
        weights = np.exp(found.log_weights)
        return Mixture(weights / weights.sum(), found.means + center, found.stds)


def check_varies(spread: Array, low: Array, high: Array) -> None:
    """Refuse data that vary, but by less than squares can tell."""
    least = _LEAST_STD / _RELATIVE_FLOOR
    if spread.max() < least and (high > low).any():
        raise MixdaError(f"X varies by less than {least:.0e}, too little for squares; rescale it.")


def units_of(spread: Array, largest: Array, standardize: bool | str) -> Array:
    """Return the unit in which each feature is fitted: its spread if standardized, else 1.

    "auto" standardizes if the spreads of features that vary differ by more than a factor of a
    hundred. Features in one unit, such as pixels, are better left alone: standardizing blows up
    the noise of those that hardly vary.
    """
    varies = spread > 1e-12 * largest
    if standardize == "auto":
        some = spread[varies]
        standardize = some.size > 0 and bool(some.max() > _MIXED_UNITS * some.min())
    return np.where(varies & bool(standardize), spread, 1.0)


def floor_of(min_std: Any, center: Array, spread: Array) -> Array:
    """Smallest standard deviation of each feature, shape (d,); the formula is in `fit_mixture`."""
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
    if not (np.isfinite(given).all() and (given >= _LEAST_STD).all() and (given <= LARGEST).all()):
        raise MixdaError(
            f"min_std must be finite and above zero ({_LEAST_STD:.0e} to {LARGEST:.0e}), "
            f"got {min_std!r}."
        )
    return np.broadcast_to(given.astype(np.float64), center.shape)
