"""Sample weights: a row of weight two is two rows, and one of weight zero is none."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

import mixda
from mixda import MixdaError

METHODS = {
    "SourceOnly": lambda: mixda.SourceOnly(scale="domain"),
    "GMMWBT": lambda: mixda.GMMWBT(1, classifier="map", random_state=0),
    "GMMDaDiL": lambda: mixda.GMMDaDiL(1, n_iter=5, random_state=0),
    "GMMOTDA": lambda: mixda.GMMOTDA(n_components=1, target_components=2, random_state=0),
    "GMMOTDA samples": lambda: mixda.GMMOTDA(
        "samples", n_components=1, target_components=2, random_state=0
    ),
}


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    ids = np.repeat([0, 1, -1], 60)
    y = rng.integers(0, 2, len(ids))
    X = rng.normal(size=(len(ids), 2)) + 3.0 * y[:, None] + np.where(ids < 0, 1.0, 0.0)[:, None]
    return X, y, ids, rng.integers(0, 4, len(ids))


@pytest.mark.parametrize("name", METHODS)
def test_weights_are_repetitions(task, name):
    X, y, ids, weight = task
    weighted = METHODS[name]().fit(X, y, sample_domain=ids, sample_weight=weight)
    rows = np.repeat(np.arange(len(X)), weight)
    repeated = METHODS[name]().fit(X[rows], y[rows], sample_domain=ids[rows])
    proba = weighted.predict_proba(X, ids)
    atol = 5e-4 if "OTDA" in name else 1e-4  # EM with two components stops at a tolerance
    np.testing.assert_allclose(proba, repeated.predict_proba(X, ids), atol=atol)
    plain = METHODS[name]().fit(X, y, sample_domain=ids).predict_proba(X, ids)
    assert np.abs(proba - plain).max() > 1e-2


@pytest.mark.parametrize(
    ("encoder", "atol"), [(None, 5e-3), ("lda", 0.05)], ids=["integrated", "filled"]
)
def test_weights_with_gaps(task, encoder, atol):
    """EM stops at a tolerance, and that of `imputer_`, which fills the gaps, is rough.

    With an imputer that ignores the weights, probabilities differ by 0.13.
    """
    X, y, ids, weight = task
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    model = METHODS["GMMWBT"]().set_params(encoder=encoder)
    weighted = clone(model).fit(X, y, sample_domain=ids, sample_weight=weight)
    rows = np.repeat(np.arange(len(X)), weight)
    repeated = clone(model).fit(X[rows], y[rows], sample_domain=ids[rows])
    proba = weighted.predict_proba(X, ids)
    np.testing.assert_allclose(proba, repeated.predict_proba(X, ids), atol=atol)


def test_equal_weights_change_nothing(task):
    X, y, ids, _ = task
    plain = mixda.GMMWBT(2, random_state=0).fit(X, y, sample_domain=ids)
    equal = mixda.GMMWBT(2, random_state=0).fit(X, y, sample_domain=ids, sample_weight=np.ones(180))
    np.testing.assert_allclose(equal.predict_proba(X), plain.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize(
    ("model", "weight", "message"),
    [
        (mixda.SourceOnly(), np.ones(3), "sample_weight.*length 3"),
        (mixda.SourceOnly(), -np.ones(180), "sample_weight.*-1"),
        (mixda.GMMWBT(), np.repeat([0, 1, 1], 60), "sample_weight.*domain 0"),
        (mixda.SourceOnly(KNeighborsClassifier()), np.ones(180), "KNeighbors.*sample_weight"),
        (mixda.GMMWBT(encoder=PCA(1)), np.ones(180), "encoder.*sample_weight"),
        (mixda.AutoMSDA(), np.ones(180), "AutoMSDA.*sample_weight"),
        (mixda.WBT(), np.ones(180), "WBT.*sample_weight"),
    ],
)
def test_refused(task, model, weight, message):
    X, y, ids, _ = task
    with pytest.raises(MixdaError, match=message):
        model.fit(X, y, sample_domain=ids, sample_weight=weight)


def test_several_targets(task):
    X, y, ids, weight = task
    ids = np.where((ids < 0) & (np.arange(len(ids)) % 2 == 0), -2, ids)
    model = mixda.SourceOnly(scale="domain").fit(X, y, ids, sample_weight=weight)
    rows = ids != -2
    alone = mixda.SourceOnly(scale="domain").fit(X[rows], y[rows], ids[rows], weight[rows])
    own = ids == -1
    np.testing.assert_array_equal(model.predict(X[own], -1), alone.predict(X[own]))
