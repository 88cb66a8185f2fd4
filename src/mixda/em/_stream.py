"""Fitting from a source of chunks: all mixtures, of all classes and domains, in the same passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.progress import Progress
from mixda._core.resume import ResumeFile
from mixda._core.validation import check_names, check_random_state
from mixda.chunks import ChunkSource, Key, executor_for
from mixda.em._passes import Moments, Passes
from mixda.em._search import Problem, Search, Settings, check_varies, floor_of, units_of
from mixda.em._steps import SuffStats, m_step
from mixda.mixture import Mixture

_STEPWISE_DECAY = 0.7  # of the step size, between 1/2 (quick) and 1 (careful)
_STEPWISE_ROUNDS = 16  # at least, if there are as many parts


@dataclass(frozen=True)
class Streaming:
    """Where a fit runs, and what it leaves behind in case that it is stopped."""

    n_jobs: int | None = None
    client: Any = None
    checkpoint: str | Path | None = None
    stepwise: bool = False

    @property
    def asked(self) -> bool:
        """Whether anything but the default was asked."""
        return self != Streaming()


@dataclass(frozen=True, eq=False)
class Fitted:
    """A mixture without labels, its domain and class, and the weight of its samples."""

    domain: Any
    label: Any
    mixture: Mixture
    n: int
    weight: float


def fit_source(
    source: ChunkSource,
    settings: Settings,
    streaming: Streaming,
    *,
    by_label: bool,
    by_domain: bool,
    limit: int,
    min_std: Any,
    standardize: bool | str,
    random_state: Any,
    verbose: bool,
) -> list[Fitted]:
    """Fit one mixture per domain and class, those of a domain in the order of its classes.

    With a `limit`, a mixture has no more components than distinct samples, and at least that many
    samples per component.
    """
    _check(source, by_label, streaming, settings, random_state)
    with executor_for(source, streaming.n_jobs, streaming.client) as executor:
        passes = Passes(executor, len(source.parts), by_label, by_domain)
        read = passes.moments(settings.largest)
        if not read:
            raise MixdaError("the data have no row with all the values that are asked for.")
        names = _class_names([label for _, label in read], source.text_labels)
        order = sorted(read, key=lambda key: (key[0] or "", names.get(key[1], 0)))
        moments = {key: read[key] for key in order}
        problems = _problems(moments, settings, min_std, standardize, limit)
        file = None
        if streaming.checkpoint is not None:
            choices = (np.asarray(min_std).tolist(), standardize, limit, streaming.stepwise)
            asked = (settings, *choices, int(random_state), list(moments))
            file = ResumeFile(streaming.checkpoint, _digest(moments, settings), asked)
        fit = _Fit(passes, moments, problems, file, random_state, verbose)
        searches = fit.run(streaming.stepwise)
    if file is not None:
        file.remove()
    return [
        Fitted(
            key[0],
            names.get(key[1]),
            replace(
                searches[key].mixture(of.mean),
                feature_names=source.feature_names,
                info={"n_samples": of.n},
            ),
            of.n,
            of.weight,
        )
        for key, of in moments.items()
    ]


def _check(
    source: ChunkSource, by_label: bool, streaming: Streaming, settings: Settings, random_state: Any
) -> None:
    if by_label and not source.has_label:
        raise MixdaError("the data have no classes; name their column with label, or give y.")
    check_random_state(random_state)
    if streaming.stepwise and (settings.n_components == "bic" or settings.n_init > 1):
        raise MixdaError(
            "stepwise needs one start and a number of components; use n_init=1 and no 'bic'."
        )
    if streaming.checkpoint is not None and not isinstance(random_state, (int, np.integer)):
        raise MixdaError(
            "a checkpoint needs random_state to be an integer, so that the fit can be repeated, "
            f"got {random_state!r}."
        )


@dataclass(frozen=True, eq=False)
class _Fit:
    """The loop over passes."""

    passes: Passes
    moments: Mapping[Key, Moments]
    problems: Mapping[Key, Problem]
    file: ResumeFile | None
    random_state: Any
    verbose: bool

    def run(self, stepwise: bool) -> dict[Key, Search]:
        keys = list(self.problems)
        saved = None if self.file is None else self.file.load(lambda a: _unpacked(a, keys))
        settings = next(iter(self.problems.values())).settings
        with Progress(settings.max_iter, "EM", self.verbose) as progress:
            problems = dict(self.problems)
            once = settings.n_components != "bic" and settings.n_init == 1
            if settings.init is None and (saved is None or not once):
                progress.update(0, "reading a sample to start from")
                problems = self._seeded()
            if saved is not None:
                searches = saved
            else:
                searches = {key: Search.begin(problem) for key, problem in problems.items()}
                if stepwise:
                    progress.update(0, "a first pass in mini-batches")
                    searches = self._stepwise(searches)
                self._save(searches)
            while active := {k: s.parameters for k, s in searches.items() if not s.done}:
                stats = self.passes.expectation(self.moments, active)
                moved = {k: searches[k].advance(problems[k], stats[k]) for k in active}
                searches = {**searches, **moved}
                self._save(searches)
                _show(progress, searches, stats)
        return searches

    def _seeded(self) -> dict[Key, Problem]:
        """Read the rows to start from; every domain draws as if it was alone."""
        rngs = {domain: check_random_state(self.random_state) for domain, _ in self.problems}
        wanted = {key: seed_rows(p.n, p.settings, rngs[key[0]]) for key, p in self.problems.items()}
        rows = self.passes.rows(self.moments, wanted)
        seeded = {}
        for key, problem in self.problems.items():
            weight = rows[key].weight * (problem.n / self.moments[key].weight)
            seeded[key] = problem.seeded((rows[key].x - problem.center, weight), rngs[key[0]])
        return seeded

    def _stepwise(self, searches: dict[Key, Search]) -> dict[Key, Search]:
        """One pass of stepwise EM: statistics forget, and parameters move after every few parts.

        Reference: Cappé and Moulines, On-line expectation-maximization for latent data models,
        2009, with step sizes (t + 1)^-0.7.
        """
        n, kept = self.passes.n_parts, dict[Key, SuffStats]()
        size = max(1, n // _STEPWISE_ROUNDS)
        rounds = dict.fromkeys(searches, 0)
        for first in range(0, n, size):
            parameters = {key: search.parameters for key, search in searches.items()}
            parts = range(first, min(first + size, n))
            stats = self.passes.expectation_of(parts, self.moments, parameters)
            for key, new in stats.items():
                rounds[key] += 1
                step = rounds[key] ** -_STEPWISE_DECAY
                new = new.scaled(step / new.weight)
                kept[key] = new if rounds[key] == 1 else kept[key].scaled(1.0 - step).merge(new)
                moved = m_step(kept[key], self.problems[key].floor, parameters[key])
                searches[key] = replace(searches[key], parameters=moved)
        return searches

    def _save(self, searches: Mapping[Key, Search]) -> None:
        if self.file is not None:
            self.file.save(_packed(searches))


def seed_rows(n: int, settings: Settings, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the numbers of the rows, among n, that a seeding looks at."""
    if n <= settings.seed_rows:
        return np.arange(n)
    return np.sort(rng.choice(n, settings.seed_rows, replace=False))


def _problems(
    moments: Mapping[Key, Moments],
    settings: Settings,
    min_std: Any,
    standardize: bool | str,
    limit: int,
) -> dict[Key, Problem]:
    """Floors and units come from all the samples of a domain, centers from those of a class."""
    domains: dict[Any, Moments] = {}
    for (domain, _), m in moments.items():
        domains[domain] = domains[domain].merge(m) if domain in domains else m
    problems = {}
    for key, m in moments.items():
        whole = domains[key[0]]
        check_varies(whole.spread, whole.low, whole.high)
        largest = np.maximum(np.abs(whole.low), np.abs(whole.high))
        unit = units_of(whole.spread, largest, standardize)
        center = np.zeros(len(m.mean)) if (unit != 1.0).any() else whole.mean
        floor = unit * floor_of(min_std, center, whole.spread / unit)
        if limit:
            limited = settings.limited(min(len(m.distinct), max(1, m.n // limit)))
        else:
            limited = settings
            settings.check_rows(m.n)
        problems[key] = Problem(m.n, m.mean, floor, unit, limited)
    return problems


def _class_names(labels: list[Any], text: bool) -> dict[Any, Any]:
    """Return the name of every class as it is read."""
    found = sorted({label for label in labels if label is not None}, key=str)
    if not found:
        return {}
    if text:
        from mixda.tables import class_names

        return dict(zip(found, class_names(np.array(found)).tolist(), strict=True))
    return dict(zip(found, check_names(found, "the label column").tolist(), strict=True))


def _digest(moments: Mapping[Key, Moments], settings: Settings) -> list[NDArray[Any]]:
    """Return what tells data apart, in few enough digits that the order of sums does not show."""
    numbers = [np.array([f"{v:.7e}" for v in (*m.mean, *m.spread)]) for m in moments.values()]
    numbers += [extreme for m in moments.values() for extreme in (m.low, m.high)]
    init = settings.init
    start = [] if init is None else [init.weights, init.means, init.stds]
    return [np.array([m.n for m in moments.values()]), *numbers, *start]


def _packed(searches: Mapping[Key, Search]) -> dict[str, NDArray[Any]]:
    return {
        f"{place}/{name}": array
        for place, search in enumerate(searches.values())
        for name, array in search.to_arrays().items()
    }


def _unpacked(saved: Mapping[str, NDArray[Any]], keys: list[Key]) -> dict[Key, Search]:
    parts: list[dict[str, NDArray[Any]]] = [{} for _ in keys]
    for name, array in saved.items():
        place, _, rest = name.partition("/")
        parts[int(place)][rest] = array
    return {key: Search.from_arrays(part) for key, part in zip(keys, parts, strict=True)}


def _show(
    progress: Progress, searches: Mapping[Key, Search], stats: Mapping[Key, SuffStats]
) -> None:
    loglik = sum(s.loglik for s in stats.values()) / sum(s.weight for s in stats.values())
    iteration = max(searches[key].iteration for key in stats)
    done = sum(search.done for search in searches.values())
    count = f"{done}/{len(searches)} mixtures done, " if len(searches) > 1 else ""
    progress.update(iteration, f"{count}mean log-likelihood {loglik:.6g}")
