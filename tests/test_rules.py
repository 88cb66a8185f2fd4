"""Rules compute what the things they stand for compute, and survive being taken apart."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from mixda import MixdaError, Mixture
from mixda._core.archive import pack, unpack
from mixda.estimators import MLPEncoder
from mixda.estimators._export import rule_of
from mixda.estimators.utils import head_proba
from mixda.rules import (
    RULES,
    Affine,
    Average,
    Chain,
    Clip,
    Fourier,
    Interpolate,
    Linear,
    Normalize,
    OneHot,
    Pool,
    Posterior,
    Product,
    ReLU,
    Reweight,
    Sigmoid,
    Smooth,
    Softmax,
    Step,
    Trees,
)

KINDS = (*RULES, Mixture)

rng = np.random.default_rng(0)
CODES = {2: rng.integers(0, 2, 90), 4: rng.integers(0, 4, 90)}
X = {nc: rng.normal(size=(90, 5)) + 1.5 * codes[:, None] for nc, codes in CODES.items()}
NEW = 3.0 * rng.normal(size=(200, 5)) + 2.0

TRANSFORMERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    PCA(2),
    PCA(3, whiten=True),
    LinearDiscriminantAnalysis(solver="svd"),
    LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
    MLPEncoder((7, 4), max_iter=20, random_state=0),
    make_pipeline(StandardScaler(), "passthrough", PCA(2)),
]
HEADS = [
    LogisticRegression(),
    LogisticRegression(solver="newton-cg"),
    LinearDiscriminantAnalysis(),
    LinearSVC(),
    RidgeClassifier(),
    SVC(kernel="linear"),
    MLPClassifier((6,), max_iter=20, random_state=0),
    MLPClassifier((6, 3), activation="identity", max_iter=20, random_state=0),
    DummyClassifier(strategy="most_frequent"),
    DummyClassifier(strategy="prior"),
    make_pipeline(StandardScaler(), PCA(3), LogisticRegression()),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("thing", TRANSFORMERS, ids=repr)
def test_transformers(thing):
    thing.fit(X[4], CODES[4])
    np.testing.assert_allclose(rule_of(thing)(NEW), thing.transform(NEW), atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("head", HEADS, ids=repr)
def test_classifiers(head, n_classes):
    head.fit(X[n_classes], CODES[n_classes])
    found = rule_of(head, n_classes)(NEW)
    np.testing.assert_allclose(found, head_proba(head, NEW, n_classes), atol=1e-12)


def test_unseen_classes():
    head = LogisticRegression().fit(X[2], 2 * CODES[2] + 1)  # codes 1 and 3
    proba = rule_of(head, 5)(NEW)
    np.testing.assert_allclose(proba[:, [1, 3]], head.predict_proba(NEW), atol=1e-15)
    assert not proba[:, [0, 2, 4]].any()


@pytest.mark.parametrize(
    ("thing", "n_classes", "sentence"),
    [
        (GaussianNB(), 2, "GaussianNB cannot be kept in a model.*LogisticRegression"),
        (GaussianNB(), None, "GaussianNB cannot be kept in a model.*StandardScaler"),
        (SVC(kernel="rbf"), 2, "kernel='rbf'"),
        (MLPClassifier(activation="tanh", max_iter=1), 2, "activation='tanh'"),
        (DummyClassifier(strategy="uniform"), 2, "strategy='uniform'"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_unsupported(thing, n_classes, sentence):
    with pytest.raises(MixdaError, match=sentence):
        rule_of(thing.fit(X[2], CODES[2]), n_classes)


def test_own_class_with_a_known_name():
    class PCA:
        pass

    with pytest.raises(MixdaError, match="PCA cannot be kept"):
        rule_of(PCA())


def test_combinations():
    p, q = Softmax(), Reweight(np.zeros(3), power=0.5)
    scores = rng.normal(size=(7, 3))
    proba = p(scores)
    np.testing.assert_allclose(proba, np.exp(scores) / np.exp(scores).sum(1, keepdims=True))
    powered = proba**0.5 / (proba**0.5).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(q(proba), powered)
    average = Average(np.array([0.25, 0.75]), (p, Chain((p, q))))(scores)
    np.testing.assert_allclose(average, 0.25 * proba + 0.75 * powered)
    product = proba**2 * powered
    expected = product / product.sum(axis=1, keepdims=True)
    found = Product(np.array([2.0, 1.0]), (p, Chain((p, q))))(scores)
    np.testing.assert_allclose(found, expected)
    odds = Reweight(np.log([1.0, 2.0, 4.0]))(np.full((1, 3), 1 / 3))
    np.testing.assert_allclose(odds, [[1 / 7, 2 / 7, 4 / 7]])


def test_product_is_finite():
    sure = OneHot()
    rows = np.array([[3.0, 1.0], [0.0, 2.0]])
    np.testing.assert_allclose(Product(np.ones(2), (sure, sure))(rows), [[1, 0], [0, 1]])
    against = Chain((Linear(np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2)), sure))
    contradiction = Product(np.ones(2), (sure, against))(rows)
    np.testing.assert_allclose(contradiction, 0.5)  # certain of opposite things: no knowledge


def every_rule():
    p = Mixture([0.5, 0.5], rng.normal(size=(2, 3)), np.ones((2, 3)), np.eye(2, 3), list("abc"))
    simple = [Affine(rng.normal(size=3), rng.random(3) + 0.5), Linear(np.eye(3), np.ones(3))]
    simple += [ReLU(), Step(), Sigmoid(), Softmax(), Normalize(0.1), Smooth(0.1), OneHot()]
    simple.append(Posterior(p))
    weights = rng.random(len(simple))
    combined = [Chain(tuple(simple[:2])), Average(weights, tuple(simple))]
    combined += [Product(weights, tuple(simple)), Reweight(np.ones(3), 0.3), Clip(0.7)]
    combined.append(Interpolate(np.cumsum(rng.random((4, 3)), axis=0), rng.normal(size=(4, 3))))
    combined.append(Fourier(rng.normal(size=(3, 5))))
    split = (np.array([1, 0, 0]), np.array([0.5, 0, 0]), np.array([1, -1, -2]), np.array([0]))
    combined.append(Trees(*split, rng.random((2, 3)), np.zeros(3)))
    members = (Softmax(), Chain((ReLU(), Softmax())))
    combined.append(Pool((Clip(9.0),), members, np.zeros(2, int), np.ones(2), np.zeros(3), 0.01))
    return [*simple, *combined]


@pytest.mark.parametrize("rule", every_rule(), ids=lambda rule: type(rule).__name__)
def test_pack_and_unpack(rule):
    rows = np.abs(rng.normal(size=(20, 3)))
    again = unpack(*pack(rule, KINDS), KINDS)
    assert type(again) is type(rule)
    assert np.array_equal(again(rows), rule(rows))


def test_every_rule_is_here():
    assert {type(rule) for rule in every_rule()} == set(RULES)


def test_wrong_kinds():
    with pytest.raises(MixdaError, match="'System', which this mixda does not know"):
        unpack({"kind": "System", "fields": {"command": "ls"}}, {}, KINDS)
    with pytest.raises(MixdaError, match="got int"):
        unpack({"kind": "Chain", "fields": {"steps": [3]}}, {}, KINDS)


def test_own_memory():
    coef = np.eye(2)
    rule = Linear(coef, np.zeros(2))
    coef[:] = 7.0
    assert np.array_equal(rule(np.ones((1, 2))), np.ones((1, 2)))
    with pytest.raises(ValueError, match="read-only"):
        rule.coef[0] = 1.0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Affine(np.zeros(2), np.array([1.0, 0.0])), "other than zero"),
        (lambda: Affine(np.zeros(2), np.ones(3)), "one per mean"),
        (lambda: Linear(np.eye(2), np.zeros(3)), "2 intercepts, got 3"),
        (lambda: Linear(np.full((2, 2), np.nan), np.zeros(2)), "NaN"),
        (lambda: Posterior(Mixture([1.0], [[0.0]], [[1.0]])), "labeled"),
        (lambda: Average(np.ones(2), (ReLU(),)), "one rule per weight, got 1 for 2"),
        (lambda: Reweight(np.ones(2), -1.0), "power must be"),
    ],
)
def test_wrong_arguments(make, sentence):
    with pytest.raises(MixdaError, match=sentence):
        make()
