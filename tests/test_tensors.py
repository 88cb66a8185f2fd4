"""Torch tensors through fits, products and predictions: the same functions, the same numbers.

float64 tensors agree with numpy to 1e-9. float32 tensors agree to 1e-5 with numpy on the same
rounded samples, relative to the size of the numbers.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from mixda import (
    GMMOTDA,
    GMMWBT,
    JCPOT,
    WBT,
    WJDOT,
    DaDiL,
    GMMDaDiL,
    MixdaError,
    Mixture,
    SourceOnly,
    barycenter,
    fit_labeled_mixture,
    fit_mixture,
    learn_dictionary,
    mw2,
    rules,
    smw2,
    transport_plan,
)
from mixda._core.namespace import to_numpy
from mixda.datasets import make_shifted_toy
from mixda.em._moments import array_moments
from mixda.empirical import learn_empirical_dictionary, learn_joint_transport
from mixda.transport import squared_distances

from .strategies import random_mixture
from .tensors import DEVICES, PRECISIONS, tensor, torch

pytestmark = [
    pytest.mark.usefixtures("dispatch"),
    pytest.mark.filterwarnings("ignore:.*converge"),
]
LIMIT = {"float64": 1e-9, "float32": 1e-5}
on_devices = pytest.mark.parametrize("device", DEVICES)
in_precisions = pytest.mark.parametrize("precision", PRECISIONS)


def assert_close(result, expected, limit):
    assert result.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max()))
    assert float(np.abs(to_numpy(result) - expected).max()) <= limit * scale


SCORES = 3.0 * np.random.default_rng(0).standard_normal((50, 4))
PROBA = np.abs(SCORES) / np.abs(SCORES).sum(axis=1, keepdims=True)
COEF = np.random.default_rng(1).standard_normal((4, 4))
POWERS = np.array([0.3, 0.7])
LABELED = random_mixture(np.random.default_rng(2), 6, 4, 3)
PAIR = (rules.Softmax(), rules.Sigmoid())
RULES = [
    (rules.Affine(COEF[0], np.exp(COEF[1])), SCORES),
    (rules.Linear(COEF, COEF[0]), SCORES),
    (rules.ReLU(), SCORES),
    (rules.Step(), SCORES),
    (rules.Sigmoid(), SCORES),
    (rules.Softmax(), SCORES),
    (rules.Normalize(0.1), PROBA),
    (rules.Smooth(0.1), PROBA),
    (rules.OneHot(), SCORES),
    (rules.Posterior(LABELED), SCORES),
    (rules.Chain((rules.Affine(COEF[0], np.exp(COEF[1])), rules.Posterior(LABELED))), SCORES),
    (rules.Average(POWERS, PAIR), SCORES),
    (rules.Product(POWERS, PAIR), SCORES),
    (rules.Reweight(COEF[0], 0.4), PROBA),
    (rules.Clip(1.0), SCORES),
    (rules.Fourier(COEF), SCORES),
    (
        rules.Pool(
            (rules.Chain(()), rules.Clip(1.0)), (*PAIR, rules.OneHot()), [0, 1, 1],
            [0.5, 0.3, 0.2], COEF[0], 0.01,
        ),
        SCORES,
    ),
]  # fmt: skip


@on_devices
@in_precisions
@pytest.mark.parametrize(("rule", "X"), RULES, ids=[type(rule).__name__ for rule, _ in RULES])
def test_rule(rule, X, precision, device):
    result = rule(tensor(X, device, precision))
    assert isinstance(result, torch.Tensor)
    assert (result.dtype, result.device.type) == (getattr(torch, precision), device)
    limit = 1e-5 if isinstance(rule, rules.Fourier) else LIMIT[precision]  # always in float32
    assert_close(result, rule(X), limit)


def test_rules_that_take_no_tensors():
    stump = rules.Trees(
        np.zeros(3, int), np.zeros(3), np.array([1, -1, -2]), np.zeros(1, int), np.eye(2),
        np.zeros(2),
    )  # fmt: skip
    ranks = rules.Interpolate(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]))
    for rule, word in ((stump, "trees"), (ranks, "quantiles")):
        with pytest.raises(MixdaError, match=f"{word}.*torch"):
            rule(torch.zeros(2, 1))
    tested = {type(rule) for rule, _ in RULES} | {type(stump), type(ranks)}
    assert tested == set(rules.RULES)


@pytest.fixture(scope="module")
def task():
    return make_shifted_toy(random_state=2).as_task()


ESTIMATORS = [
    GMMWBT(random_state=0),
    GMMWBT(preset="paper", random_state=0),
    GMMDaDiL(random_state=0),
    GMMOTDA(random_state=0),
    SourceOnly(),
    SourceOnly(encoder="mlp", random_state=0),
    WJDOT(n_iter=20, random_state=0),
    WBT(random_state=0),
    DaDiL(n_epochs=2, random_state=0),
    JCPOT(),
]


@on_devices
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_estimator_and_model(estimator, task, gaps, device):
    X, rows = task.X.copy(), task.X_target.copy()
    if gaps:
        X[::7, 1] = rows[::5, 0] = np.nan
    estimator = estimator.fit(X, task.y, sample_domain=task.sample_domain)
    model = estimator.to_model()
    for precision, limit in LIMIT.items():
        given = tensor(rows, device, precision)
        for fitted in (estimator, model):
            proba = fitted.predict_proba(given)
            assert isinstance(proba, torch.Tensor)
            assert proba.device.type == device
            assert_close(proba, fitted.predict_proba(rows), limit)
            assert np.array_equal(fitted.predict(given), fitted.predict(rows))
        assert np.array_equal(to_numpy(model.outliers(given)), model.outliers(rows))
    assert_close(
        estimator.predict_log_proba(tensor(rows, device)).exp(), estimator.predict_proba(rows), 1e-9
    )


def test_estimators_refuse(task):
    estimator = SourceOnly()
    with pytest.raises(MixdaError, match=r"SourceOnly\.fit.*torch"):
        estimator.fit(tensor(task.X), task.y, sample_domain=task.sample_domain)
    estimator.fit(task.X, task.y, sample_domain=task.sample_domain)
    with pytest.raises(MixdaError, match="target"):
        estimator.predict(tensor(task.X), sample_domain=task.sample_domain)
    with pytest.raises(MixdaError, match="shape"):
        estimator.predict(torch.zeros(2, 7))


def samples(gaps=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5)).astype(np.float32).astype(np.float64) + 20.0
    X[:200] += 4.0
    if gaps:
        X[::9, 3] = np.nan
    return X, np.repeat(["b", "a"], 300), rng.random(600)


@on_devices
@in_precisions
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_components", [3, "bic"])
def test_fit(n_components, weighted, gaps, precision, device):
    X, y, weight = samples(gaps)
    X = X.astype(precision)
    given = tensor(X, device, precision)
    weight, its_weight = (weight, tensor(weight, device)) if weighted else (None, None)
    options = {"n_components": n_components, "random_state": 0}
    p = fit_mixture(given, sample_weight=its_weight, **options)
    q = fit_labeled_mixture(given, y, sample_weight=its_weight, **options)
    for fitted, expected in (
        (p, fit_mixture(X, sample_weight=weight, **options)),
        (q, fit_labeled_mixture(X, y, sample_weight=weight, **options)),
    ):
        assert isinstance(fitted.means, np.ndarray)
        for name in ("weights", "means", "stds"):
            assert_close(getattr(fitted, name), getattr(expected, name), LIMIT[precision])
        assert fitted.info["n_samples"] == expected.info["n_samples"]
    assert q.classes.tolist() == ["a", "b"]


@on_devices
@in_precisions
def test_impute(precision, device):
    X, _, _ = samples(gaps=True)
    mixture = fit_mixture(X, 2, random_state=0)
    filled = mixture.impute(tensor(X, device, precision))
    assert filled.device.type == device
    assert_close(filled, mixture.impute(X), LIMIT[precision])


@on_devices
def test_fit_in_blocks(device, monkeypatch):
    X, _, _ = samples()
    whole = fit_mixture(X, 3, random_state=0)
    in_chunks = fit_mixture(tensor(X, device), 3, random_state=0, chunk_size=100)
    assert_close(in_chunks.means, whole.means, 1e-9)
    monkeypatch.setattr("mixda.mixture._density._DEVICE_VALUES", 500)
    assert_close(fit_mixture(tensor(X, device), 3, random_state=0).means, whole.means, 1e-9)


def test_fit_labels_may_be_tensors():
    X, y, _ = samples()
    codes = torch.tensor(np.unique(y, return_inverse=True)[1])
    assert fit_labeled_mixture(tensor(X), codes).classes.tolist() == [0, 1]


def test_distinct_rows_of_tensors():
    X = np.repeat([[0.0, -0.0], [0.0, 0.0], [1.0, 2.0]], 300, axis=0)  # two distinct rows
    assert len(array_moments(tensor(X), None, max_distinct=5).distinct) == 2


def test_fit_refuses():
    with pytest.raises(MixdaError, match=r"n_jobs.*torch"):
        fit_mixture(torch.zeros(4, 1), n_jobs=2)
    with pytest.raises(MixdaError, match="1e\\+100"):
        fit_mixture(torch.full((4, 1), 1e100, dtype=torch.float64))


def test_tensors_that_numpy_cannot_read():
    for X in (torch.zeros(4, 1, requires_grad=True), torch.zeros(4, 1, device="meta")):
        with pytest.raises(MixdaError, match=r"means.*Tensor"):
            Mixture([0.25] * 4, X, np.ones((4, 1)))


@on_devices
@in_precisions
def test_squared_distances(precision, device):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((30, 7)).astype(np.float32).astype(np.float64)
    b = np.vstack([a[:5], rng.standard_normal((20, 7))])
    expected = squared_distances(a, b)
    result = squared_distances(tensor(a, device, precision), tensor(b, device, precision))
    assert result.device.type == device
    assert_close(result, expected, LIMIT[precision])
    assert np.array_equal(to_numpy(result)[np.arange(5), np.arange(5)], np.zeros(5))
    like = squared_distances(a, b, tensor(0.0, device, precision))
    assert isinstance(like, np.ndarray)
    assert_close(like, expected, LIMIT[precision])


@on_devices
@in_precisions
def test_plans_and_distances(precision, device):
    (p, q, _), _ = domains()
    like, limit = tensor(0.0, device, precision), LIMIT[precision]
    for options in ({}, {"beta": "max"}, {"reg": 0.1}):
        expected, result = (
            transport_plan(p, q, **options),
            transport_plan(p, q, like=like, **options),
        )
        assert isinstance(result.cost, np.ndarray)
        assert_close(result.plan, expected.plan, limit)
        assert_close(result.cost, expected.cost, limit)
    assert mw2(p, q, like=like) == pytest.approx(mw2(p, q), rel=limit)
    assert smw2(p, q, like=like) == pytest.approx(smw2(p, q), rel=limit)


def domains(d=6, n_sources=3, K=8, nc=4):
    labels = np.eye(nc)[np.arange(K) % nc]
    parts = []
    for seed in range(n_sources + 1):
        rng = np.random.default_rng(seed)
        means = 3.0 * labels @ rng.standard_normal((nc, d)) + rng.standard_normal((K, d))
        parts.append(Mixture(np.full(K, 1 / K), means, rng.uniform(0.1, 1.0, (K, d)), labels))
    target = parts[-1]
    return parts[:-1], Mixture(target.weights, target.means, target.stds)


@on_devices
@in_precisions
@pytest.mark.parametrize("options", [{}, {"n_components": 5, "beta": "max"}], ids=str)
def test_barycenter(options, precision, device):
    sources, _ = domains()
    expected = barycenter(sources, **options)
    result = barycenter(sources, like=tensor(0.0, device, precision), **options)
    assert isinstance(result.mixture.means, np.ndarray)
    assert_close(result.mixture.means, expected.mixture.means, LIMIT[precision])
    assert_close(result.history, expected.history, LIMIT[precision])


@on_devices
@pytest.mark.parametrize("beta", ["auto", "max"])
def test_barycenter_of_many_components(beta, device, monkeypatch):
    monkeypatch.setattr("mixda.barycenters._barycenter._MAX_GRAM_ROWS", 10)
    sources, _ = domains()
    options = {"n_components": 5, "beta": beta, "component_weights": "uniform"}
    expected = barycenter(sources, **options)
    result = barycenter(sources, like=tensor(0.0, device), **options)
    assert_close(result.mixture.means, expected.mixture.means, 1e-9)


@on_devices
@in_precisions
@pytest.mark.parametrize("optimizer", ["block", "adam", "gradient"])
@pytest.mark.parametrize("weights", ["fixed", "learned"])
def test_dictionary(weights, optimizer, precision, device):
    sources, target = domains()
    options = {"optimizer": optimizer, "n_iter": 8, "component_weights": weights, "n_atoms": 4}
    expected = learn_dictionary(sources, target, precision=precision, **options)
    result = learn_dictionary(sources, target, like=tensor(0.0, device, precision), **options)
    assert_close(result.coordinates, expected.coordinates, LIMIT[precision])
    assert_close(result.history.loss, expected.history.loss, LIMIT[precision])
    for atom, other in zip(result.atoms, expected.atoms, strict=True):
        assert isinstance(atom.means, np.ndarray)
        assert_close(atom.means, other.means, LIMIT[precision])


def test_like_refuses(monkeypatch):
    sources, target = domains()
    like = torch.zeros(1)
    with pytest.raises(MixdaError, match="precision"):
        learn_dictionary(sources, target, like=like, precision="float64")
    with pytest.raises(MixdaError, match="checkpoint"):
        learn_dictionary(sources, target, like=like, checkpoint="c")
    with pytest.raises(MixdaError, match=r"like.*int64"):
        barycenter(sources, like=torch.zeros(1, dtype=torch.int64))
    with pytest.raises(MixdaError, match=r"like.*ndarray"):
        barycenter(sources, like=np.zeros(1))
    monkeypatch.setattr("sklearn.get_config", lambda: {"array_api_dispatch": False})
    with pytest.raises(MixdaError, match=r"like.*array_api_dispatch"):
        barycenter(sources, like=like)


@on_devices
@in_precisions
@pytest.mark.parametrize("init", ["sources", "random"])
def test_empirical_dictionary(init, precision, device):
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    clouds = [rng.standard_normal((60, 5)) + 3.0 * y[:, None] + shift for shift in range(3)]
    options = {"n_points": 20, "batch_size": 10, "n_epochs": 5, "random_state": 0, "init": init}
    expected = learn_empirical_dictionary([(X, y) for X in clouds[:2]], clouds[2], 2, **options)
    *sources, target = (tensor(X, device, precision) for X in clouds)
    codes = torch.tensor(y, device=device)
    result = learn_empirical_dictionary([(X, codes) for X in sources], target, 2, **options)
    assert_close(result.coordinates, expected.coordinates, LIMIT[precision])
    assert_close(result.history.loss, expected.history.loss, LIMIT[precision])
    for atom, other in zip(result.atoms, expected.atoms, strict=True):
        assert_close(atom.means, other.means, LIMIT[precision])


def test_empirical_functions_refuse():
    X, y = np.zeros((4, 1)), np.arange(4) % 2
    with pytest.raises(MixdaError, match="one library"):
        learn_empirical_dictionary([(tensor(X), y)], X, 2)
    with pytest.raises(MixdaError, match="NaN"):
        learn_empirical_dictionary([(tensor(X), y)], tensor(X + np.nan), 2)
    with pytest.raises(MixdaError, match=r"learn_joint_transport.*torch"):
        learn_joint_transport([(tensor(X), y)], tensor(X), 2)


REAL_SWITCH = """
import numpy as np, sklearn, torch
from mixda import GMMWBT, fit_mixture
from mixda.datasets import make_shifted_toy

task = make_shifted_toy(random_state=2).as_task()
model = GMMWBT(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
X = torch.tensor(task.X_target)
assert isinstance(model.predict_proba(X), np.ndarray)  # off by default
with sklearn.config_context(array_api_dispatch=True):
    proba = model.predict_proba(X)
    fitted = fit_mixture(X, 2, random_state=0)
assert isinstance(proba, torch.Tensor)
assert np.allclose(proba, model.predict_proba(task.X_target), atol=1e-9)
assert np.allclose(fitted.means, fit_mixture(task.X_target, 2, random_state=0).means, atol=1e-9)
"""


def test_the_switch_of_scikit_learn():
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", REAL_SWITCH], env=environment, check=True, timeout=300)
