"""Predictions do not depend on the order of rows, of sources or of classes."""

import numpy as np
import pytest

import mixda
from mixda import fit_labeled_mixture, fit_mixture
from mixda.datasets import make_toy
from mixda.estimators import CanonicalOrder, log_linear_pool
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


def test_dictionary_in_the_given_order():
    """Attributes follow the order of `sources_` and `classes_`, whatever the order inside."""
    ids = np.asarray(TASK.sample_domain)
    reversed_ids = np.where(ids >= 0, ids.max() + 1 - ids, ids)
    seen = []
    # not by default: the sign of the discriminant of two classes follows their order
    options = {"preset": "paper", "random_state": 0, "n_iter": 5}
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
