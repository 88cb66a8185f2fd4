"""AutoMSDA: adapt in several spaces at once, keep what helps on left-out sources, say how sure.

A candidate is a committee of estimators. Every source in turn plays the target; the candidate with
the best mean accuracy there is taken, and the sources' own classifier is always one of them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from mixda._progress import Progress
from mixda._validation import Array, check_number, check_positive_int
from mixda.estimators._base import MultiSourceClassifier, Source
from mixda.estimators._encoders import MLPEncoder
from mixda.estimators._mixtures import DOUBT, vote
from mixda.estimators.baselines import SourceOnly
from mixda.estimators.gmm import GMMDaDiL
from mixda.model import AdaptedModel
from mixda.rules import Chain, Doubt, Rule, Softmax
from mixda.selection.scores import Ids, PseudoTask, pseudo_tasks
from mixda.selection.trust import Fold, Trust, estimate_accuracy, fit_power, interval

SOURCE_ONLY = "source only"

Problem = tuple[Array, Ids, Ids]  # samples, classes as integers (-1: masked), ids of domains
Committees = dict[str, tuple[str, ...]]  # a candidate's name and the names of its experts

_SPACES = ("features", "discriminants", "network")
_SCALES = {"sources": "common scale", "domain": "own scale"}
_STEPS = 20  # of every dictionary; 50 gave no better averages
_MOST_FEATURES = 200  # more are reduced to principal components


class AutoMSDA(MultiSourceClassifier):
    r"""Adapt without choosing a method: several candidates, judged on left-out sources.

    Six experts are fitted: in three spaces (standardised features, linear discriminants, a small
    network) with two kinds of standardisation (by all sources; every domain by itself),

    .. math:: p_e(y \mid x) \propto p_S(y \mid \phi_e(x)) \; p_T(y \mid \phi_e(x)),

    the product of the sources' classifier and of GMM-DaDiL's mixture of the target. Candidates are
    the committees :math:`p(y \mid x) \propto \prod_e p_e(y \mid x)` of all six, of the three that
    share one scale, of the three where every domain has its own, and the sources' classifier
    alone (on the features, standardised by all sources). Every source in turn is the target of the others; the candidate with the best mean
    accuracy there is taken, and the sources' classifier unless another is better or as good.
    Probabilities are tempered to be right on the left-out sources, and `trust_` estimates the
    accuracy on the target.

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
        Mean accuracy of each candidate on the left-out sources.
    experts_ : dict of str to estimator
        Fitted to the target.
    members_ : tuple of str
        The experts of the candidate that was taken.
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
        max_folds: int = 3,
        max_rows: int = 1000,
        budget: float | None = None,
        level: float = 0.8,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.candidates = candidates
        self.max_folds = max_folds
        self.max_rows = max_rows
        self.budget = budget
        self.level = level
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit_domains(
        self, sources: list[Source], target: Array | None, rng: np.random.Generator
    ) -> None:
        level = check_number(self.level, "level", most=1)
        experts = self._experts(sources)
        problem = _stack(sources, target)
        if target is None:
            self._keep({SOURCE_ONLY: experts[SOURCE_ONLY]}, (SOURCE_ONLY,), problem, 1.0)
            return
        committees = self._committees(experts)
        folds = self._trials(experts, committees, _thin(problem, self.max_rows, rng))
        self.scores_ = {
            name: float(np.mean([fold[name].accuracy for fold in folds.values()]))
            for name in committees
        }
        self.choice_ = max(committees, key=lambda name: self.scores_[name])
        chosen = {held: fold[self.choice_] for held, fold in folds.items()}
        power = fit_power(list(chosen.values()))
        self._keep(experts, committees[self.choice_], problem, power)
        members = [self.experts_[name] for name in self.members_]
        votes = np.searchsorted(self.classes_, [expert.predict(target) for expert in members])
        tempered = {held: fold.to_the(power) for held, fold in chosen.items()}
        self.trust_ = self._assess(tempered, Fold(self.rule_(target), votes), level)

    def _experts(self, sources: list[Source]) -> dict[str, Any]:
        """Return the estimators to fit; the sources' own classifier is the first."""
        experts: dict[str, Any] = {SOURCE_ONLY: SourceOnly(scale="sources")}
        if self.candidates is not None:
            return experts | _check_candidates(self.candidates)
        n, d = sum(len(Z) for Z, _ in sources), sources[0][0].shape[1]
        for scale, space in product(_SCALES, _SPACES):
            experts[f"{space}, {_SCALES[scale]}"] = GMMDaDiL(
                scale=scale,
                encoder=_encoder(space, n, d, self._seed),
                classifier="product",
                n_iter=_STEPS,
            )
        return experts

    def _committees(self, experts: dict[str, Any]) -> Committees:
        """Return the members of each candidate; the first wins among equals, source only last."""
        adapted = tuple(name for name in experts if name != SOURCE_ONLY)
        committees = {"all together": adapted}
        if self.candidates is None:
            for words in _SCALES.values():
                committees[words] = tuple(name for name in adapted if name.endswith(words))
        elif len(adapted) > 1:
            committees |= {name: (name,) for name in adapted}
        return committees | {SOURCE_ONLY: (SOURCE_ONLY,)}

    def _trials(
        self, experts: dict[str, Any], committees: Committees, problem: Problem
    ) -> dict[int, dict[str, Fold]]:
        """Let sources in turn be the target and return what every candidate says about them."""
        X, codes, ids = problem
        sources = np.unique(ids[ids >= 0])
        if len(sources) == 1:
            return {int(sources[0]): self._way_back(experts, committees, problem)}
        budget = np.inf
        if self.budget is not None:
            budget = check_number(self.budget, "budget", above=True)
        held_out = _spread(sources, check_positive_int(self.max_folds, "max_folds"))
        start, folds = time.monotonic(), {}
        with Progress(len(held_out), "leaving sources out", self.verbose) as progress:
            for task in pseudo_tasks(X, codes, ids, held_out):
                fitted = self._fit_experts(experts, task[:3])
                folds[task.held_out] = {
                    name: _fold([fitted[member] for member in members], task, len(self.classes_))
                    for name, members in committees.items()
                }
                progress.update(len(folds))
                if time.monotonic() - start > budget:
                    break
        return folds

    def _way_back(
        self, experts: dict[str, Any], committees: Committees, problem: Problem
    ) -> dict[str, Fold]:
        """With a single source: adapt back to it from what each candidate says of the target."""
        X, codes, ids = problem
        target = ids < 0
        fitted = self._fit_experts(experts, problem)
        folds = {}
        for name, members in committees.items():
            there = _proba([fitted[member] for member in members], X[target], len(self.classes_))
            labels = np.where(target, 0, -1)
            labels[target] = there.argmax(axis=1)
            task = PseudoTask(X, labels, np.where(target, 0, -1), 0, codes[~target])
            back: list[Any] = []  # stays empty, a committee without an opinion, if all is one class
            if len(np.unique(labels[target])) > 1:
                back = [_fit(experts[member], self._seed, *task[:3]) for member in members]
            folds[name] = _fold(back, task, len(self.classes_))
        return folds

    def _keep(
        self, experts: dict[str, Any], members: tuple[str, ...], problem: Problem, power: float
    ) -> None:
        """Fit to the target, now with the names of the classes, and make the committee's rule."""
        X, codes, ids = problem
        self.experts_ = self._fit_experts(experts, (X, self.classes_[codes], ids))
        self.members_ = members
        self.rule_ = vote([_rule_of(self.experts_[name]) for name in members], power)

    def _fit_experts(self, experts: dict[str, Any], problem: Problem) -> dict[str, Any]:
        jobs = (delayed(_fit)(expert, self._seed, *problem) for expert in experts.values())
        return dict(zip(experts, Parallel(n_jobs=self.n_jobs)(jobs), strict=True))

    def _assess(self, folds: dict[int, Fold], target: Fold, level: float) -> Trust:
        accuracy = low = high = None
        if len(self.sources_) > 1:
            accuracy = estimate_accuracy(list(folds.values()), target)
            low, high = interval(accuracy, level)
        return Trust(
            accuracy,
            low,
            high,
            level,
            declined=self.choice_ == SOURCE_ONLY,
            reason=self._reason(),
            candidates=tuple(
                {"name": name, "score": score, "chosen": name == self.choice_}
                for name, score in self.scores_.items()
            ),
            folds={str(self.sources_[held]): fold.accuracy for held, fold in folds.items()},
        )

    def _reason(self) -> str:
        best, alone = self.scores_[self.choice_], self.scores_[SOURCE_ONLY]
        where = "on left-out sources"
        if len(self.sources_) == 1:
            where = "on the way back to the only source"
        if self.choice_ == SOURCE_ONLY:
            rival = max(score for name, score in self.scores_.items() if name != SOURCE_ONLY)
            return (
                f"Adaptation was declined: {where} the sources' own classifier was right on "
                f"{alone:.1%}, the best adapted one on {rival:.1%}."
            )
        return (
            f"Adapted ({self.choice_}): {where} it was right on {best:.1%}, the sources' own "
            f"classifier on {alone:.1%}."
        )

    def _predict_encoded(self, Z: Array) -> Array:
        return self.rule_(Z)

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
        check_is_fitted(self)
        model = self.experts_[self.members_[0]].to_model(domain_names)
        names = getattr(self, "feature_names_in_", model.feature_names)
        return replace(
            model,
            feature_names=tuple(names),
            method=type(self).__name__,
            rule=self.rule_,
            trust=self.trust_.to_json(),
            settings=self._settings(),
        )


def _check_candidates(candidates: Any) -> dict[str, Any]:
    named = dict(candidates) if isinstance(candidates, Mapping) else {}
    if not named or not all(hasattr(model, "_rule") for model in named.values()):
        raise ValueError(
            "candidates must be a non-empty mapping of names to mixda estimators, got "
            f"{candidates!r}."
        )
    if SOURCE_ONLY in named:
        raise ValueError(f"the candidate {SOURCE_ONLY!r} is always there; give it another name.")
    return named


def _encoder(space: str, n: int, d: int, seed: int) -> Any:
    steps: list[Any] = []
    if d > _MOST_FEATURES:
        size = min(_MOST_FEATURES, n - 1)
        steps.append(PCA(size, svd_solver="randomized", random_state=seed))
    if space == "discriminants":
        steps.append(LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"))
    elif space == "network":
        steps.append(MLPEncoder((64,), max_iter=40, random_state=seed))
    return make_pipeline(*steps) if steps else None


def _stack(sources: list[Source], target: Array | None) -> Problem:
    samples = [Z for Z, _ in sources]
    codes = [codes for _, codes in sources]
    ids = [np.full(len(Z), k) for k, Z in enumerate(samples)]
    if target is not None:
        samples, codes = [*samples, target], [*codes, np.full(len(target), -1)]
        ids.append(np.full(len(target), -1))
    return np.vstack(samples), np.concatenate(codes), np.concatenate(ids)


def _thin(problem: Problem, max_rows: int, rng: np.random.Generator) -> Problem:
    """At most `max_rows` of every domain, at random, in their order."""
    X, codes, ids = problem
    check_positive_int(max_rows, "max_rows")
    kept = []
    for k in np.unique(ids):
        rows = np.flatnonzero(ids == k)
        kept.append(rng.choice(rows, max_rows, replace=False) if len(rows) > max_rows else rows)
    rows = np.sort(np.concatenate(kept))
    return X[rows], codes[rows], ids[rows]


def _spread(ids: Ids, most: int) -> Ids:
    chosen: Ids = ids[np.unique(np.linspace(0, len(ids) - 1, most).round().astype(int))]
    return chosen


def _fit(expert: Any, seed: int, X: Array, y: Any, ids: Ids) -> Any:
    model = clone(expert)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=seed)
    return model.fit(X, y, sample_domain=ids)


def _rule_of(expert: Any) -> Rule:
    encoder = expert.encoder_.rule()
    head: Rule = expert._rule()
    return head if encoder is None else Chain((encoder, head))


def _fold(members: Sequence[Any], task: PseudoTask, n_classes: int) -> Fold:
    X = task.X_target
    votes = np.array([expert.predict(X) for expert in members]).reshape(len(members), len(X))
    return Fold(_proba(members, X, n_classes), votes, task.truth)


def _proba(members: Sequence[Any], X: Array, n_classes: int) -> Array:
    """Probabilities of the committee over all classes, also those that no member was taught."""
    logs = np.zeros((len(X), n_classes))
    for expert in members:
        proba = np.zeros((len(X), n_classes))
        proba[:, expert.classes_] = expert.predict_proba(X)
        logs += np.log(Doubt(DOUBT)(proba))
    return Softmax()(logs)
