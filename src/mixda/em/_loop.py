"""The EM loop: all mixtures, of all classes and domains, advance in the same passes.

`fit_source` runs it over a `RowSource`, `fit_rows` over arrays in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.namespace import namespace
from mixda._core.parallel import thread_map
from mixda._core.progress import Progress
from mixda._core.resume import ResumeFile
from mixda._core.validation import check_names, check_random_state
from mixda.chunks import Grouping, GroupKey, RowBlock, RowSource, executor_for
from mixda.em._exposure import check_exposure, merge_exposed
from mixda.em._moments import Moments, array_moments
from mixda.em._passes import ArrayPasses, Passes, SourcePasses, source_moments
from mixda.em._search import (
    MixtureProblem,
    Search,
    Settings,
    check_varies,
    class_part,
    feature_units,
    std_floor,
)
from mixda.em._steps import SuffStats, m_step
from mixda.mixture import SMALLEST_COMPONENT, VALUES_PER_STEP, Mixture
from mixda.tables import class_names

_STEPWISE_DECAY = 0.7  # exponent of the step size, between 1/2 (fast) and 1 (stable)
_MIN_STEPWISE_UPDATES = 16  # if there are as many partitions

Searches = dict[GroupKey, Search]


@dataclass(frozen=True)
class Execution:
    """Where a fit over a `RowSource` runs, and how it resumes."""

    n_jobs: int | None = None
    client: Any = None
    checkpoint: str | Path | None = None
    stepwise: bool = False


@dataclass(frozen=True)
class Constraints:
    """Floor of the standard deviations, units, and number of rows per component.

    Without `rows_per_component`, too many components for the rows are an error. Otherwise they
    are reduced to the number of distinct rows and to that many rows per component. After the fit,
    components of fewer than `min_component_rows` rows are merged. A group that is too small for
    that is an error unless `allow_exposed_rows`.
    """

    min_std: Any = "auto"
    standardize: bool | str = False
    rows_per_component: int | None = None
    min_component_rows: int = 1
    allow_exposed_rows: bool = False


@dataclass(frozen=True, eq=False)
class FittedGroup:
    """The unlabeled mixture of a group of samples, their domain, class, number and weight."""

    domain: Any
    label: Any
    mixture: Mixture
    n: int
    weight: float


def fit_source(
    source: RowSource,
    grouping: Grouping,
    settings: Settings,
    constraints: Constraints,
    execution: Execution,
    random_state: Any,
    verbose: bool,
) -> list[FittedGroup]:
    """Fit one mixture per group, ordered by domain and class."""
    _check_options(source, grouping, settings, execution, random_state)
    n_partitions = len(source.partitions)
    with executor_for(source, execution.n_jobs, execution.client) as executor:
        max_distinct = 0 if constraints.rows_per_component is None else settings.largest
        unordered = source_moments(executor, n_partitions, grouping, max_distinct)
        if not unordered:
            raise MixdaError("the data have no row with values in all required columns.")
        names = _names_by_label([label for _, label in unordered], source.text_labels)
        order = sorted(unordered, key=lambda key: (key[0] or "", names.get(key[1], 0)))
        moments = {key: unordered[key] for key in order}
        domains: dict[Any, Moments] = {}
        for (domain, _), m in moments.items():
            domains[domain] = domains[domain].merge(m) if domain in domains else m
        moments = _completed(moments, domains, source.feature_names)
        problems = _problems(moments, domains, settings, constraints)
        file = _checkpoint_file(execution, moments, settings, constraints, random_state)
        passes = SourcePasses(executor, n_partitions, grouping, moments)
        first_pass = partial(_stepwise_pass, passes, problems) if execution.stepwise else None
        searches = _run(passes, problems, random_state, verbose, file, first_pass)
    if file is not None:
        file.remove()
    fitted = _fitted_groups(searches, problems, moments, domains, constraints, source.feature_names)
    return [replace(group, label=names.get(group.label)) for group in fitted]


def fit_rows(
    rows: RowBlock,
    feature_names: tuple[str, ...] | None,
    grouping: Grouping,
    settings: Settings,
    constraints: Constraints,
    random_state: Any,
    verbose: bool,
) -> list[FittedGroup]:
    """Fit one mixture per group of rows in memory, in the order of the class codes."""
    rng = check_random_state(random_state)
    max_distinct = 0 if constraints.rows_per_component is None else settings.largest
    with thread_map(namespace(rows.X) is np and rows.X.size >= 2 * VALUES_PER_STEP) as run:
        passes = ArrayPasses(rows, grouping, run, settings.chunk_size, max_distinct)
        whole = passes.moments.get((None, None)) or array_moments(rows.X, rows.weight)
        moments = _completed(passes.moments, {None: whole}, feature_names)
        problems = _problems(moments, {None: whole}, settings, constraints)
        searches = _run(passes, problems, rng, verbose)
    domains = {None: whole}
    return _fitted_groups(searches, problems, moments, domains, constraints, feature_names)


def _check_options(
    source: RowSource,
    grouping: Grouping,
    settings: Settings,
    execution: Execution,
    random_state: Any,
) -> None:
    if grouping.by_label and not source.has_label:
        raise MixdaError("the data have no classes; name their column with label, or give y.")
    check_random_state(random_state)
    if execution.stepwise and (settings.n_components == "bic" or settings.n_init > 1):
        raise MixdaError(
            "stepwise=True requires a fixed number of components and one initialization, got "
            f"n_components={settings.n_components!r} and n_init={settings.n_init}."
        )
    if execution.checkpoint is not None and not isinstance(random_state, (int, np.integer)):
        raise MixdaError(
            "checkpoint requires an integer random_state, so that the fit can be repeated, "
            f"got {random_state!r}."
        )


def _completed(
    moments: Mapping[GroupKey, Moments],
    domains: Mapping[Any, Moments],
    feature_names: tuple[str, ...] | None,
) -> dict[GroupKey, Moments]:
    """Take the means of features without any value in a group from its domain."""
    for name, domain in domains.items():
        empty = np.flatnonzero(domain.observed == 0)
        if empty.size:
            feature = empty[0] if feature_names is None else repr(feature_names[empty[0]])
            where = "" if name is None else f" of domain {name!r}"
            raise MixdaError(
                f"feature {feature} of X has no value in any row{where}; leave it out, or fill it."
            )
    return {key: m.completed(domains[key[0]]) for key, m in moments.items()}


def _problems(
    moments: Mapping[GroupKey, Moments],
    domains: Mapping[Any, Moments],
    settings: Settings,
    constraints: Constraints,
) -> dict[GroupKey, MixtureProblem]:
    """Take floors and units from all samples of a domain, and centers from each group."""
    problems = {}
    for key, m in moments.items():
        domain = domains[key[0]]
        check_varies(domain.spread, domain.low, domain.high)
        largest = np.maximum(np.abs(domain.low), np.abs(domain.high))
        unit = feature_units(domain.spread, largest, constraints.standardize)
        center = np.zeros(len(m.mean)) if (unit != 1.0).any() else domain.mean
        floor = unit * std_floor(constraints.min_std, center, domain.spread / unit)
        negligible_std = unit * std_floor("auto", center, domain.spread / unit)
        group_settings = settings
        if constraints.rows_per_component is None:
            settings.check_rows(m.n)
        else:
            max_components = max(1, m.n // constraints.rows_per_component)
            group_settings = settings.limited(min(len(m.distinct), max_components))
        if settings.init is not None and key[1] is not None:
            part = class_part(settings.init, key[1])
            group_settings = group_settings.starting_from(part, len(m.mean))
        problem = MixtureProblem(
            m.n, m.mean, domain.spread, floor, unit, group_settings, negligible_std
        )
        if not constraints.allow_exposed_rows:
            check_exposure(key, problem, m, domain, constraints.min_component_rows)
        problems[key] = problem
    return problems


def _run(
    passes: Passes,
    problems: dict[GroupKey, MixtureProblem],
    random_state: Any,
    verbose: bool,
    file: ResumeFile | None = None,
    first_pass: Callable[[Searches], Searches] | None = None,
) -> Searches:
    """Advance all searches, one pass over the data at a time, until all are done."""
    saved = None if file is None else file.load(partial(_unpack, keys=list(problems)))
    settings = next(iter(problems.values())).settings
    with Progress(settings.max_iter, "EM", verbose) as progress:
        single_start = settings.n_components != "bic" and settings.n_init == 1
        if settings.init is None and (saved is None or not single_start):
            progress.update(0, "reading rows for the initialization")
            problems = _initialized(passes, problems, random_state)
        if saved is not None:
            searches = saved
        else:
            searches = {key: Search.begin(problem) for key, problem in problems.items()}
            if first_pass is not None:
                progress.update(0, "first pass in mini-batches")
                searches = first_pass(searches)
            _save(file, searches)
        while active := {k: s.parameters for k, s in searches.items() if not s.done}:
            stats = passes.expectation(active)
            advanced = {k: searches[k].advance(problems[k], stats[k]) for k in active}
            searches = {**searches, **advanced}
            _save(file, searches)
            _show(progress, searches, stats)
    return searches


def _initialized(
    passes: Passes, problems: Mapping[GroupKey, MixtureProblem], random_state: Any
) -> dict[GroupKey, MixtureProblem]:
    """Read the rows for the initialization.

    Every domain draws as if it were fitted alone, and every class as if it were the only one, so
    that the order of classes does not matter.
    """
    seeds: dict[Any, int] = {}
    for domain, _ in problems:
        if domain not in seeds:
            seeds[domain] = int(check_random_state(random_state).integers(2**63))
    rngs = {key: np.random.default_rng([seeds[key[0]], p.n]) for key, p in problems.items()}
    wanted = {key: _init_rows(p.n, p.settings, rngs[key]) for key, p in problems.items()}
    rows = passes.rows(wanted)
    return {
        key: problem.initialized(rows[key].x, rows[key].weight, rngs[key])
        for key, problem in problems.items()
    }


def _init_rows(n: int, settings: Settings, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the sorted numbers of the rows, among n, that the initialization uses."""
    if n <= settings.max_init_rows:
        return np.arange(n)
    return np.sort(rng.choice(n, settings.max_init_rows, replace=False))


def _stepwise_pass(
    passes: SourcePasses, problems: Mapping[GroupKey, MixtureProblem], searches: Searches
) -> Searches:
    """Run one pass of stepwise EM, which updates the parameters after every few partitions.

    Reference: Cappé and Moulines, On-line expectation-maximization for latent data models, 2009,
    with step sizes t^-0.7.
    """
    running: dict[GroupKey, SuffStats] = {}
    n = passes.n_partitions
    size = max(1, n // _MIN_STEPWISE_UPDATES)
    n_updates = dict.fromkeys(searches, 0)
    for first in range(0, n, size):
        parameters = {key: search.parameters for key, search in searches.items()}
        partitions = range(first, min(first + size, n))
        for key, new in passes.partial_expectation(partitions, parameters).items():
            n_updates[key] += 1
            step = n_updates[key] ** -_STEPWISE_DECAY
            new = new.scaled(step / new.weight)
            if key in running:
                new = running[key].scaled(1.0 - step).merge(new)
            running[key] = new
            updated = m_step(new, problems[key].floor, parameters[key])
            searches[key] = replace(searches[key], parameters=updated)
    return searches


def _fitted_groups(
    searches: Searches,
    problems: Mapping[GroupKey, MixtureProblem],
    moments: Mapping[GroupKey, Moments],
    domains: Mapping[Any, Moments],
    constraints: Constraints,
    feature_names: tuple[str, ...] | None,
) -> list[FittedGroup]:
    groups = []
    for (domain, label), m in moments.items():
        key = domain, label
        min_rows = constraints.min_component_rows
        mixture, smallest = merge_exposed(
            searches[key].result, problems[key], m, domains[domain], min_rows
        )
        info = {"n_samples": m.n, SMALLEST_COMPONENT: round(smallest, 3)}
        mixture = replace(mixture, feature_names=feature_names, info=info)
        groups.append(FittedGroup(domain, label, mixture, m.n, m.weight))
    return groups


def _names_by_label(labels: list[Any], text: bool) -> dict[Any, Any]:
    """Map every label, as it is read, to the name of its class."""
    distinct = sorted({label for label in labels if label is not None}, key=str)
    if not distinct:
        return {}
    names = class_names(np.array(distinct)) if text else check_names(distinct, "the label column")
    return dict(zip(distinct, names.tolist(), strict=True))


def _checkpoint_file(
    execution: Execution,
    moments: Mapping[GroupKey, Moments],
    settings: Settings,
    constraints: Constraints,
    random_state: Any,
) -> ResumeFile | None:
    """Return the checkpoint file of this fit, which is recognized by its data and settings."""
    if execution.checkpoint is None:
        return None
    # few enough digits that the order of summation does not matter
    digits = [np.array([f"{v:.7e}" for v in (*m.mean, *m.spread)]) for m in moments.values()]
    ranges = [extreme for m in moments.values() for extreme in (m.low, m.high)]
    counts = np.array([m.n for m in moments.values()])
    init = settings.init
    start = [] if init is None else [init.weights, init.means, init.stds]
    choices = (
        np.asarray(constraints.min_std).tolist(),
        constraints.standardize,
        constraints.rows_per_component,
    )  # not min_component_rows, which does not change the passes
    options = (settings, *choices, execution.stepwise, int(random_state), list(moments))
    return ResumeFile(execution.checkpoint, [counts, *digits, *ranges, *start], options)


def _save(file: ResumeFile | None, searches: Mapping[GroupKey, Search]) -> None:
    if file is None:
        return
    arrays = {
        f"{index}/{name}": array
        for index, search in enumerate(searches.values())
        for name, array in search.to_arrays().items()
    }
    file.save(arrays)


def _unpack(saved: Mapping[str, NDArray[Any]], keys: list[GroupKey]) -> Searches:
    """Undo `_save`."""
    arrays: list[dict[str, NDArray[Any]]] = [{} for _ in keys]
    for name, array in saved.items():
        index, _, rest = name.partition("/")
        arrays[int(index)][rest] = array
    return {key: Search.from_arrays(a) for key, a in zip(keys, arrays, strict=True)}


def _show(
    progress: Progress, searches: Mapping[GroupKey, Search], stats: Mapping[GroupKey, SuffStats]
) -> None:
    loglik = sum(s.loglik for s in stats.values()) / sum(s.weight for s in stats.values())
    iteration = max(searches[key].iteration for key in stats)
    n_done = sum(search.done for search in searches.values())
    count = f"{n_done}/{len(searches)} mixtures done, " if len(searches) > 1 else ""
    progress.update(iteration, f"{count}mean log-likelihood {loglik:.6g}")
