"""Predictions do not depend on the order of rows, of sources or of classes."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import mixda
from mixda import fit_labeled_mixture, fit_mixture
from mixda.datasets import make_toy
from mixda.estimators import CanonicalOrder, log_linear_pool
from mixda.estimators.utils import head_proba, train_head
from mixda.rules import Linear

TASK = make_toy(60, separation=2.5, target_shift=(-2.0, 1.0), random_state=3).as_task()
METHODS = {
    mixda.GMMWBT: {},
    mixda.GMMOTDA: {},
    mixda.GMMDaDiL: {"n_iter": 20},
    mixda.WBT: {"n_points": 30, "max_samples": 40},
    mixda.DaDiL: {"n_epochs": 4, "n_points": 30},
    mixda.WJDOT: {"n_iter": 10, "batch_size": 40},
}


def predictions(method, X, y, ids):
    model = method(random_state=0, **METHODS[method]).fit(X, y, sample_domain=ids)
    return model.predict(TASK.X_target)


@pytest.fixture(scope="module", params=METHODS, ids=lambda method: method.__name__)
def method(request):
    return request.param


@pytest.fixture(scope="module")
def expected(method):
    return predictions(method, TASK.X, TASK.y, TASK.sample_domain)


@pytest.mark.parametrize("seed", range(2))
def test_rows(method, expected, seed):
    order = np.random.default_rng(seed).permutation(len(TASK.X))
    found = predictions(method, TASK.X[order], TASK.y[order], TASK.sample_domain[order])
    np.testing.assert_array_equal(found, expected)


def test_sources(method, expected):
    ids = np.asarray(TASK.sample_domain)
    reversed_ids = np.where(ids >= 0, ids.max() - ids, ids)
    found = predictions(method, TASK.X, TASK.y, reversed_ids)
    np.testing.assert_array_equal(found, expected)


def test_classes(method, expected):
    largest = TASK.y.max()
    found = predictions(method, TASK.X, largest - TASK.y, TASK.sample_domain)
    np.testing.assert_array_equal(largest - found, expected)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_dictionary_in_the_given_order(preset):
    """Attributes follow the order of `sources_` and `classes_`, whatever the order inside."""
    ids = np.asarray(TASK.sample_domain)
    reversed_ids = np.where(ids >= 0, ids.max() + 1 - ids, ids)
    seen = []
    options = {"preset": preset, "random_state": 0, "n_iter": 5}
    model = mixda.GMMDaDiL(callback=seen.append, **options)
    first = model.fit(TASK.X, TASK.y, sample_domain=ids).dictionary_
    assert np.array_equal(seen[-1].coordinates, first.coordinates)
    second = mixda.GMMDaDiL(**options).fit(
        TASK.X, TASK.y.max() - TASK.y, sample_domain=reversed_ids
    )
    again = second.dictionary_
    np.testing.assert_array_equal(again.coordinates[:-1], first.coordinates[:-1][::-1])
    np.testing.assert_array_equal(again.coordinates[-1], first.coordinates[-1])
    np.testing.assert_array_equal(again.history.domain_loss[:, 0], first.history.domain_loss[:, -2])
    for p, q in zip(first.atoms, again.atoms, strict=True):
        np.testing.assert_array_equal(p.means, q.means)
        np.testing.assert_array_equal(p.labels, q.labels[:, ::-1])
        assert q.classes.tolist() == second.classes_.tolist()


def many_classes():
    """Three domains of few rows, eight classes, repeated rows: plans have many near ties."""
    rng = np.random.default_rng(0)
    centers, y = 2.0 * rng.normal(size=(8, 12)), np.tile(np.arange(8), 15)
    ids = np.repeat([0, 1, 2, 3, -1], 24)
    X = centers[y] + rng.normal(size=(120, 12)) + 0.5 * rng.normal(size=(5, 12))[ids]
    X[ids == 1] = np.round(X[ids == 1])
    X[24:28] = X[0:4]  # equal rows of two domains
    X[30] = X[31]  # equal rows of two classes
    return X, y, ids


@pytest.mark.parametrize("name", ["GMMWBT", "GMMDaDiL", "GMMOTDA", "WBT"])
def test_exact_probabilities(name):
    """Rounding of 1e-17 in a weight can change a plan, so what is learned is equal to the bit."""
    X, y, ids = many_classes()
    rng = np.random.default_rng(1)
    rows, label, source = rng.permutation(len(X)), rng.permutation(8), np.array([2, 0, 3, 1])
    permuted = np.where(ids >= 0, source[np.maximum(ids, 0)], ids)[rows]
    cls = getattr(mixda, name)
    first = cls(random_state=0).fit(X, y, sample_domain=ids)
    second = cls(random_state=0).fit(X[rows], label[y][rows], sample_domain=permuted)
    p, q = first.predict_proba(X[ids < 0]), second.predict_proba(X[ids < 0])[:, label]
    np.testing.assert_allclose(p, q, rtol=1e-9, atol=1e-12)
    if name == "GMMDaDiL":
        means = [model.dictionary_.target.means for model in (first, second)]
        np.testing.assert_array_equal(*means)


def test_heads():
    """A logistic regression is the same whatever the order of the classes, of two or more."""
    X, y, ids = many_classes()
    for codes in (y[ids >= 0] % 2, y[ids >= 0] % 3, 2 * (y[ids >= 0] % 2)):
        Z, n = X[ids >= 0], codes.max() + 1
        head = train_head(None, 0, Z, codes)
        again = train_head(None, 0, Z, n - 1 - codes)
        assert head.classes_.tolist() == np.unique(codes).tolist()
        expected = LogisticRegression(max_iter=1000).fit(Z, codes)
        np.testing.assert_allclose(head.predict_proba(Z), expected.predict_proba(Z), atol=1e-3)
        np.testing.assert_allclose(
            head_proba(head, Z, n), head_proba(again, Z, n)[:, ::-1], atol=1e-12
        )


def test_certain_of_different_classes():
    """The last factor of a product decides a tie, not the order of the classes."""
    first, second = np.eye(3)[[0]], np.eye(3)[[2]]
    for order in ([0, 1, 2], [2, 1, 0]):
        rules = [Linear(np.zeros((1, 3)), proba[0, order]) for proba in (first, second)]
        (proba,) = log_linear_pool(rules)(np.zeros((1, 1)))
        assert order[proba.argmax()] == 2
        np.testing.assert_allclose(proba[order.index(0)], proba[order.index(2)], rtol=1e-6)


def test_centered_domains():
    """Domains that are standardized by themselves have the same moments, up to rounding."""
    rng = np.random.default_rng(0)
    X = [rng.permutation(k * np.r_[-2, -1, -1, 1, 1, 2.0])[:, None] for k in (1.0, 1.0, 1.0)]
    X[1], X[2] = X[1] ** 3, np.sign(X[2])
    sources = [((x - x.mean()) / x.std(), np.tile([0, 1], 3)) for x in X]
    order = CanonicalOrder.of_samples(sources, 2)
    again = CanonicalOrder.of_samples([(X[::-1], codes) for X, codes in sources[::-1]], 2)
    assert order.sources.tolist() == (2 - again.sources).tolist()


@pytest.mark.parametrize("weighted", [False, True])
def test_mixtures(weighted):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(3, size=300)
    X[:50] = X[50:100]  # equal rows
    weight = rng.random(300) if weighted else None
    order = rng.permutation(300)
    permuted = None if weight is None else weight[order]
    p = fit_mixture(X, 7, sample_weight=weight, random_state=0)
    q = fit_mixture(X[order], 7, sample_weight=permuted, random_state=0)
    np.testing.assert_allclose(p.means, q.means, rtol=1e-7, atol=1e-9)
    p = fit_labeled_mixture(X, y, 3, sample_weight=weight, random_state=0)
    q = fit_labeled_mixture(X[order], -y[order], 3, sample_weight=permuted, random_state=0)
    np.testing.assert_allclose(p.means, q.means.reshape(3, 3, 3)[::-1].reshape(9, 3), atol=1e-9)
