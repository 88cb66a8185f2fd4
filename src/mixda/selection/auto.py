"""AutoMSDA: a committee of ordinary classifiers and transport experts, weighted on left-out sources.

What a user would otherwise pick by hand, a classifier and a scaling, is a member of the committee,
and so are experts that adapt. Sources in turn play the target; what the members say there decides
their weights, calibrates the committee and tells how far to trust it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.progress import Progress
from mixda._core.validation import Array, check_choice, check_number, check_positive_int
from mixda.estimators import MultiSourceClassifier
from mixda.estimators.gmm import GMMDaDiL
from mixda.estimators.utils import Source
from mixda.model import AdaptedModel, Trust
from mixda.rules import Pool, Rule
from mixda.selection._estimate import (
    Estimate,
    LeftOut,
    add_labels,
    cross_fit,
    estimate_accuracy,
    temper,
)
from mixda.selection._labels import given_labels, most_informative
from mixda.selection._members import Fitted, Member, candidate_members, make_members
from mixda.selection._pool import SMOOTHING, Fold, combine, fit_weights
from mixda.selection._shares import (
    affordable,
    check_shares,
    fit_log_odds,
    hard_shares,
    resample,
    reweight,
    shares_differ,
    total_variation,
)
from mixda.selection._thinning import canonical_order, thin
from mixda.selection._trials import Problem, answers, fit_members, run_trials
from mixda.selection._verdict import Verdict, confounding, explain
from mixda.selection._views import COMMON, TARGET, make_views
from mixda.selection.proportions import compare_to_sources

Ids = NDArray[np.int64]

_MAX_TRAINING_ROWS = 10_000  # of all sources together in the final fit
_MAX_TRIAL_ROWS = 2_400  # of all sources together in a trial
_MIN_ROWS = 50  # of each source, however many there are
_MIN_WEIGHT = 0.002  # share of the committee's weight below which a member is left out
_MIN_TARGET_ROWS = 5  # below this, no accuracy is estimated
_PRIOR_LABELS = 30.0  # labeled target rows that left-out sources count for
_MAX_CONFOUNDING = 0.8  # of the classes' entropy that the source alone explains
_DISPLAY_STEPS = 10


class AutoMSDA(MultiSourceClassifier):
    r"""Adapt without choosing a method: a committee that is weighted on left-out sources.

    The members are ordinary classifiers (logistic regression, shrinkage LDA, extra trees, boosted
    trees, an RBF kernel machine, a small network) and transport experts (GMM-DaDiL, an LDA whose
    class means follow the target), each in three views: all domains on the scale of the sources,
    each domain on its own scale, each domain by its ranks. They form a log-linear pool

    .. math:: p(y \mid x) \propto \prod_e p_e(y \mid x)^{a_e}, \qquad a_e \ge 0.

    Each source in turn plays the target of the others. The weights minimize the log-loss there,
    shrunk toward equal weights. If the common scale sees class shares in the target that its
    errors on left-out sources do not explain, ordinary classifiers on that scale decide alone: own
    scales and transport would take other shares for a shift. With a single source nothing can be
    left out; all members then have the same weight, and no accuracy is estimated.

    Parameters
    ----------
    candidates : mapping of str to estimator, optional
        `mixda` estimators that replace the transport experts. They see the raw features.
    classifiers : mapping of str to classifier, optional
        Your own scikit-learn classifiers with `predict_proba`. They join the committee in every
        view, and the comparison.
    target_labels : {"ignore", "use"}
        With "use", target rows of `y` that are not missing (None, NaN, an empty string, or -1 if
        that is not a class) update weights and estimate. By default they are never read.
    target_shares : mapping, optional
        What you know about the class shares in the target, as numbers or (low, high) ranges, such
        as ``{"healthy": 0.95}`` or ``{"healthy": (0.9, 1.0)}``.
    max_folds : int
        Most sources that are left out in turn, evenly spread over the ids.
    max_rows : int
        Most rows of each domain in these trials. The final fit uses more.
    budget : float, optional
        Seconds after which no further source is left out; the first always is. A result that a
        budget cut short depends on the machine's speed.
    level : float
        Probability of the interval in `trust_`.
    n_jobs : int, optional
        Threads that fit the members side by side, as in joblib.
    checkpoint : path, optional
        Folder in which the answers on each left-out source are kept. The same fit, started again,
        takes them from there, with the same result.
    random_state : None, int or numpy generator
    verbose : bool
        Show progress.

    Attributes
    ----------
    trust_ : Trust
        Estimated accuracy on the target, its interval, the score of each member on left-out
        sources, and whether and why adaptation was declined.
    weights_ : dict of str to float
        Share of each member in the committee.
    scores_ : dict of str to float
        Mean accuracy of the committee and of each member on left-out sources.
    choice_ : str
        "committee", or "common scale" if only ordinary classifiers on that scale decide.
    rule_ : Rule
        The classifier as a value.
    sources_ : ndarray of shape (N,)
    classes_ : ndarray of shape (nc,)

    Examples
    --------
    >>> from mixda import AutoMSDA
    >>> from mixda.datasets import make_shifted_toy
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> model = AutoMSDA(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model.score(task.X_target, task.y_target) > 0.97
    True
    >>> model.trust_.declined
    False
    """

    encoder = None  # the members have their own
    scale = None

    def __init__(
        self,
        candidates: Mapping[str, Any] | None = None,
        classifiers: Mapping[str, Any] | None = None,
        target_labels: str = "ignore",
        target_shares: Mapping[Any, Any] | None = None,
        max_folds: int = 8,
        max_rows: int = 500,
        budget: float | None = None,
        level: float = 0.8,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.candidates = candidates
        self.classifiers = classifiers
        self.target_labels = target_labels
        self.target_shares = target_shares
        self.max_folds = max_folds
        self.max_rows = max_rows
        self.budget = budget
        self.level = level
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> AutoMSDA:
        """Learn from labeled sources and an unlabeled target; see `MultiSourceClassifier.fit`."""
        check_choice(self.target_labels, "target_labels", ("ignore", "use"))
        self._labels = None
        if self.target_labels == "use":
            self._labels = given_labels(y, sample_domain)
        super().fit(X, y, sample_domain)
        del self._labels
        return self

    def suggest_labels(self, n: int = 20) -> NDArray[np.intp]:
        """Return the target rows whose labels would tell most, most useful first.

        Parameters
        ----------
        n : int

        Returns
        -------
        ndarray of shape (at most n,)
            Positions among the target rows of the fit: rows on which the members disagree, spread
            over the data.

        Examples
        --------
        >>> from mixda import AutoMSDA
        >>> from mixda.datasets import make_shifted_toy
        >>> task = make_shifted_toy(random_state=2).as_task()
        >>> model = AutoMSDA(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
        >>> len(model.suggest_labels(5))
        5
        """
        self._check_adapted()
        return self._suggestions[: check_positive_int(n, "n")]

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        level = check_number(self.level, "level", most=1)
        ranges = check_shares(self.target_shares, self.classes_)
        members = self._members()
        if target is None:
            self._fit_alone(members, sources)
            return
        order = canonical_order(sources)
        labels = self._known_labels()
        problem, rows = self._problem(sources, target, order, labels, _MAX_TRAINING_ROWS, rng)
        folds = self._run_trials(members, sources, target, order, rng)
        everywhere = list(range(len(sources)))
        with Progress(1, "adapting to the target", self.verbose) as progress:
            fitted = fit_members(members, problem, TARGET, everywhere, self.n_jobs)
            progress.update(1)
        logs = answers(fitted, len(rows), len(self.classes_))
        known = np.flatnonzero(labels[rows] >= 0)
        verdict = self._decide(members, list(folds.values()), logs, sources, known, labels[rows])
        log_odds = np.zeros(len(self.classes_))
        pooled = temper(combine(verdict.weights, logs), verdict.power)
        if ranges is not None:
            log_odds = fit_log_odds(pooled, ranges)
            pooled = reweight(pooled, log_odds)
        self._keep(members, fitted, problem, verdict, log_odds)
        self._suggestions = rows[most_informative(logs, verdict.weights, problem.views.scales[TARGET](target[rows]), known)]
        held_out = [self.sources_[order[k]] for k in folds]
        self.trust_ = self._assess(verdict, pooled, level, held_out, sources, labels[rows], known)
        self._show(sources, target, rng)

    def _members(self) -> list[Member]:
        members = make_members(len(self.classes_), self.classifiers)
        if self.candidates is None:
            return members
        ordinary = [member for member in members if not member.adapts]
        return [*ordinary, *candidate_members(self.candidates)]

    def _known_labels(self) -> NDArray[np.intp]:
        """Return the class of each target row, -1 where it is not known."""
        if self._labels is None:
            return np.full(0, -1)
        codes = np.full(len(self._labels), -1)
        places = {str(name): k for k, name in enumerate(self.classes_.tolist())}
        for i, label in enumerate(self._labels):
            if label is not None:
                if str(label) not in places:
                    raise MixdaError(
                        f"a labeled target row has the class {label!r}, but the sources have "
                        f"{', '.join(map(repr, places))}; drop its label or correct it."
                    )
                codes[i] = places[str(label)]
        return codes

    def _problem(
        self,
        sources: list[Source],
        target: Array,
        order: Sequence[int],
        labels: NDArray[np.intp],
        max_rows: int,
        rng: np.random.Generator,
    ) -> tuple[Problem, NDArray[np.intp]]:
        """Return the domains, thinned and in canonical order, and the target rows that are used."""
        each = max(_MIN_ROWS, max_rows // len(sources))
        parts = []
        for k in order:
            X, codes = sources[k]
            rows = thin(X, codes, each, rng)
            parts.append((X[rows], codes[rows]))
        rows = thin(target, None, each, rng)
        if len(labels):
            rows = np.union1d(rows, np.flatnonzero(labels >= 0))
        views = make_views([X for X, _ in parts], target[rows], self._seed)
        codes = [codes for _, codes in parts]
        return Problem(views, codes, len(self.classes_), self._seed), rows

    def _run_trials(
        self,
        members: list[Member],
        sources: list[Source],
        target: Array,
        order: Sequence[int],
        rng: np.random.Generator,
    ) -> dict[int, Fold]:
        most = check_positive_int(self.max_rows, "max_rows") * len(sources)
        no_labels = np.full(0, -1)
        few, _ = self._problem(
            sources, target, order, no_labels, min(most, _MAX_TRIAL_ROWS), rng
        )
        budget = np.inf
        if self.budget is not None:
            budget = check_number(self.budget, "budget", above=True)
        return run_trials(
            members,
            few,
            max_folds=check_positive_int(self.max_folds, "max_folds"),
            budget=budget,
            checkpoint=self.checkpoint,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _decide(
        self,
        members: list[Member],
        folds: list[Fold],
        logs: Array,
        sources: list[Source],
        known: NDArray[np.intp],
        labels: NDArray[np.intp],
    ) -> Verdict:
        """Weigh the members, and let the common scale decide alone where class shares differ."""
        common = [k for k, m in enumerate(members) if m.view == COMMON and not m.adapts]
        usual = np.mean([np.bincount(c, minlength=len(self.classes_)) / len(c) for _, c in sources], axis=0)
        if not folds:
            return self._decide_without_trials(members, common, sources, logs)
        labeled = []
        if len(known):
            share = len(known) / (len(known) + _PRIOR_LABELS)
            weight = share / (1.0 - share) * len(folds)
            labeled = [Fold(logs[:, known], labels[known], weight)]
        rng = np.random.default_rng(self._seed)
        own = [fold.take(common) for fold in folds]
        skewed = []
        for fold in own:
            rows = resample(fold.truth, rng)
            skewed.append(Fold(fold.logs[:, rows], fold.truth[rows]))
        own_weights = fit_weights([*own, *skewed, *(fold.take(common) for fold in labeled)])
        differ = shares_differ(own_weights, own, logs[common], usual)
        judged, own_judged = cross_fit(folds), cross_fit(own)
        if differ and affordable(own_judged.accuracy, judged.accuracy):
            weights = np.zeros(len(members))
            weights[common] = own_weights
            difference = total_variation(hard_shares(combine(own_weights, logs[common])), usual)
            return Verdict(weights, own_judged, folds, shares_differ=True, difference=difference)
        weights = fit_weights([*folds, *labeled])
        return Verdict(weights, judged, folds)

    def _decide_without_trials(
        self, members: list[Member], common: list[int], sources: list[Source], logs: Array
    ) -> Verdict:
        """One source, or none that can be left out: equal weights, and no estimate."""
        weights = np.full(len(members), 1.0 / len(members))
        target = self._raw_target
        rng = np.random.default_rng(self._seed)
        from mixda.selection._views import standardization

        scale = standardization(np.vstack([X for X, _ in sources]))
        moved = compare_to_sources(
            [(scale(X), codes) for X, codes in sources], scale(target), len(self.classes_), rng
        )
        if moved.only_proportions:
            weights = np.zeros(len(members))
            weights[common] = 1.0 / len(common)
        return Verdict(weights, None, [], shares_differ=moved.only_proportions, difference=moved.skew)
