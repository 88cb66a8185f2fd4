"""The members of the committee: ordinary classifiers and transport experts, each in a view.

A member is fitted on labeled sources, and on the unlabeled target if it adapts. It gives
probabilities of all classes and, at the end, a rule that a file can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from mixda._core.errors import MixdaError
from mixda._core.typing import Array, Codes
from mixda.estimators import GMMDaDiL, MultiSourceClassifier, rule_of
from mixda.estimators.encoders import seeded
from mixda.mixture import MIN_COMPONENT_ROWS, Mixture
from mixda.rules import Chain, Fourier, Linear, Posterior, Rule
from mixda.selection._views import RAW, VIEWS

_MAX_CLASSES_TO_BOOST = 12  # one tree per class and iteration
_MEAN_STRENGTH = 30.0  # target samples that the sources' mean of a class counts for
_SHARE_STRENGTH = 0.1  # of the target's samples, that equal shares of the classes count for
_EM_STEPS = 15
_MIN_VARIANCE = 0.5  # of the whitened classes, whose variance is 1 in the sources
_DICTIONARY_STEPS = 10


@dataclass(frozen=True)
class Sample:
    """What a member is fitted on, in one view: labeled sources, and the target without labels."""

    X: Array
    codes: Codes
    domain: NDArray[np.int64]
    target: Array
    n_classes: int


@dataclass(frozen=True)
class Fitted:
    """A fitted member: probabilities of the target's rows, and how to make its rule."""

    proba: Array
    rule: Callable[[], Rule]


@dataclass(frozen=True)
class Member:
    """One member: its name, its view, whether it adapts, and how it is fitted."""

    name: str
    view: str
    adapts: bool
    fit: Callable[[Sample, int], Fitted]
    all_features: bool = False  # of the view, instead of its principal components
    content: str = ""  # tells members of the same label apart

    @property
    def label(self) -> str:
        """Name and view, as users see them."""
        return f"{self.name}, {self.view}"


class OrthogonalFourier(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Random Fourier features with orthogonal frequencies, for a Gaussian kernel.

    .. math:: k(x, x') = \exp\Bigl(-\gamma \, \frac{\|x - x'\|^2}{\sum_j \sigma_j^2}\Bigr)

    With orthogonal frequencies, a few hundred are nearly as good as the kernel itself in hundreds
    of dimensions, where independent ones are far worse [1]_.

    References
    ----------
    .. [1] F. X. Yu et al., "Orthogonal random features", NeurIPS 2016.
    """

    def __init__(
        self, n_frequencies: int = 500, gamma: float = 0.4, random_state: int | None = None
    ) -> None:
        self.n_frequencies = n_frequencies
        self.gamma = gamma
        self.random_state = random_state

    def fit(self, X: Array, y: Any = None) -> OrthogonalFourier:
        """Draw the frequencies for samples of this dimension and spread."""
        d, rng = X.shape[1], np.random.default_rng(self.random_state)
        blocks = []
        for _ in range(-(-self.n_frequencies // d)):
            axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
            blocks.append(axes * np.sqrt(rng.chisquare(d, d)))
        scale = np.sqrt(2.0 * self.gamma / max(float(X.var(axis=0).sum()), 1e-12))
        self.frequencies_ = np.hstack(blocks)[:, : self.n_frequencies] * scale
        return self

    def transform(self, X: Array) -> Array:
        """Return cosines and sines, shape (n, 2 n_frequencies)."""
        return self._rule()(X)

    def _rule(self) -> Rule:
        return Fourier(self.frequencies_)


def _logistic(n: int) -> Any:
    return LogisticRegression(C=1.0, max_iter=200, tol=1e-3)


def _discriminant(n: int) -> Any:
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _extra_trees(n: int) -> Any:
    return ExtraTreesClassifier(100, min_samples_leaf=2, max_leaf_nodes=400)


def _boosted_trees(n: int) -> Any:
    return HistGradientBoostingClassifier(
        max_iter=30,
        learning_rate=0.2,
        max_leaf_nodes=8,
        min_samples_leaf=10,
        max_bins=64,
        early_stopping=False,
    )


def _kernel_machine(n: int) -> Any:
    return make_pipeline(OrthogonalFourier(), LogisticRegression(C=20.0, max_iter=100, tol=1e-3))


def _network(n: int) -> Any:
    return MLPClassifier(
        (64,),
        alpha=1.0,
        batch_size=min(100, n),
        learning_rate_init=3e-3,
        max_iter=int(np.clip(30_000 // n, 5, 40)),
    )


ORDINARY: Mapping[str, Callable[[int], Any]] = {
    "logistic regression": _logistic,
    "shrinkage LDA": _discriminant,
    "extra trees": _extra_trees,
    "boosted trees": _boosted_trees,
    "RBF kernel": _kernel_machine,
    "small network": _network,
}
SELF_TRAINED_NAME = "self-trained LDA"
_ALL_FEATURES = ("extra trees",)
_ALL_UNLESS_LARGE = ("logistic regression", "small network")
_MAX_NUMBERS = 4_000_000  # rows × features; of larger samples these see principal components


def make_members(
    classes: NDArray[Any], own: Mapping[str, Any] | None = None, n_numbers: int = 0
) -> list[Member]:
    """Return all members, those of the user's own classifiers included.

    Parameters
    ----------
    classes : ndarray of shape (nc,)
        Names of the classes, in the order of the codes.
    own : mapping of str to classifier, optional
        Any scikit-learn classifiers with `predict_proba`.
    n_numbers : int
        Rows × features of the largest fit.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._members import make_members
    >>> members = make_members(np.array(["ok", "worn", "broken"]))
    >>> len(members), sum(member.adapts for member in members)
    (24, 6)
    """
    recipes = {
        name: _ordinary(make)
        for name, make in ORDINARY.items()
        if make is not _boosted_trees or len(classes) <= _MAX_CLASSES_TO_BOOST
    }
    own = check_classifiers(own)
    recipes |= {name: _own(name, classifier, classes) for name, classifier in own.items()}
    wide = _ALL_FEATURES if n_numbers > _MAX_NUMBERS else (*_ALL_FEATURES, *_ALL_UNLESS_LARGE)
    members = []
    for view in VIEWS:
        for name, fit in recipes.items():
            content = content_of(own[name]) if name in own else ""
            members.append(Member(name, view, False, fit, name in wide, content))
        members += [Member(name, view, True, fit) for name, fit in ADAPTING.items()]
    return members


def check_classifiers(own: Any) -> Mapping[str, Any]:
    """Return the user's own classifiers by name."""
    if own is None:
        return {}
    if not isinstance(own, Mapping):
        raise MixdaError(f"classifiers must be a mapping of names to classifiers, got {own!r}.")
    for name, classifier in own.items():
        is_classifier = hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")
        if isinstance(classifier, type) or not is_classifier:
            raise MixdaError(
                f"classifiers[{name!r}] must be a scikit-learn classifier with predict_proba, got "
                f"{classifier!r}."
            )
        if name in (*ORDINARY, *ADAPTING, SELF_TRAINED_NAME):
            raise MixdaError(f"classifiers: {name!r} is a member already; choose another name.")
    return own


def content_of(estimator: Any) -> str:
    """Return what tells an estimator from others with the same name."""
    try:
        return str(joblib.hash(estimator))
    except Exception:  # it holds something that cannot be pickled
        return repr(estimator)


def candidate_members(candidates: Any) -> list[Member]:
    """Return the user's own `mixda` estimators as members that adapt, on the raw features."""
    named = dict(candidates) if isinstance(candidates, Mapping) else {}
    if not named or not all(isinstance(m, MultiSourceClassifier) for m in named.values()):
        raise MixdaError(
            "candidates must be a non-empty mapping of names to mixda estimators, got "
            f"{candidates!r}."
        )
    return [
        Member(name, RAW, True, partial(_fit_candidate, m), True, content_of(m))
        for name, m in named.items()
    ]


def _fit_candidate(estimator: MultiSourceClassifier, sample: Sample, seed: int) -> Fitted:
    model = fit_on(seeded(estimator, seed), sample)
    proba = np.zeros((len(sample.target), sample.n_classes))
    proba[:, model.classes_] = model.predict_proba(sample.target)

    def rule() -> Rule:
        try:
            value: Rule = model.to_model().rule
        except MixdaError:  # only a file needs a rule
            value = InMemory(model)
        if len(model.classes_) == sample.n_classes:
            return value
        spread = np.eye(sample.n_classes)[model.classes_]
        return Chain((value, Linear(spread, np.zeros(sample.n_classes))))

    return Fitted(proba, rule)


def fit_on(estimator: Any, sample: Sample) -> Any:
    """Fit a `mixda` estimator on sources and target."""
    codes = np.concatenate([sample.codes, np.full(len(sample.target), -1)])
    domain = np.concatenate([sample.domain, np.full(len(sample.target), -1)])
    return estimator.fit(np.vstack([sample.X, sample.target]), codes, sample_domain=domain)


def without_rare_classes(domain: NDArray[Any], codes: Codes) -> NDArray[np.bool_]:
    """Return which rows to keep so that mixtures of a file average several rows of each class.

    Classes of fewer than five rows in a domain are left out of it, unless that leaves a domain
    without rows or no domain with the class.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.selection._members import without_rare_classes
    >>> domain, codes = np.repeat([0, 1], [8, 12]), np.repeat([0, 1, 0, 1], [7, 1, 6, 6])
    >>> np.flatnonzero(~without_rare_classes(domain, codes))
    array([7])
    """
    kept = np.ones(len(codes), dtype=bool)
    for k in np.unique(domain):
        own = domain == k
        common = np.flatnonzero(np.bincount(codes[own]) >= MIN_COMPONENT_ROWS)
        if len(common):
            kept[own] = np.isin(codes[own], common)
    return kept | ~np.isin(codes, codes[kept])


def _ordinary(make: Callable[[int], Any]) -> Callable[[Sample, int], Fitted]:
    def fit(sample: Sample, seed: int) -> Fitted:
        model = seeded(make(len(sample.X)), seed)
        X, target = sample.X, sample.target
        model.fit(X, sample.codes)
        proba = np.zeros((len(target), sample.n_classes))
        proba[:, model.classes_] = model.predict_proba(target)
        return Fitted(proba, cache(lambda: rule_of(model, sample.n_classes)))

    return fit


@dataclass(frozen=True, eq=False)
class InMemory(Rule):
    """A user's classifier that no file can hold: it predicts, but the model cannot be saved."""

    model: Any

    def __call__(self, X: Array) -> Array:
        proba: Array = self.model.predict_proba(X)
        return proba


def _own(name: str, classifier: Any, classes: NDArray[Any]) -> Callable[[Sample, int], Fitted]:
    """Return how to fit a user's classifier, which sees the names of the classes.

    Parameters
    ----------
    name : str
    classifier : scikit-learn classifier
    classes : ndarray of shape (nc,)
        Names of the classes, in the order of the codes.
    """
    order = np.argsort(classes)

    def fit(sample: Sample, seed: int) -> Fitted:
        model = seeded(classifier, seed)
        try:
            model.fit(sample.X, classes[sample.codes])
            known = model.predict_proba(sample.target)
        except (ValueError, np.linalg.LinAlgError):  # the committee says that it has no say
            raise
        except Exception as error:
            raise RuntimeError(f"classifiers[{name!r}] could not be fitted: {error}") from error
        if not np.isfinite(known).all():
            raise ValueError(f"classifiers[{name!r}] predicts NaN.")
        spread = np.eye(sample.n_classes)[order[np.searchsorted(classes[order], model.classes_)]]

        def rule() -> Rule:
            return Chain((_rule_or_model(model), Linear(spread, np.zeros(sample.n_classes))))

        return Fitted(known @ spread, cache(rule))

    return fit


def _rule_or_model(model: Any) -> Rule:
    try:
        return rule_of(model, len(model.classes_))
    except MixdaError:
        return InMemory(model)


def in_memory(rule: Rule) -> Any:
    """Return the classifier that keeps a rule from being saved, None if there is none."""
    if isinstance(rule, InMemory):
        return rule.model
    found = (in_memory(step) for step in getattr(rule, "steps", ()))
    return next((model for model in found if model is not None), None)


def _fit_adapted_lda(sample: Sample, seed: int) -> Fitted:
    r"""Gaussian classes in the space of discriminants whose means follow the target.

    Expectation-maximization on the target's samples, with the sources' means
    :math:`m_k^S` as prior: :math:`m_k = (\sum_i r_{ik} x_i + c \, m_k^S) / (\sum_i r_{ik} + c)`.
    """
    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    S = lda.fit(sample.X, sample.codes).transform(sample.X)
    present, codes = np.unique(sample.codes, return_inverse=True)
    d = S.shape[1]
    start = np.array([S[codes == k].mean(axis=0) for k in range(len(present))])
    residuals = S - start[codes]
    within = residuals.T @ residuals / len(residuals) + 1e-6 * np.eye(d)
    within = 0.9 * within + 0.1 * np.eye(d) * np.trace(within) / d
    whiten = np.linalg.cholesky(np.linalg.inv(within))
    axes = lda.scalings_[:, :d] @ whiten
    T, start = sample.target @ axes, start @ whiten
    means, variance = start, 1.0
    shares = np.full(len(present), 1.0 / len(present))
    for _ in range(_EM_STEPS):
        distances = ((T[:, None] - means) ** 2).sum(axis=2)
        r = softmax(np.log(shares) - 0.5 * distances / variance, axis=1)
        mass = r.sum(axis=0)
        means = (r.T @ T + _MEAN_STRENGTH * start) / (mass + _MEAN_STRENGTH)[:, None]
        shares = mass + _SHARE_STRENGTH * len(T)
        shares = shares / shares.sum()
        distances = ((T[:, None] - means) ** 2).sum(axis=2)
        variance = max(_MIN_VARIANCE, float((r * distances).sum()) / (len(T) * d))
    labels = np.zeros((len(present), sample.n_classes))
    labels[np.arange(len(present)), present] = 1.0
    stds = np.full(means.shape, np.sqrt(variance))
    posterior = Posterior(Mixture(shares, means, stds, labels))
    return _of_rule(Chain((Linear(axes, np.zeros(d)), posterior)), sample.target)


def _fit_dictionary(sample: Sample, seed: int) -> Fitted:
    model = GMMDaDiL(
        encoder="lda",
        scale=None,
        classifier="map",
        n_iter=_DICTIONARY_STEPS,
        min_component_rows=MIN_COMPONENT_ROWS,  # because model files hold this mixture
        random_state=seed,
        preset="paper",
    )
    kept = without_rare_classes(sample.domain, sample.codes)
    common = replace(sample, X=sample.X[kept], codes=sample.codes[kept], domain=sample.domain[kept])
    mixture = fit_on(model, common).target_mixture_
    labels = np.zeros((mixture.n_components, sample.n_classes))
    labels[:, np.asarray(mixture.classes)] = mixture.labels
    decide = Posterior(Mixture(mixture.weights, mixture.means, mixture.stds, labels))
    encode = model.encoder_.rule()
    return _of_rule(decide if encode is None else Chain((encode, decide)), sample.target)


def _of_rule(rule: Rule, target: Array) -> Fitted:
    return Fitted(rule(target), lambda: rule)


ADAPTING: Mapping[str, Callable[[Sample, int], Fitted]] = {
    "adapted LDA": _fit_adapted_lda,
    "GMM-DaDiL": _fit_dictionary,
}
