"""AutoMSDA: adapt in several spaces at once, keep what helps on left-out sources, say how sure.

A candidate is a committee of estimators. Sources in turn play the target; the largest
committee is taken unless another candidate, as the sources' own classifier, does clearly better.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.progress import Progress
from mixda._core.validation import Array, check_number, check_positive_int
from mixda.estimators import SMOOTHING, MultiSourceClassifier, log_linear_pool
from mixda.estimators.baselines import SourceOnly
from mixda.estimators.encoders import DomainEncoder
from mixda.estimators.utils import Source
from mixda.model import AdaptedModel, default_names
from mixda.rules import Chain, Rule, Smooth, Softmax
from mixda.selection._experts import (
    RAW,
    SCALES,
    Expert,
    Problem,
    experts_of,
    fit_expert,
    reduction,
    stack,
)
from mixda.selection.proportions import compare_to_sources
from mixda.selection.scores import Ids, pseudo_tasks, reversed_roles
from mixda.selection.trust import (
    SOURCE_ONLY,
    Fold,
    Trust,
    estimate_accuracy,
    explain_choice,
    explain_shares,
    fit_power,
    interval,
)

Committees = dict[str, tuple[str, ...]]  # a candidate's name and the names of its experts

_CLEARLY = 0.02  # better on left-out sources, in mean accuracy


class AutoMSDA(MultiSourceClassifier):
    r"""Adapt without choosing a method: several candidates, judged on left-out sources.

    Six experts are fitted: in three spaces (standardized features, linear discriminants, a small
    network) with two kinds of standardization (by all sources; every domain by itself),

    .. math:: p_e(y \mid x) \propto p_S(y \mid \phi_e(x)) \; p_T(y \mid \phi_e(x)),

    the product of the sources' classifier and of GMM-DaDiL's mixture of the target. Candidates are
    the committees :math:`p(y \mid x) \propto \prod_e p_e(y \mid x)` of all six, of the three with a
    common scale and of the three with an own scale, and the sources' classifier alone (on the
    features, standardized by all sources). Some sources (`max_folds`) are in turn the target of the
    others, and the first of these candidates is taken unless another has a clearly better mean
    accuracy there (by two points). If that is the sources' classifier, adaptation is declined; so
    it is where the target is like the sources but for the proportions of its classes. Probabilities
    are tempered to be right on the left-out sources, and `trust_` estimates the accuracy on the
    target. Where no source can be left out (there is one only, or no other has its classes),
    candidates are judged by adapting back to the sources from their answers on the target, and no
    accuracy is estimated.

    Parameters
    ----------
    candidates : mapping of str to estimator, optional
        Instead of the six experts: `mixda` estimators by name. Candidates are then each of them,
        all together, and the sources' classifier.
    max_folds : int
        Most sources that are left out in turn, evenly spread over the ids.
    max_rows : int
        Most samples of each domain in these trials, drawn at random.
    budget : float, optional
        Seconds after which no further source is left out; the first always is. A result that a
        budget cut short depends on the machine's speed.
    level : float
        Probability of the interval in `trust_`.
    n_jobs : int, optional
        Processes that fit the experts side by side, as in joblib.
    checkpoint : path, optional
        Folder in which a fit keeps every mixture that took it more than a moment. The same fit,
        started again, takes them from there, with the same result. Delete the folder when you no
        longer need it.
    random_state : None, int or numpy generator
    verbose : bool
        Show progress, if on a terminal.

    Attributes
    ----------
    trust_ : Trust
        Estimated accuracy on the target, its interval, the scores of all candidates, and whether
        and why adaptation was declined.
    choice_ : str
        The candidate that was taken.
    scores_ : dict of str to float
        Mean accuracy of each candidate on the left-out sources, or on the way back to the sources
        where none can be left out. These three are not there after a fit without a target.
    experts_ : dict of str to estimator
        The members of that candidate, fitted to the target.
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
    >>> model.score(task.X_target, task.y_target) > 0.99
    True
    >>> model.trust_.declined
    False
    """

    encoder = None  # the experts have their own
    scale = None

    def __init__(
        self,
        candidates: Mapping[str, Any] | None = None,
        max_folds: int = 2,
        max_rows: int = 500,
        budget: float | None = None,
        level: float = 0.8,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.candidates = candidates
        self.max_folds = max_folds
        self.max_rows = max_rows
        self.budget = budget
        self.level = level
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        level = check_number(self.level, "level", most=1)
        problem = stack(sources, target)
        experts = {SOURCE_ONLY: Expert(RAW, SourceOnly(scale="sources"))}
        self._encoders: dict[str, DomainEncoder] = {RAW: DomainEncoder(None, None)}
        if target is None:
            self._keep(experts, (SOURCE_ONLY,), problem, 1.0)
            return
        experts |= self._more_experts(problem)
        some = problem.rows(self._some(problem.ids, rng))
        only_proportions = self._only_proportions(some, rng)
        if only_proportions:
            experts = {SOURCE_ONLY: experts[SOURCE_ONLY]}
        committees = self._committees(experts)
        folds = self._trials(experts, committees, some)
        left_out = bool(folds)
        if not left_out:
            folds = {-1: self._way_back(experts, committees, some)}
        self.scores_ = {
            name: float(np.mean([fold[name].accuracy for fold in folds.values()]))
            for name in committees
        }
        self.choice_ = self._choose(committees)
        chosen = {held: fold[self.choice_] for held, fold in folds.items()}
        power = fit_power(list(chosen.values()))
        voters = self._keep(experts, committees[self.choice_], problem, power)
        votes = np.array([rule(target).argmax(axis=1) for rule in voters])
        tempered = {held: fold.to_the(power) for held, fold in chosen.items()}
        reason = explain_choice(self.scores_, self.choice_, left_out, only_proportions)
        answer = Fold(self.rule_(target), votes)
        if self.choice_ != SOURCE_ONLY:
            alone = self._alone(experts[SOURCE_ONLY], some)
            shares = explain_shares(self.classes_.tolist(), answer.proba.argmax(axis=1), alone)
            reason = f"{reason} {shares}".strip()
        self.trust_ = self._assess(tempered, answer, left_out, level, reason)

    def _more_experts(self, problem: Problem) -> dict[str, Expert]:
        """Return the experts that adapt, and add their views to the problem.

        Views are made once and without labels, so no trial learns from a label it must not see.
        """
        if self.candidates is not None:
            named = _check_candidates(self.candidates)
            return {name: Expert(RAW, named[name]) for name in named}
        X, is_source = problem.views[RAW], problem.ids >= 0
        n = int(is_source.sum())
        experts: dict[str, Expert] = {}
        for scale, view in SCALES.items():
            encoder = DomainEncoder(scale, reduction(n, X.shape[1], self._seed), self._seed)
            problem.views[view] = encoder.fit_transform(X, problem.codes[is_source], problem.ids)
            self._encoders[view] = encoder
            experts |= experts_of(view, n, self._seed)
        return experts

    def _only_proportions(self, problem: Problem, rng: np.random.Generator) -> bool:
        """Return whether the target is like the sources but for the shares of its classes."""
        if self.candidates is not None:
            return False
        Z, ids = problem.views[SCALES["sources"]], problem.ids
        sources = [(Z[ids == k], problem.codes[ids == k]) for k in np.unique(ids[ids >= 0])]
        likeness = compare_to_sources(sources, Z[ids < 0], len(self.classes_), rng)
        return likeness.only_proportions

    def _committees(self, experts: dict[str, Expert]) -> Committees:
        """Return the members of each candidate; the first wins among equals, source only last."""
        adapted = tuple(name for name in experts if name != SOURCE_ONLY)
        if not adapted:
            return {SOURCE_ONLY: (SOURCE_ONLY,)}
        committees = {"all together": adapted}
        if self.candidates is None:
            for view in SCALES.values():
                committees[view] = tuple(name for name in adapted if experts[name].view == view)
        elif len(adapted) > 1:
            committees |= {name: (name,) for name in adapted}
        return committees | {SOURCE_ONLY: (SOURCE_ONLY,)}

    def _choose(self, committees: Committees) -> str:
        """Return the candidate to take: the largest committee unless another is clearly better.

        Few left-out sources say little about small differences, and on all sets that we have the
        largest committee was the safest choice.
        """
        habit = next(iter(committees))
        best = max(committees, key=lambda name: self.scores_[name])
        return best if self.scores_[best] > self.scores_[habit] + _CLEARLY else habit

    def _some(self, ids: Ids, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return at most `max_rows` rows of every domain, at random, in their order."""
        most = check_positive_int(self.max_rows, "max_rows")
        rows = [np.flatnonzero(ids == k) for k in np.unique(ids)]
        kept = [rng.choice(r, most, replace=False) if len(r) > most else r for r in rows]
        return np.sort(np.concatenate(kept))

    def _trials(
        self, experts: dict[str, Expert], committees: Committees, problem: Problem
    ) -> dict[int, dict[str, Fold]]:
        """Let sources in turn be the target and return what every candidate says about them.

        Nothing is returned where no source can be left out: there is one only, or what the others
        know does not occur in it.
        """
        budget = np.inf
        if self.budget is not None:
            budget = check_number(self.budget, "budget", above=True)
        most = check_positive_int(self.max_folds, "max_folds")
        sources = np.unique(problem.ids[problem.ids >= 0])
        if len(sources) == 1:
            return {}
        held_out = sources[np.unique(np.linspace(0, len(sources) - 1, most).round().astype(int))]
        start = time.monotonic()
        folds: dict[int, dict[str, Fold]] = {}
        rows = np.arange(len(problem.ids))[:, None]
        for task in pseudo_tasks(rows, problem.codes, problem.ids, held_out):
            part = problem.rows(task.X[:, 0].astype(int))
            part = part._replace(codes=task.codes, ids=task.sample_domain)
            what = f"leaving out source {self.sources_[task.held_out]}"
            fitted = self._fit_experts(experts, part, what)
            if not folds:  # what cannot be kept as a value is refused now, not at the end
                self._voters(experts, fitted)
            folds[task.held_out] = {
                name: self._fold(experts, fitted, members, part, task.truth)
                for name, members in committees.items()
            }
            if time.monotonic() - start > budget:
                break
        return folds

    def _alone(self, expert: Expert, problem: Problem) -> NDArray[np.intp]:
        """Return what the sources' own classifier says about the target."""
        own = {SOURCE_ONLY: expert}
        fitted = self._fit_experts(own, problem, "comparing")
        votes: NDArray[np.intp] = self._fold(own, fitted, (SOURCE_ONLY,), problem).votes[0]
        return votes

    def _way_back(
        self, experts: dict[str, Expert], committees: Committees, problem: Problem
    ) -> dict[str, Fold]:
        """Adapt back to the sources from what each candidate says of the target."""
        truth = problem.codes[problem.ids >= 0]
        there = self._fit_experts(experts, problem, "going to the target")
        folds = {}
        for name, members in committees.items():
            answers = self._fold(experts, there, members, problem).proba.argmax(axis=1)
            codes, ids = reversed_roles(answers, problem.ids)
            back = problem._replace(codes=codes, ids=ids)
            own = {member: experts[member] for member in members}
            fitted = self._fit_experts(own, back, f"coming back, {name}")
            folds[name] = self._fold(experts, fitted, members, back, truth)
        return folds

    def _fold(
        self,
        experts: dict[str, Expert],
        fitted: dict[str, Any],
        members: tuple[str, ...],
        problem: Problem,
        truth: Ids | None = None,
    ) -> Fold:
        """Return what a committee says about the target rows, over all classes."""
        target = problem.ids < 0
        proba = np.zeros((len(members), int(target.sum()), len(self.classes_)))
        for part, name in zip(proba, members, strict=True):
            Z = problem.views[experts[name].view][target]
            part[:, fitted[name].classes_] = fitted[name].predict_proba(Z)
        logs = np.log(Smooth(SMOOTHING)(proba.reshape(-1, proba.shape[2]))).reshape(proba.shape)
        return Fold(Softmax()(logs.sum(axis=0)), proba.argmax(axis=2), truth)

    def _keep(
        self, experts: dict[str, Expert], members: tuple[str, ...], problem: Problem, power: float
    ) -> list[Rule]:
        """Fit to the target, with the classes' own names; return the rules of the committee."""
        named = problem._replace(codes=self.classes_[problem.codes])
        own = {name: experts[name] for name in members}
        self.experts_ = self._fit_experts(own, named, "adapting")
        self._views, self._power = [experts[name].view for name in members], power
        voters = self._voters(own, self.experts_)
        self.rule_ = log_linear_pool(voters, power)
        return voters

    def _voters(self, experts: dict[str, Expert], fitted: dict[str, Any]) -> list[Rule]:
        voters: list[Rule] = []
        for name, model in fitted.items():
            if isinstance(model, MultiSourceClassifier):  # no constant
                view = self._encoders[experts[name].view]
                steps = (view.rule(), model.encoder_.rule(), model._rule())
                voters.append(Chain(tuple(step for step in steps if step is not None)))
        return voters

    def _fit_experts(
        self, experts: dict[str, Expert], problem: Problem, what: str
    ) -> dict[str, Any]:
        same = {"random_state": self._seed, "checkpoint": self.checkpoint}
        with Progress(len(experts), what, self.verbose) as progress:

            def jobs() -> Iterator[Any]:
                for done, (name, expert) in enumerate(experts.items()):
                    progress.update(done, name)
                    Z = problem.views[expert.view]
                    yield delayed(fit_expert)(expert, same, Z, problem.codes, problem.ids)

            fitted = Parallel(n_jobs=self.n_jobs)(jobs())
            progress.update(len(experts))
        return dict(zip(experts, fitted, strict=True))

    def _assess(
        self, folds: dict[int, Fold], target: Fold, left_out: bool, level: float, reason: str
    ) -> Trust:
        accuracy = low = high = None
        if left_out:
            accuracy = estimate_accuracy(list(folds.values()), target)
            low, high = interval(accuracy, level, len(target.proba))
        return Trust(
            accuracy,
            low,
            high,
            level,
            declined=self.choice_ == SOURCE_ONLY,
            reason=reason,
            candidates=tuple(
                {"name": name, "score": score, "chosen": name == self.choice_}
                for name, score in self.scores_.items()
            ),
            folds={
                str(self.sources_[held]): fold.accuracy for held, fold in folds.items() if left_out
            },
        )

    def _predict_encoded(self, Z: Array) -> Array:
        return self.rule_(Z)

    def _predict(self, X: Array, ids: Ids) -> Array:
        """Return the probabilities; rows of sources have their own scale in the views."""
        if (ids < 0).all():
            return self.rule_(X)
        places = np.full(len(ids), len(self.sources_))  # where a source that is unknown stands
        for place, source in enumerate(self.sources_):
            places[ids == source] = place
        places[ids < 0] = -1
        logs = np.zeros((len(X), len(self.classes_)))
        for view, model in zip(self._views, self.experts_.values(), strict=True):
            Z = self._encoders[view].transform(X, places)
            logs += np.log(Smooth(SMOOTHING)(model.predict_proba(Z, sample_domain=places)))
        return Softmax()(self._power * logs)

    def to_model(self, domain_names: Sequence[str] | None = None) -> AdaptedModel:
        """Return the committee as a value that can be saved.

        The mixtures in it, which a report shows, are those of the committee's first expert.

        Parameters
        ----------
        domain_names : see `MultiSourceClassifier.to_model`

        Returns
        -------
        AdaptedModel
        """
        self._check_adapted()
        model: AdaptedModel = next(iter(self.experts_.values())).to_model(domain_names)
        names = getattr(self, "feature_names_in_", default_names(self.n_features_in_))
        view = self._encoders[self._views[0]].rule()
        encoders = [rule for rule in (view, model.encoder) if rule is not None]
        return replace(
            model,
            feature_names=tuple(names),
            method=type(self).__name__,
            rule=self.rule_,
            encoder=Chain(tuple(encoders)) if encoders else None,
            trust=self.trust_,
            imputer=getattr(self, "imputer_", None),
            settings={**self._settings(), "experts": list(self.experts_)},
        )


def _check_candidates(candidates: Any) -> dict[str, Any]:
    named = dict(candidates) if isinstance(candidates, Mapping) else {}
    if not named or not all(isinstance(m, MultiSourceClassifier) for m in named.values()):
        raise MixdaError(
            "candidates must be a non-empty mapping of names to mixda estimators, got "
            f"{candidates!r}."
        )
    if SOURCE_ONLY in named:
        raise MixdaError(f"the candidate {SOURCE_ONLY!r} is always there; give it another name.")
    return named
