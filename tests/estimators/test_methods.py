"""What single methods reach and compute; what all promise is in test_contract."""

import os

import numpy as np
import ot
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from mixda import GMMWBT, AutoMSDA, GMMDaDiL, MixdaError, datasets
from mixda.empirical import learn_empirical_dictionary, learn_joint_transport, point_cloud
from mixda.estimators import GMMOTDA, JCPOT, WBT, WJDOT, DaDiL, SourceOnly, TargetOnly

from ..oracles import finite_difference_gradient

METHODS = {
    "WBT": WBT(max_samples=300, random_state=0),
    "WBT hard": WBT(label_mode="hard", max_samples=60, reg=0.05, random_state=0),
    "DaDiL-R": DaDiL(method="R", random_state=0),
    "DaDiL-E": DaDiL(method="E", random_state=0),
    "WJDOT": WJDOT(batch_size=60, n_iter=200, random_state=0),
    "JCPOT": JCPOT(max_samples=200, scale="domain", random_state=0),  # a shift is not its model
    "GMM-OTDA labels": GMMOTDA(random_state=0),
    "GMM-OTDA samples": GMMOTDA(route="samples", random_state=0),
    "AutoMSDA": AutoMSDA({"DaDiL": GMMDaDiL(1, n_iter=3)}, max_rows=100, random_state=0),
    "SourceOnly": SourceOnly(random_state=0),
}


@pytest.fixture(scope="module")
def task():
    """The shifted toy, with a seed on which logistic source-only is at most 0.90."""
    return datasets.make_shifted_toy(random_state=2).as_task()


def test_source_only(task):
    model = SourceOnly(scale=None).fit(task.X, task.y, sample_domain=task.sample_domain)
    assert model.score(task.X_target, task.y_target) <= 0.90
    plain = LogisticRegression(max_iter=1000).fit(
        task.X[task.sample_domain > 0], task.y[task.y >= 0]
    )
    assert np.array_equal(model.predict(task.X_target), plain.predict(task.X_target))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "SourceOnly"])
def test_shift(task, name):
    model = clone(METHODS[name]).fit(task.X, task.y, sample_domain=task.sample_domain)
    assert model.score(task.X_target, task.y_target) >= 0.97


def test_target_only(task):
    model = TargetOnly()
    with pytest.raises(MixdaError, match="target_labels"):
        model.fit(task.X, task.y, sample_domain=task.sample_domain)
    with pytest.raises(MixdaError, match="target_labels must"):
        model.fit(task.X, task.y, task.sample_domain, target_labels=task.y_target[:-1])
    with pytest.raises(MixdaError, match="target_labels must"):
        model.fit(task.X, task.y, task.sample_domain, target_labels=task.y_target + 5)
    model.fit(task.X, task.y, task.sample_domain, target_labels=task.y_target)
    assert model.score(task.X_target, task.y_target) >= 0.99


def test_wjdot_weights():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    X = rng.normal(size=(90, 2)) + 5.0 * np.eye(3, 2)[y]
    far = (X @ np.array([[0.0, -1.0], [1.0, 0.0]]) + 4.0, y)
    twice = np.vstack([X, X])  # as many as both sources together: the plan is an assignment
    for batch_size, target in ((None, X), (45, X), (None, twice)):
        found = learn_joint_transport(
            [far, (X, y)],
            target,
            3,
            n_iter=150,
            batch_size=batch_size,
            weight_rate=0.05,
            random_state=0,
        )
        assert found.source_weights[1] > 0.9
        assert (found.scores(X).argmax(axis=1) == y).mean() >= 0.95


def test_wjdot_steps():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 2)) + 3.0 * y[:, None]
    found = learn_joint_transport([(X, y)], X + 1, 2, n_iter=100, batch_size=None)
    assert found.history[-1] < 0.6 * found.history[0]
    # first step from zero, plan of the features alone: every coefficient moves by the rate,
    # against the sign of the derivative of the label cost at that plan
    one = learn_joint_transport([(X, y)], X + 1, 2, n_iter=1, batch_size=None, learning_rate=1e-3)
    plan = ot.emd([], [], ot.dist(X + 1, X))
    x = np.hstack([X + 1 - (X + 1).mean(axis=0), np.ones((40, 1))])

    def label_cost(coefficients):
        f = 1.0 / (1.0 + np.exp(-x @ coefficients))
        return float((plan * ot.dist(f, np.eye(2)[y])).sum())

    slope = finite_difference_gradient(label_cost, np.zeros((3, 2)))
    scale = np.sqrt(np.median(ot.dist(X + 1, X)))
    assert np.allclose(one.coefficients * scale, -1e-3 * np.sign(slope[:-1]), atol=1e-6)


def test_point_cloud():
    cloud = point_cloud(np.eye(3), ["a", "c", "a"], ["a", "b", "c"])
    assert not cloud.stds.any()
    assert cloud.labels.argmax(axis=1).tolist() == [0, 2, 0]
    with pytest.raises(MixdaError, match="min_std"):
        cloud.log_prob(np.eye(3))


def test_empirical_dictionary(task):
    source = [(task.X[task.sample_domain == k], task.y[task.sample_domain == k]) for k in (1, 2, 3)]
    for init in ("sources", "random"):
        d = learn_empirical_dictionary(
            source,
            task.X_target,
            2,
            n_points=40,
            batch_size=20,
            n_epochs=30,
            init=init,
            random_state=0,
        )
        assert np.allclose(d.coordinates.sum(axis=1), 1.0)
        assert d.history.loss[-1] < 0.5 * d.history.loss[0]
        assert all(not atom.stds.any() for atom in d.atoms)
        assert d.target.n_components == 40
    with pytest.raises(MixdaError, match="init must be one of"):
        learn_empirical_dictionary(source, task.X_target, 2, init="zeros")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (WBT(label_mode="fuzzy"), "label_mode must be one of"),
        (WBT(n_points=0), "n_points must be a positive integer"),
        (WBT(classifier="svm"), "classifier must be a scikit-learn classifier"),
        (DaDiL(method="Q"), "method must be one of"),
        (DaDiL(n_atoms=0), "n_atoms must be a positive integer"),
        (WJDOT(n_iter=0), "n_iter must be a positive integer"),
        (WJDOT(batch_size=0), "batch_size must be a positive integer"),
        (WJDOT(label_weight=-1), "label_weight must be a positive number"),
        (DaDiL(learning_rate=-1), "learning_rate must be a positive number"),
        (JCPOT(max_samples=0), "max_samples must be a positive integer"),
        (GMMOTDA(route="both"), "route must be one of"),
    ],
)
def test_bad_parameters(task, model, message):
    with pytest.raises(MixdaError, match=message):
        model.fit(task.X, task.y, sample_domain=task.sample_domain)


@pytest.mark.data
@pytest.mark.skipif("MIXDA_DATA" not in os.environ, reason="MIXDA_DATA names no folder")
@pytest.mark.parametrize("name", ["WBT", "DaDiL-R", "WJDOT", "GMM-OTDA labels"])
def test_cwru(name):
    task = datasets.load_cwru().as_task("1797 rpm")
    model = clone(METHODS[name]).set_params(encoder="mlp")
    model.fit(task.X, task.y, sample_domain=task.sample_domain)
    assert model.score(task.X_target, task.y_target) >= 0.9


def _small_task(n=6, scale=1.0):
    rng = np.random.default_rng(0)
    y, ids = np.tile([0, 1], 3 * n), np.repeat([1, 2, -1], 2 * n)
    X = scale * (rng.normal(size=(len(y), 2)) + 6.0 * y[:, None] + 0.2 * ids[:, None])
    return X, y, ids


def test_jcpot_with_one_complete_source():
    X, y, ids = _small_task()
    kept = (ids != 2) | (y == 0)  # the second source lacks a class
    model = JCPOT(scale=None, random_state=0).fit(X[kept], y[kept], sample_domain=ids[kept])
    alone = ids != 2
    same = JCPOT(scale=None, random_state=0).fit(X[alone], y[alone], sample_domain=ids[alone])
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    assert model.score(X[ids < 0], y[ids < 0]) == 1.0
    np.testing.assert_allclose(model.proportions_, [0.5, 0.5], atol=0.1)


@pytest.mark.parametrize("model", [JCPOT(), WBT(label_mode="hard")])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_constant_data(model):
    X, y, ids = _small_task()
    proba = model.fit(np.ones_like(X), y, sample_domain=ids).predict_proba(X)
    assert np.isfinite(proba).all()


@pytest.mark.parametrize("method", [GMMWBT, GMMDaDiL])
def test_unbalanced_proportions(method):
    rng = np.random.default_rng(0)

    def domain(counts, shift):
        y = np.repeat([0, 1], counts)
        return rng.normal(size=(len(y), 2)) + 8.0 * y[:, None] + shift, y

    (X, y), (Z, truth) = domain([60, 60], 0.0), domain([100, 10], 1.0)
    data = np.vstack([X, Z]), np.r_[y, np.zeros_like(truth)]
    ids = np.repeat([0, -1], [len(X), len(Z)])
    options = {"n_components": 1, "class_prior": "uniform", "random_state": 0}
    balanced, free = (
        method(**options, **more).fit(*data, sample_domain=ids).target_mixture_.class_proportions
        for more in ({}, {"reg": 0.01, "reg_m": 0.01})
    )
    assert np.allclose(balanced, 0.5)
    assert free[0] > 0.75  # 100 of 110
