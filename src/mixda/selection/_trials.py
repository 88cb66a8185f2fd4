"""Trials on left-out sources: each source in turn plays the target of the others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from mixda._core.progress import Progress
from mixda._core.resume import ResumeFile, open_cache_folder
from mixda._core.validation import Array
from mixda._version import __version__
from mixda.rules import Chain, Rule, smooth_logs
from mixda.selection._members import Fitted, Member, Sample
from mixda.selection._pool import SMOOTHING, Fold
from mixda.selection._views import OWN, TARGET, Views

Codes = NDArray[np.intp]


_COPIES = 10  # of a labeled target row among the rows of the sources
_LABEL_FOLDS = 3


@dataclass(frozen=True, eq=False)
class Labeled:
    """Target rows whose class is known: their positions and classes."""

    rows: Codes
    truth: Codes


@dataclass(frozen=True, eq=False)
class Problem:
    """Sources with integer classes, the target, and all of them in all views.

    Members see the classes in `class_order`, which is canonical, so that the order in which they
    are given does not matter.
    """

    views: Views
    codes: list[Codes]  # of each source
    class_order: Codes
    seed: int
    labeled: Labeled | None = None  # rows of the target that teach ordinary members

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_order)

    def sample(self, member: Member, domain: int, sources: Sequence[int]) -> Sample:
        """Return what a member is fitted on when these sources teach a domain."""
        parts = [self.encode(member, k, sources) for k in sources]
        codes = [self.codes[k] for k in sources]
        target = self.encode(member, domain, sources)
        if self.labeled is not None and domain == TARGET and not member.adapts:
            parts.append(np.repeat(target[self.labeled.rows], _COPIES, axis=0))
            codes.append(np.repeat(self.labeled.truth, _COPIES))
        return Sample(
            np.vstack(parts),
            np.argsort(self.class_order)[np.concatenate(codes)],
            np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
            target,
            self.n_classes,
        )

    def encode(self, member: Member, domain: int, sources: Sequence[int]) -> Array:
        """Return a domain as a member sees it."""
        return self.rule(member, domain, sources)(self.views.domains[domain])

    def rule(self, member: Member, domain: int, sources: Sequence[int]) -> Rule:
        """Return the map from raw features to what a member sees."""
        rule = self.views.rule(member.view, domain, sources)
        projection = self.views.projections[member.view]
        return rule if member.all_features or projection is None else Chain((rule, projection))


def fit_members(
    members: Sequence[Member], problem: Problem, domain: int, sources: Sequence[int], n_jobs: Any
) -> list[Fitted | None]:
    """Fit all members to a domain from some sources; None where one cannot be fitted."""
    jobs = (delayed(_fit)(member, problem, domain, sources) for member in members)
    with warnings.catch_warnings():  # the last digits of an optimum change nothing here
        warnings.simplefilter("ignore")
        fitted: list[Fitted | None] = Parallel(n_jobs=n_jobs, prefer="threads")(jobs)
    return fitted


def _fit(member: Member, problem: Problem, domain: int, sources: Sequence[int]) -> Fitted | None:
    try:
        with warnings.catch_warnings():  # again, because this may be a process of a cluster
            warnings.simplefilter("ignore")
            fitted = member.fit(problem.sample(member, domain, sources), problem.seed)
    except (ValueError, np.linalg.LinAlgError):  # too few or constant samples for this member
        return None
    return fitted.with_classes(problem.class_order)


def answers(fitted: Sequence[Fitted | None], n: int, n_classes: int) -> Array:
    """Return smoothed log-probabilities of all members, shape (n_members, n, nc).

    A member that could not be fitted says nothing: equal probabilities.
    """
    silent = np.full((n, n_classes), 1.0 / n_classes)
    return np.array(
        [smooth_logs(silent if member is None else member.proba, SMOOTHING) for member in fitted]
    )


def label_evidence(
    members: Sequence[Member], problem: Problem, labeled: Labeled, logs: Array, n_jobs: Any
) -> Fold:
    """Return answers on labeled target rows of members that were not taught these rows.

    Parameters
    ----------
    members : sequence of Member
    problem : Problem
    labeled : Labeled
    logs : ndarray of shape (n_members, n, nc)
        Answers on all target rows; those of members that adapt use no label and are kept.
    n_jobs : see `fit_members`
    """
    held = logs[:, labeled.rows]
    ordinary = [k for k, member in enumerate(members) if not member.adapts]
    part = np.arange(len(labeled.rows)) % _LABEL_FOLDS
    for fold in np.unique(part):
        out, others = part == fold, part != fold
        taught = replace(problem, labeled=Labeled(labeled.rows[others], labeled.truth[others]))
        fitted = fit_members(
            [members[k] for k in ordinary], taught, TARGET, range(len(problem.codes)), n_jobs
        )
        told = answers(fitted, logs.shape[1], problem.n_classes)[:, labeled.rows[out]]
        held[np.ix_(np.array(ordinary), np.flatnonzero(out))] = told
    return Fold(held, labeled.truth)


def left_out_sources(problem: Problem, max_folds: int) -> Iterator[tuple[int, list[int], Codes]]:
    """Yield sources that can be left out: source, the others, and its rows of known classes."""
    n_sources = len(problem.codes)
    spread = np.linspace(0, n_sources - 1, min(max_folds, n_sources)).round().astype(int)
    for k in np.unique(spread).tolist():
        others = [other for other in range(n_sources) if other != k]
        if not others:
            return
        known = np.unique(np.concatenate([problem.codes[j] for j in others]))
        rows = np.flatnonzero(np.isin(problem.codes[k], known))
        if len(known) > 1 and len(rows):
            yield k, others, rows


def run_trials(
    members: Sequence[Member],
    problem: Problem,
    *,
    max_folds: int,
    budget: float,
    checkpoint: Any,
    n_jobs: Any,
    verbose: bool,
) -> dict[int, Fold]:
    """Return the answers of all members on each left-out source.

    Rows of a left-out source whose class no other source has are not counted.
    """
    trials = list(left_out_sources(problem, max_folds))
    start = time.monotonic()
    folds: dict[int, Fold] = {}
    with Progress(len(trials), "leaving out sources", verbose) as progress:
        for done, (k, others, rows) in enumerate(trials):
            progress.update(done)
            logs = _trial(members, problem, k, others, checkpoint, n_jobs)
            own = problem.views.rule(OWN, k, others)(problem.views.domains[k])
            folds[k] = Fold(logs[:, rows], problem.codes[k][rows], Z=own[rows])
            if time.monotonic() - start > budget and done + 1 < len(trials):
                warnings.warn(
                    f"the budget of {budget:g} s ended after {done + 1} of {len(trials)} left-out "
                    "sources; the estimate rests on these.",
                    stacklevel=2,
                )
                break
        progress.update(len(trials))
    return folds


def _trial(
    members: Sequence[Member],
    problem: Problem,
    k: int,
    others: list[int],
    checkpoint: Any,
    n_jobs: Any,
) -> Array:
    """Fit the members without a source, or read their answers from an earlier run."""

    def run() -> Array:
        fitted = fit_members(members, problem, k, others, n_jobs)
        return answers(fitted, len(problem.codes[k]), problem.n_classes)

    if checkpoint is None:
        return run()
    names = [member.label for member in members]
    settings = ("trial", k, problem.seed, names, __version__)
    arrays = [*problem.views.domains[:TARGET], *problem.codes]  # the target plays no part
    folder = open_cache_folder(checkpoint)
    probe = ResumeFile(folder / "probe", arrays, settings)
    file = ResumeFile(folder / f"{probe.problem}.trial", arrays, settings)
    saved = file.load(lambda stored: stored["logs"])
    if saved is not None:
        return saved
    logs = run()
    file.save({"logs": logs})
    return logs
