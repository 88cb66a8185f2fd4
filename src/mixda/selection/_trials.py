"""Trials on held-out sources: each source in turn plays the target of the others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from mixda._core.parallel import one_thread
from mixda._core.progress import Progress
from mixda._core.resume import ResumeFile, open_cache_folder
from mixda._core.typing import Array, Codes, PathArgument
from mixda._version import __version__
from mixda.rules import Affine, Chain, Rule, smooth_logs
from mixda.selection._matching import match_moments
from mixda.selection._members import Fitted, Member, Sample
from mixda.selection._pool import SMOOTHING, Fold
from mixda.selection._thinning import thin
from mixda.selection._views import COMMON, OWN, RANKS, TARGET, Views

_MAX_COPIES = 10  # of a labeled target row among the rows of the sources
_HALF_COPIES = 4  # labeled rows of a class, at which each counts for half as many
_LABEL_FOLDS = 3
_FEW_ROWS = 50  # of a target, up to which trials are made with as few
_MAX_COMPARED_ROWS = 300  # without a label, beside those with one


@dataclass(frozen=True, eq=False)
class Labeled:
    """Target rows whose class is known: their positions and classes."""

    rows: Codes
    truth: Codes


@dataclass(frozen=True, eq=False)
class Problem:
    """Sources with integer classes, the target, and all of them in all views.

    Sources and classes are in canonical order, so that the order in which they are given does not
    matter.
    """

    views: Views
    codes: list[Codes]  # of each source
    n_classes: int
    seed: int
    labeled: Labeled | None = None  # rows of the target that teach ordinary members
    shares: Array | None = None  # of the target's classes, if its views are matched to them

    def sample(self, member: Member, domain: int, sources: Sequence[int]) -> Sample:
        """Return what a member is fitted on when these sources teach a domain."""
        parts = [self.encode(member, k, sources) for k in sources]
        codes = [self.codes[k] for k in sources]
        target = self.encode(member, domain, sources)
        if self.labeled is not None and domain == TARGET and self._teaches(member):
            n_copies = self._n_copies(self.labeled.truth)
            parts.append(np.repeat(target[self.labeled.rows], n_copies, axis=0))
            codes.append(np.repeat(self.labeled.truth, n_copies))
        return Sample(
            np.vstack(parts),
            np.concatenate(codes),
            np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
            target,
            self.n_classes,
        )

    def _teaches(self, member: Member) -> bool:
        """Whether labeled target rows teach a member.

        On the common scale, all of a target that has moved looks like the classes that have labels,
        so every class must have one.
        """
        assert self.labeled is not None
        complete = len(np.unique(self.labeled.truth)) == self.n_classes
        return not member.adapts and (complete or member.view != COMMON)

    def _n_copies(self, truth: Codes) -> int:
        """Return how many rows of a source a labeled row counts for.

        The class with the fewest labels decides, because classes with more of them attract rows of
        the others.
        """
        fewest = int(np.bincount(truth, minlength=self.n_classes).min())
        return max(1, round(_MAX_COPIES * fewest / (fewest + _HALF_COPIES)))

    def encode(self, member: Member, domain: int, sources: Sequence[int]) -> Array:
        """Return a domain as a member sees it."""
        return self.rule(member, domain, sources)(self.views.domains[domain])

    def rule(self, member: Member, domain: int, sources: Sequence[int]) -> Rule:
        """Return the map from raw features to what a member sees."""
        match = None
        if self.shares is not None and domain == TARGET and member.view in (OWN, RANKS):
            match = self._match(member.view, sources, self.shares)
        rule = self.views.rule(member.view, domain, sources, match)
        projection = self.views.projections[member.view]
        return rule if member.all_features or projection is None else Chain((rule, projection))

    def usual_shares(self, sources: Sequence[int]) -> Array:
        """Return the mean class proportions of these sources, shape (nc,)."""
        counts = [np.bincount(self.codes[k], minlength=self.n_classes) for k in sources]
        usual: Array = np.mean([count / count.sum() for count in counts], axis=0)
        return usual

    def _match(self, view: str, sources: Sequence[int], shares: Array) -> Affine:
        own = [self.views.own_rule(view, k)(self.views.domains[k]) for k in sources]
        codes = [self.codes[k] for k in sources]
        return match_moments(own, codes, self.usual_shares(sources), shares)


def fit_members(
    members: Sequence[Member],
    problem: Problem,
    domain: int,
    sources: Sequence[int],
    n_jobs: int | None,
) -> list[Fitted | None]:
    """Fit all members to a domain from some sources; None where one cannot be fitted."""
    jobs = (delayed(_fit)(member, problem, domain, sources) for member in members)
    with warnings.catch_warnings():  # the last digits of an optimum change nothing here
        warnings.simplefilter("ignore")
        fitted: list[Fitted | None] = Parallel(n_jobs=n_jobs, prefer="threads")(jobs)
    return fitted


def _fit_and_ask(
    members: Sequence[Member],
    problem: Problem,
    domain: int,
    sources: Sequence[int],
    X: Array,
    n_jobs: int | None,
) -> list[Fitted | None]:
    """Fit all members to a domain, and return what they say about other rows of it."""
    fitted = fit_members(members, problem, domain, sources, n_jobs)
    asked: list[Fitted | None] = []
    for member, model in zip(members, fitted, strict=True):
        if model is not None:
            Z = problem.rule(member, domain, sources)(X)
            model = replace(model, proba=model.rule()(Z))
        asked.append(model)
    return asked


def _fit(member: Member, problem: Problem, domain: int, sources: Sequence[int]) -> Fitted | None:
    try:
        with one_thread(openmp_only=True), warnings.catch_warnings():  # here, because of n_jobs
            warnings.simplefilter("ignore")
            return member.fit(problem.sample(member, domain, sources), problem.seed)
    except (ValueError, np.linalg.LinAlgError):  # too few or constant samples for this member
        return None


def answers(fitted: Sequence[Fitted | None], n: int, n_classes: int) -> Array:
    """Return smoothed log-probabilities of all members, shape (n_members, n, nc).

    A member that could not be fitted says nothing: equal probabilities.
    """
    silent = np.full((n, n_classes), 1.0 / n_classes)
    return np.array(
        [smooth_logs(silent if member is None else member.proba, SMOOTHING) for member in fitted]
    )


def match_members(
    members: Sequence[Member], fitted: Sequence[Fitted | None], problem: Problem
) -> list[Fitted | None]:
    """Return members as they answer in views of the target that are matched to `problem.shares`.

    Ordinary members stay as they are and see the target elsewhere; members that adapt are fitted
    again. On the common scale, nothing changes.

    Parameters
    ----------
    members, fitted
        As they were fitted without matching.
    problem : Problem
    """
    sources = range(len(problem.codes))
    seen: dict[tuple[str, bool], Array] = {}
    matched: list[Fitted | None] = []
    for member, model in zip(members, fitted, strict=True):
        if model is None or member.view not in (OWN, RANKS):
            matched.append(model)
        elif member.adapts:
            matched.append(_fit(member, problem, TARGET, sources))
        else:
            key = member.view, member.all_features
            if key not in seen:
                seen[key] = problem.encode(member, TARGET, sources)
            matched.append(Fitted(model.rule()(seen[key]), model.rule))
    return matched


@dataclass(frozen=True, eq=False)
class Evidence:
    """Answers on target rows of members that were not taught these rows.

    Attributes
    ----------
    known : Fold
        Labeled rows.
    others : ndarray of shape (n_members, n, nc)
        Rows without a label, by the same members.
    """

    known: Fold
    others: Array


Taught = list[tuple[NDArray[np.bool_], list[Fitted | None]]]


def teach_parts(
    members: Sequence[Member], problem: Problem, labeled: Labeled, n_jobs: int | None
) -> Taught:
    """Fit the ordinary members to parts of the labeled target rows.

    Returns
    -------
    list of (ndarray of shape (m,), list of Fitted)
        Which labeled rows were left out, and the members in their order.
    """
    ordinary = [member for member in members if not member.adapts]
    part = np.arange(len(labeled.rows)) % _LABEL_FOLDS
    taught = []
    for fold in np.unique(part):
        rest = part != fold
        few = replace(problem, labeled=Labeled(labeled.rows[rest], labeled.truth[rest]))
        fitted = fit_members(ordinary, few, TARGET, range(len(problem.codes)), n_jobs)
        taught.append((part == fold, fitted))
    return taught


def label_evidence(
    members: Sequence[Member], problem: Problem, labeled: Labeled, taught: Taught, logs: Array
) -> Evidence:
    """Return answers on target rows of members that were not taught these rows.

    Parameters
    ----------
    members : sequence of Member
    problem : Problem
    labeled : Labeled
    taught : see `teach_parts`
    logs : ndarray of shape (n_members, n, nc)
        Answers on all target rows; those of members that adapt use no label and are kept.
    """
    held = logs[:, labeled.rows]
    unknown = np.setdiff1d(np.arange(logs.shape[1]), labeled.rows)
    spread = np.linspace(0, len(unknown) - 1, min(len(unknown), _MAX_COMPARED_ROWS))
    unknown = unknown[spread.round().astype(int)]
    ordinary = np.array([k for k, member in enumerate(members) if not member.adapts], dtype=int)
    others = [logs[:, :0]]
    for out, fitted in taught:
        if problem.shares is not None:
            fitted = match_members([members[k] for k in ordinary], fitted, problem)
        told = answers(fitted, logs.shape[1], problem.n_classes)
        held[np.ix_(ordinary, np.flatnonzero(out))] = told[:, labeled.rows[out]]
        others.append(logs[:, unknown])
        others[-1][ordinary] = told[:, unknown]
    return Evidence(Fold(held, labeled.truth), np.concatenate(others, axis=1))


@dataclass(frozen=True, eq=False)
class Answered:
    """What fitted members say about the target, in the views of a problem.

    Attributes
    ----------
    problem : Problem
    fitted : list of Fitted or None
    logs : ndarray of shape (n_members, n, nc)
    evidence : Evidence
        On labeled target rows.
    """

    problem: Problem
    fitted: list[Fitted | None]
    logs: Array
    evidence: Evidence


def ask(
    members: Sequence[Member],
    fitted: list[Fitted | None],
    problem: Problem,
    labeled: Labeled,
    taught: Taught,
) -> Answered:
    """Ask fitted members about the target, in views matched to `problem.shares` if there are any.

    Parameters
    ----------
    members, fitted
        As they were fitted without matching.
    problem : Problem
    labeled : Labeled
    taught : see `teach_parts`
    """
    if problem.shares is not None:
        fitted = match_members(members, fitted, problem)
    logs = answers(fitted, len(problem.views.domains[TARGET]), problem.n_classes)
    evidence = label_evidence(members, problem, labeled, taught, logs)
    return Answered(problem, fitted, logs, evidence)


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
    n_target: int,
    max_folds: int,
    budget: float,
    checkpoint: PathArgument | None,
    n_jobs: int | None,
    verbose: bool,
) -> dict[int, Fold]:
    """Return the answers of all members on each held-out source.

    Where the target has few rows (`n_target`), the members see as few rows of a held-out source,
    and are asked about all of them. Rows whose class no other source has are not counted.
    """
    trials = list(left_out_sources(problem, max_folds))
    start = time.monotonic()
    n_seen = n_target if n_target <= _FEW_ROWS else None
    folds: dict[int, Fold] = {}
    with Progress(len(trials), "leaving out sources", verbose) as progress:
        for done, (k, others, rows) in enumerate(trials):
            progress.update(done)
            logs = _trial(members, problem, k, others, n_seen, checkpoint, n_jobs)
            own = None
            if n_seen is None:  # too few rows show no clusters
                own = problem.views.rule(OWN, k, others)(problem.views.domains[k])[rows]
            folds[k] = Fold(logs[:, rows], problem.codes[k][rows], Z=own, n_seen=n_seen)
            if time.monotonic() - start > budget and done + 1 < len(trials):
                warnings.warn(
                    f"the budget of {budget:g} s ended after {done + 1} of {len(trials)} held-out "
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
    n_seen: int | None,
    checkpoint: PathArgument | None,
    n_jobs: int | None,
) -> Array:
    """Fit the members without a source, or read their answers from an earlier run."""

    def run() -> Array:
        X = problem.views.domains[k]
        if n_seen is None or n_seen >= len(X):
            fitted = fit_members(members, problem, k, others, n_jobs)
        else:
            views = problem.views.thinned(k, thin(X, None, n_seen, problem.seed))
            fitted = _fit_and_ask(members, replace(problem, views=views), k, others, X, n_jobs)
        return answers(fitted, len(X), problem.n_classes)

    if checkpoint is None:
        return run()
    names = [f"{member.label} {member.content}".strip() for member in members]
    settings = ("trial", k, problem.seed, names, n_seen, __version__)
    arrays = [*problem.views.domains[:TARGET], *problem.codes]  # no row of the target
    folder = open_cache_folder(checkpoint)
    probe = ResumeFile(folder / "probe", arrays, settings)
    file = ResumeFile(folder / f"{probe.problem}.trial", arrays, settings)
    saved = file.load(lambda stored: stored["logs"])
    if saved is not None:
        return saved
    logs = run()
    file.save({"logs": logs})
    return logs
