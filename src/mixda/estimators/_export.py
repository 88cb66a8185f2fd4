"""Turn fitted scikit-learn objects into rules: linear models, small networks, pipelines."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda.estimators._export_trees import boosting_rule, forest_rule
from mixda.rules import Affine, Chain, Linear, OneHot, ReLU, Rule, Softmax, Step


def rule_of(thing: Any, n_classes: int | None = None) -> Rule:
    """Return the rule that computes what a fitted scikit-learn object computes.

    Parameters
    ----------
    thing : transformer, classifier or Pipeline
    n_classes : int, optional
        For a classifier, whose classes are among the codes ``0 … n_classes-1``: the rule returns
        probabilities, or one for the decision of a classifier without probabilities. Without it,
        the rule is that of `transform`.

    Returns
    -------
    Rule

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mixda.estimators._export import rule_of
    >>> rule_of(StandardScaler().fit([[0.0], [2.0]]))(np.array([[4.0]]))
    array([[3.]])
    """
    if hasattr(thing, "_rule"):
        own: Rule = thing._rule()
        return own
    known = _TRANSFORMERS if n_classes is None else _CLASSIFIERS
    from_sklearn = type(thing).__module__.startswith("sklearn.")
    name = type(thing).__name__
    if from_sklearn and name == "Pipeline":
        steps = [step for _, step in thing.steps if step not in (None, "passthrough")]
        first = [rule_of(step) for step in steps[: None if n_classes is None else -1]]
        return Chain((*first, *([] if n_classes is None else [rule_of(steps[-1], n_classes)])))
    if not from_sklearn or name not in known:
        raise MixdaError(
            f"{name} cannot be kept in a model; supported are {', '.join(known)}, and pipelines "
            "of these."
        )
    rule = known[name](thing)
    return rule if n_classes is None else _among(rule, thing.classes_, n_classes)


def hidden_layers(network: Any) -> Chain:
    """Return the activations of the last hidden layer of scikit-learn's network as a rule."""
    steps: list[Rule] = []
    for coef, intercept in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
        steps += [Linear(coef, intercept)] + ([ReLU()] if network.activation == "relu" else [])
    return Chain(tuple(steps))


def _among(rule: Rule, codes: Any, n_classes: int) -> Rule:
    """Give classes that the classifier has not seen a probability of zero."""
    if len(codes) == n_classes:
        return rule
    return Chain((rule, Linear(np.eye(n_classes)[codes], np.zeros(n_classes))))


def _scaler(scaler: Any) -> Rule:
    ones = np.ones(scaler.n_features_in_)
    mean = scaler.mean_ if scaler.with_mean else 0.0 * ones
    return Affine(mean, scaler.scale_ if scaler.with_std else ones)


def _pca(pca: Any) -> Rule:
    axes = pca.components_.T
    if pca.whiten:
        scale = np.sqrt(pca.explained_variance_)
        axes = axes / np.maximum(scale, np.finfo(scale.dtype).eps)  # as PCA itself does
    return Chain((_centering(pca.mean_), _plain(axes)))


def _discriminants(lda: Any) -> Rule:
    axes = _plain(lda.scalings_[:, : lda._max_components])
    return Chain((_centering(lda.xbar_), axes)) if lda.solver == "svd" else axes


def _centering(mean: Array) -> Rule:
    return Affine(mean, np.ones(len(mean)))


def _plain(axes: Array) -> Rule:
    return Linear(axes, np.zeros(axes.shape[1]))


def _scores(coef: Array, intercept: Any) -> Linear:
    """Return linear scores (n, nc); a single row of coefficients separates two classes."""
    coef = np.atleast_2d(coef)
    intercept = np.broadcast_to(intercept, len(coef))
    if len(coef) == 1:
        coef, intercept = np.vstack([0 * coef, coef]), np.append(0.0, intercept)
    return Linear(coef.T, intercept)


def _probabilities(head: Any) -> Rule:
    if getattr(head, "solver", "") == "liblinear" and len(head.classes_) > 2:
        raise MixdaError(
            "LogisticRegression with the solver 'liblinear' and more than two classes cannot be "
            "kept in a model; use its default solver."
        )
    return Chain((_scores(head.coef_, head.intercept_), Softmax()))


def _decisions(head: Any) -> Rule:
    return Chain((_scores(head.coef_, head.intercept_), OneHot()))


def _support_vectors(head: Any) -> Rule:
    """Return one-against-one voting as two linear maps with a step function between them."""
    if head.kernel != "linear" or hasattr(head, "predict_proba"):
        raise MixdaError(
            "SVC can be kept in a model only with kernel='linear' and probability=False, got "
            f"kernel={head.kernel!r}; other kernels keep samples."
        )
    nc = len(head.classes_)
    if nc == 2:
        return _decisions(head)
    first, second = np.array(list(combinations(range(nc), 2))).T
    votes = Linear(np.eye(nc)[first] - np.eye(nc)[second], np.eye(nc)[second].sum(axis=0))
    pairs = Linear(np.asarray(head.coef_).T, np.asarray(head.intercept_))
    return Chain((pairs, Step(), votes, OneHot()))


def _network(head: Any) -> Rule:
    if head.activation not in ("relu", "identity"):
        raise MixdaError(
            f"MLPClassifier with activation={head.activation!r} cannot be kept in a model; "
            "use 'relu' or 'identity'."
        )
    scores = _scores(head.coefs_[-1].T, head.intercepts_[-1])
    return Chain((*hidden_layers(head).steps, scores, Softmax()))


def _constant(head: Any) -> Rule:
    if head.strategy not in ("most_frequent", "prior"):
        raise MixdaError(f"DummyClassifier(strategy={head.strategy!r}) cannot be kept in a model.")
    proba = np.asarray(head.class_prior_, dtype=np.float64)
    if head.strategy == "most_frequent":
        proba = np.eye(len(proba))[proba.argmax()]
    return Linear(np.zeros((head.n_features_in_, len(proba))), proba)


_TRANSFORMERS: dict[str, Callable[[Any], Rule]] = {
    "StandardScaler": _scaler,
    "PCA": _pca,
    "LinearDiscriminantAnalysis": _discriminants,
}
_CLASSIFIERS: dict[str, Callable[[Any], Rule]] = {
    "LogisticRegression": _probabilities,
    "LinearDiscriminantAnalysis": _probabilities,
    "LinearSVC": _decisions,
    "RidgeClassifier": _decisions,
    "SVC": _support_vectors,
    "MLPClassifier": _network,
    "DummyClassifier": _constant,
    "RandomForestClassifier": forest_rule,
    "ExtraTreesClassifier": forest_rule,
    "HistGradientBoostingClassifier": boosting_rule,
}
