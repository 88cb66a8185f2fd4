"""Predictions do not depend on the order of rows, of sources or of classes."""

import numpy as np
import pytest

import mixda
from mixda import fit_labeled_mixture, fit_mixture
from mixda.datasets import make_toy

TASK = make_toy(60, separation=2.5, target_shift=(-2.0, 1.0), random_state=3).as_task()
METHODS = [mixda.GMMWBT, mixda.GMMOTDA, mixda.GMMDaDiL]


def predictions(method, X, y, ids):
    given = {"n_iter": 20} if method is mixda.GMMDaDiL else {}
    model = method(random_state=0, **given).fit(X, y, sample_domain=ids)
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
    model = mixda.GMMDaDiL(random_state=0, n_iter=5, callback=seen.append)
    first = model.fit(TASK.X, TASK.y, sample_domain=ids).dictionary_
    assert np.array_equal(seen[-1].coordinates, first.coordinates)
    second = mixda.GMMDaDiL(random_state=0, n_iter=5).fit(
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
