"""AutoMSDA: ordinary classifiers and transport experts, weighted on held-out sources.

What a user would otherwise pick by hand, a classifier and a scaling, is a member of the committee,
and so are experts that adapt. Sources in turn play the target; what the members say there decides
their weights, calibrates the committee and tells how far to trust it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.order import canonical_order
from mixda._core.parallel import one_thread
from mixda._core.progress import Progress
from mixda._core.typing import Array, Codes, Ids, PathArgument, Source
from mixda._core.validation import (
    check_choice,
    check_n_jobs,
    check_number,
    check_positive_int,
)
from mixda.estimators import CanonicalOrder, MultiSourceClassifier, standardization
from mixda.estimators.utils import is_large
from mixda.model import AdaptedModel, default_names
from mixda.rules import Rule
from mixda.selection._committee import assemble, assess, make_pools, settle
from mixda.selection._display import fit_display
from mixda.selection._doubts import doubts
from mixda.selection._labels import encode_target_labels, given_labels, most_informative
from mixda.selection._members import (
    Fitted,
    Member,
    candidate_members,
    in_memory,
    make_members,
)
from mixda.selection._pool import Fold
from mixda.selection._shares import Ranges, check_shares
from mixda.selection._thinning import thin
from mixda.selection._trials import (
    Answered,
    Labeled,
    Problem,
    answers,
    ask,
    fit_members,
    match_members,
    run_trials,
    teach_parts,
)
from mixda.selection._verdict import (
    COMMITTEE,
    Verdict,
    decide,
    decide_without_trials,
    ordinary_members,
)
from mixda.selection._views import TARGET, make_views
from mixda.selection.proportions import ShiftDiagnosis, diagnose_shift

_MAX_TRAINING_ROWS = 10_000  # of all sources together in the final fit
_MAX_TRIAL_ROWS = 2_400  # of all sources together in a trial
_MIN_ROWS = 50  # of each source, however many there are
_PRIOR_LABELS = 30.0  # labeled target rows that all held-out sources count for
_MAX_DIAGNOSED_ROWS = 500  # of each domain, to tell a shift from other class proportions


class AutoMSDA(MultiSourceClassifier):
    r"""Adapt without choosing a method: a committee that is weighted on held-out sources.

    The members are ordinary classifiers (logistic regression, shrinkage LDA, extra trees, boosted
    trees, an RBF kernel machine, a small network) and transport experts (GMM-DaDiL, an LDA whose
    class means follow the target), each in three views: all domains on the scale of the sources,
    each domain on its own scale, each domain by its ranks. They form a log-linear pool

    .. math:: p(y \mid x) \propto \prod_e p_e(y \mid x)^{a_e}, \qquad a_e \ge 0.

    Each source in turn plays the target of the others, reduced to as many rows as the target has if
    these are 50 or fewer. The weights minimize the log-loss there, shrunk toward equal weights. A
    self-trained LDA of the target joins them with a power that is learned on held-out sources, too.

    Where the class proportions of the target clearly differ from those of the sources, own scales
    and ranks of the target are matched to them, log-odds are shifted to them, and ordinary
    classifiers get more weight, because transport would take other proportions for a shift. If you
    do not give the proportions, they are estimated on the common scale. The more their difference
    exceeds the largest error of such an estimate on a held-out source and the sampling error of as
    many rows, the more they are believed, but only if the views then agree clearly more. With a
    single source nothing can be held out; all members then have the same weight, and no accuracy is
    estimated.

    Parameters
    ----------
    candidates : mapping of str to estimator, optional
        `mixda` estimators that replace the transport experts. They see the raw features.
    classifiers : mapping of str to classifier, optional
        Your own scikit-learn classifiers with `predict_proba`. They join the committee in every
        view, and the comparison.
    target_labels : {"ignore", "use"}
        With "use", target rows of `y` that are not missing (None, NaN, an empty string, or -1 if
        that is not a class) teach the ordinary members and update weights and estimate. By default
        they are never read.
    target_shares : mapping, optional
        What you know about the class proportions in the target, as numbers or (low, high) ranges,
        such as ``{"healthy": 0.95}`` or ``{"healthy": (0.9, 1.0)}``.
    max_folds : int
        Most sources that are left out in turn, evenly spread.
    max_rows : int
        Most rows of each domain in these trials, at least 50, and 2,400 of all sources together.
        The final fit uses more.
    budget : float, optional
        Seconds after which no further source is left out; the first always is. A result that a
        budget cut short depends on the machine's speed.
    level : float
        Probability of the interval in `trust_`.
    n_jobs : int, optional
        Threads that fit the members side by side, as in joblib.
    checkpoint : path, optional
        Folder in which the answers on each held-out source are kept. The same fit, started again,
        takes them from there, with the same result. Delete the folder when you no longer need it.
    random_state : None, int or numpy generator
    verbose : bool
        Show progress.

    Attributes
    ----------
    trust_ : Trust
        Estimated accuracy on the target, its interval, the score of each member on held-out
        sources, and whether and why adaptation was declined.
    weights_ : dict of str to float
        Share of each member in the committee.
    scores_ : dict of str to float
        Mean accuracy of the committee and of each member on held-out sources; empty if none could
        be left out.
    choice_ : str
        "committee", or "matched committee" if scales are matched to other class proportions. These
        four are not there after a fit without a target.
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
        checkpoint: PathArgument | None = None,
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

    def fit(self, X: Any, y: Any = None, sample_domain: Any = None, **options: Any) -> AutoMSDA:
        """Learn from labeled sources and an unlabeled target.

        Parameters
        ----------
        X, y, sample_domain : see `MultiSourceClassifier.fit`
            Target rows of `y` are read only if `target_labels` is "use".
        **options
            Rejected.

        Returns
        -------
        self
        """
        check_choice(self.target_labels, "target_labels", ("ignore", "use"))
        use = self.target_labels == "use" and y is not None
        if self.target_labels == "use" and (is_large(X) or not use):
            raise MixdaError(
                "target_labels='use' needs y as an array; data of any size have no target labels."
            )
        self._labels = given_labels(y, sample_domain) if use else []
        super().fit(X, y, sample_domain, **options)
        return self

    def suggest_labels(self, n: int = 20) -> NDArray[np.intp]:
        """Return the target rows whose labels would tell most, most useful first.

        Parameters
        ----------
        n : int
            At most 200 rows are returned.

        Returns
        -------
        ndarray of shape (m,), m at most n
            Positions among the target rows of the fit that have no label. The members disagree on
            these rows, and they are spread over the data.

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
        if self.n_jobs is not None:
            check_n_jobs(self.n_jobs)
        ranges = check_shares(self.target_shares, self.classes_)
        n_rows = min(_MAX_TRAINING_ROWS, sum(len(codes) for _, codes in sources))
        n_numbers = n_rows * sources[0][0].shape[1]
        order = CanonicalOrder.of_samples(sources, len(self.classes_))
        members = make_members(self.classes_[order.classes], self.classifiers, n_numbers)
        if self.candidates is not None:
            own = candidate_members(self.candidates)
            members = [*(member for member in members if not member.adapts), *own]
        self._order, self._class_order = order.sources.tolist(), order.classes
        sources = order.sorted_samples(sources)
        if target is None:
            self._fit_without_target(members[0], sources)
            return
        labels = encode_target_labels(self._labels or [None] * len(target), self.classes_)
        labels = np.where(labels < 0, -1, order.ranks[labels])
        if ranges is not None:
            ranges = ranges[0][order.classes], ranges[1][order.classes]
        with one_thread():
            self._fit_committee(members, order, sources, target, labels, ranges, level)
        self._fit_display(sources, target)

    def _fit_committee(
        self,
        members: list[Member],
        order: CanonicalOrder,
        sources: list[Source],
        target: Array,
        labels: Codes,
        ranges: Ranges | None,
        level: float,
    ) -> None:
        """Weigh the members on held-out sources, fit them to the target, and pool them."""
        problem, rows = self._problem(sources, target, labels, _MAX_TRAINING_ROWS)
        used = {k: len(codes) for k, codes in zip(self._order, problem.codes, strict=True)}
        self._rows_used = [*(used[k] for k in range(len(sources))), len(rows)]
        known = np.flatnonzero(labels[rows] >= 0)
        labeled = Labeled(known, labels[rows][known])
        if len(known):
            problem = replace(problem, labeled=labeled)
        folds = self._run_trials(members, sources, target)
        with Progress(1, "adapting to the target", self.verbose) as progress:
            fitted = self._fit_members(members, problem)
            taught = teach_parts(members, problem, labeled, self.n_jobs)
            told = ask(members, fitted, problem, labeled, taught)
            progress.update(1)
        verdict = self._decide(members, folds, told, ranges)
        if verdict.shares is not None:
            matched = replace(problem, shares=verdict.shares)
            again = ask(members, fitted, matched, labeled, taught)
            verdict, told = settle(members, told, verdict, again)
        committee = assemble(members, told, verdict, ranges, order.classes)
        self._pools, self.weights_ = committee.pools, committee.weights
        self.choice_, self.rule_ = verdict.choice, committee.pools[TARGET]
        unknown = np.setdiff1d(np.arange(len(rows)), known)
        scaled_target = problem.views.scales[TARGET](target[rows[unknown]])
        self._suggestions = rows[unknown][
            most_informative(told.logs[:, unknown], verdict.weights, scaled_target)
        ]
        held_out = [str(self.sources_[self._order[k]]) for k in folds]
        reasons = doubts(verdict, len(rows), problem.views.scaled()[:TARGET], problem.codes)
        self.trust_ = assess(committee, verdict, members, held_out, told.evidence, reasons, level)
        self.scores_ = {
            str(c["name"]): c["score"] for c in self.trust_.candidates if c["score"] is not None
        }
        if verdict.left_out is not None:  # by this name whoever decides
            self.scores_ = {COMMITTEE: verdict.left_out.accuracy, **self.scores_}

    def _fit_without_target(self, member: Member, sources: list[Source]) -> None:
        """Train a logistic regression on all rows: there is nothing to adapt to."""
        pooled = np.vstack([X for X, _ in sources])
        problem, _ = self._problem(sources, pooled, np.full(0, -1), len(pooled))
        fitted = self._fit_members([member], problem)
        rules = [model.rule() for model in fitted if model is not None]
        log_odds = np.zeros(problem.n_classes)
        self._pools = make_pools([member], rules, problem, np.ones(1), log_odds, self._class_order)
        self.rule_ = self._pools[TARGET]

    def _problem(
        self, sources: list[Source], target: Array, labels: Codes, max_rows: int
    ) -> tuple[Problem, NDArray[np.intp]]:
        """Return thinned domains in canonical order, and the target rows that are used."""
        each = max(_MIN_ROWS, max_rows // len(sources))
        kept = [thin(*source, each, self._seed) for source in sources]
        parts = [(X[rows], codes[rows]) for (X, codes), rows in zip(sources, kept, strict=True)]
        rows = thin(target, None, each, self._seed)
        labeled = np.flatnonzero(labels >= 0)
        rows = np.concatenate([rows, labeled[~np.isin(labeled, rows)]])
        if len(labeled):
            rows = rows[canonical_order(target[rows], labels[rows])]
        views = make_views([X for X, _ in parts], target[rows], self._seed)
        return Problem(views, [c for _, c in parts], len(self.classes_), self._seed), rows

    def _run_trials(
        self, members: list[Member], sources: list[Source], target: Array
    ) -> dict[int, Fold]:
        most = check_positive_int(self.max_rows, "max_rows") * len(sources)
        few, _ = self._problem(sources, target, np.full(0, -1), min(most, _MAX_TRIAL_ROWS))
        self._trial_rows = sum(len(codes) for codes in few.codes)
        budget = np.inf
        if self.budget is not None:
            budget = check_number(self.budget, "budget", above=True)
        return run_trials(
            members,
            few,
            n_target=len(target),
            max_folds=check_positive_int(self.max_folds, "max_folds"),
            budget=budget,
            checkpoint=self.checkpoint,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _fit_members(self, members: Sequence[Member], problem: Problem) -> list[Fitted | None]:
        everywhere = range(len(problem.codes))
        fitted = fit_members(members, problem, TARGET, everywhere, self.n_jobs)
        if all(member is None for member in fitted):
            raise MixdaError(
                "no classifier could be fitted to the sources; check that features vary and that "
                "each class has more than one row."
            )
        return fitted

    def _decide(
        self,
        members: list[Member],
        folds: dict[int, Fold],
        told: Answered,
        ranges: Ranges | None,
    ) -> Verdict:
        problem, labeled = told.problem, told.evidence.known
        usual = problem.usual_shares(range(len(problem.codes)))
        if not folds:
            evidence = [labeled] if len(labeled.truth) else []
            only_proportions = self._diagnose(problem).only_proportions
            return decide_without_trials(
                members, told.logs, usual, only_proportions, evidence, ranges
            )
        weight = len(labeled.truth) / _PRIOR_LABELS * len(folds)
        evidence = [replace(labeled, weight=weight)] if weight > 0 else []
        ordinary = ordinary_members(members)
        few = [members[k] for k in ordinary], [told.fitted[k] for k in ordinary]

        def answer(shares: Array) -> Array:
            """Ask ordinary members in views matched to these shares."""
            matched = match_members(*few, replace(problem, shares=shares))
            return answers(matched, told.logs.shape[1], problem.n_classes)

        return decide(members, list(folds.values()), told.logs, usual, answer, evidence, ranges)

    def _diagnose(self, problem: Problem) -> ShiftDiagnosis:
        """Compare the target with the sources on the common scale, on a few rows of each."""
        *domains, target = problem.views.domains
        sources = zip(domains, problem.codes, strict=True)
        kept = [(X, codes, thin(X, codes, _MAX_DIAGNOSED_ROWS, self._seed)) for X, codes in sources]
        few = [(X[rows], codes[rows]) for X, codes, rows in kept]
        scale = standardization(np.vstack([X for X, _ in few]))
        return diagnose_shift(
            [(scale(X), codes) for X, codes in few],
            scale(target[thin(target, None, _MAX_DIAGNOSED_ROWS, self._seed)]),
            problem.n_classes,
            np.random.default_rng(self._seed),
        )

    def _fit_display(self, sources: list[Source], target: Array) -> None:
        """Fit the mixtures that a model keeps for its report and for outliers."""
        given_order = [sources[self._order.index(k)] for k in range(len(sources))]
        problem, _ = self._problem(given_order, target, np.full(0, -1), _MAX_TRIAL_ROWS)
        streamed = self._large is not None and self._large.is_thinned
        self.display_ = fit_display(
            problem,
            self.classes_[self._class_order],
            self._large if streamed else None,
            checkpoint=self.checkpoint,
            random_state=self._seed,
            verbose=self.verbose,
        )
        self._streamed = streamed
        self.source_mixtures_ = self.display_.source_mixtures_
        self.unlabeled_mixture_ = self.display_.unlabeled_mixture_

    def _predict_encoded(self, Z: Array) -> Array:
        return self.rule_(Z)

    def _predict(self, X: Array, ids: Ids) -> Array:
        """Return the probabilities; rows of known sources keep their own scale and ranks."""
        proba = np.empty((len(X), len(self.classes_)))
        for domain in np.unique(np.maximum(ids, -1)):
            rows = np.maximum(ids, -1) == domain
            place = np.flatnonzero(self.sources_ == domain)
            pool = self._order.index(int(place[0])) if len(place) else TARGET
            proba[rows] = self._pools[pool](X[rows])
        return proba

    def _rule(self) -> Rule:
        return self.rule_

    def save(
        self,
        path: str | Path,
        domain_names: Sequence[str] | None = None,
        allow_exposed_rows: bool = False,
    ) -> None:
        """Write `to_model` to `path` (customarily ``.mixda``), atomically.

        Your own `classifiers` can be saved if they are linear models, forests, boosted trees or
        small networks of scikit-learn, or pipelines of these.

        Parameters
        ----------
        path : path
        domain_names : see `to_model`
        allow_exposed_rows : see `AdaptedModel.save`
        """
        self._check_adapted()
        for model in map(in_memory, self.rule_.members):
            if model is not None:
                raise MixdaError(
                    f"{type(model).__name__} (classifiers, candidates) cannot be kept in a file, "
                    "which holds formulas of a few kinds only and no samples; use the fitted "
                    "AutoMSDA itself, or leave this classifier out."
                )
        super().save(path, domain_names, allow_exposed_rows)

    def to_model(self, domain_names: Sequence[str] | None = None) -> AdaptedModel:
        """Return the committee as a value that can be saved.

        The mixtures in it, which a report shows and which tell outliers, are those of a single
        GMM-DaDiL on standardized features.

        Parameters
        ----------
        domain_names : see `MultiSourceClassifier.to_model`

        Returns
        -------
        AdaptedModel
        """
        self._check_adapted()
        shown: AdaptedModel = self.display_.to_model()
        *sources, target = self._domains(domain_names)
        names = getattr(self, "feature_names_in_", default_names(self.n_features_in_))
        return replace(
            shown,
            feature_names=tuple(names),
            classes=self.classes_,
            method=type(self).__name__,
            rule=self.rule_,
            sources=tuple(sources),
            target=target,
            trust=self.trust_,
            imputer=getattr(self, "imputer_", None),
            settings={
                **self._settings(),
                "trial_rows": self._trial_rows,
                "experts": list(self.weights_),
            },
        )
