"""What every method of the registry promises: one contract, found by `mixda.estimators.METHODS`.

A new method is tested with its default parameters; add a line to `FAST` if they are slow and to
`VARIANTS` if a parameter makes it another algorithm.
"""

import importlib.util
import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mixda
from mixda import datasets
from mixda.estimators import METHODS

EPOCHS = {"epochs": 3, "pretrain_epochs": 3}
FAST = {
    "AutoMSDA": {"candidates": {"DaDiL": mixda.GMMDaDiL(1, n_iter=3)}, "max_rows": 100},
    "CoMDA": EPOCHS,
    "DaDiL": {"n_epochs": 3},
    "GMMDaDiL": {"n_iter": 10},
    "KD3A": EPOCHS,
    "LtCMSDA": EPOCHS,
    "M3SDA": EPOCHS,
    "WBT": {"max_samples": 60},
    "WJDOT": {"n_iter": 20},
}
VARIANTS = {
    "DaDiL": [{"method": "E"}],
    "GMMOTDA": [{"route": "samples"}],
    "M3SDA": [{"variant": "beta"}],
    "WBT": [{"label_mode": "hard"}],
}
NOT_SAVED = {"LtCMSDA"}  # its graph of prototypes is not one of `mixda.rules`
HAS_TORCH = importlib.util.find_spec("torch") is not None


def build(oracles=False):
    """Every method and variant by name, with few iterations."""
    models = {}
    for name, method in METHODS.items():
        if (method.needs_torch and not HAS_TORCH) or (method.oracle and not oracles):
            continue
        for variant in [{}, *VARIANTS.get(name, [])]:
            words = " ".join([name, *map(str, variant.values())])
            models[words] = method.load()(**FAST.get(name, {}), **variant)
    return models


MODELS = build()
every = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    if not HAS_TORCH:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def task():
    """Three sources and a target, 50 or so rows each."""
    toy = datasets.make_shifted_toy(random_state=2).as_task()
    rows = slice(None, None, 9)
    y = toy.y.copy()
    y[toy.sample_domain < 0] = toy.y_target
    return toy.X[rows], y[rows], toy.sample_domain[rows]


def make(name):
    return clone(MODELS[name]).set_params(random_state=0)


def fitted(name, X, y, ids):
    return make(name).fit(X, y, sample_domain=ids)


@parametrize_with_checks(list(build(oracles=True).values()))
def test_scikit_learn(estimator, check):
    check(estimator)


@every
def test_no_leak(task, name):
    """Whatever stands on the target rows of y, the model is the same to the bit."""
    X, y, ids = task
    target = ids < 0
    hidden = [
        np.where(target, np.random.default_rng(1).permutation(y), y),
        np.where(target, np.nan, y),
        np.where(target, 99, y),
        ["?" if is_target else int(label) for label, is_target in zip(y, target, strict=True)],
    ]
    expected = fitted(name, X, y, ids).predict_proba(X)
    for other in hidden:
        model = fitted(name, X, other, ids)
        assert model.classes_.tolist() == [0, 1]
        assert np.array_equal(model.predict_proba(X), expected)


@every
def test_second_fit(task, name):
    """A fit owes nothing to the one before, with a target or without."""
    X, y, ids = task
    source = ids >= 0
    adapted = fitted(name, X, y, ids).predict_proba(X)
    alone = make(name).fit(X[source], y[source]).predict_proba(X)
    model = make(name).fit(X[source], y[source]).fit(X, y, sample_domain=ids)
    assert np.array_equal(model.predict_proba(X), adapted)
    assert np.array_equal(model.fit(X[source], y[source]).predict_proba(X), alone)


@every
def test_copies(task, name):
    """Clones with the same seed and pickles predict the same; inputs stay as they are."""
    X, y, ids = task
    before = X.copy(), y.copy(), ids.copy()
    model = fitted(name, X, y, ids)
    proba = model.predict_proba(X)
    for other in (clone(model).fit(X, y, sample_domain=ids), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict_proba(X), proba)
    assert all(np.array_equal(a, b) for a, b in zip(before, (X, y, ids), strict=True))


@every
def test_file(task, name, tmp_path):
    X, y, ids = task
    target = X[ids < 0]
    model = fitted(name, X, y, ids)
    if name in NOT_SAVED:
        with pytest.raises(mixda.MixdaError, match="cannot be"):
            model.save(tmp_path / "m.mixda", allow_exposed_rows=True)
        return
    model.save(tmp_path / "m.mixda", allow_exposed_rows=True)
    loaded = mixda.load(tmp_path / "m.mixda")
    np.testing.assert_allclose(
        loaded.predict_proba(target), model.predict_proba(target), atol=1e-12
    )
    assert loaded.method == type(model).__name__


@every
def test_names(task, name):
    """Names of classes and columns only name."""
    pd = pytest.importorskip("pandas")
    X, y, ids = task
    classes = np.array(["ball", "inner"])
    frame = pd.DataFrame(X, columns=["speed", "load"])
    plain = fitted(name, X, y, ids).predict_proba(X)
    assert np.array_equal(fitted(name, X, classes[y], ids).predict_proba(X), plain)
    named = fitted(name, frame, classes[y], ids)
    assert named.classes_.tolist() == classes.tolist()
    assert named.feature_names_in_.tolist() == ["speed", "load"]
    np.testing.assert_allclose(named.predict_proba(frame), plain, atol=1e-6)  # columns in memory
    with pytest.raises(mixda.MixdaError, match="feature names"):
        named.predict(frame[["load", "speed"]])


@every
def test_missing_class(task, name):
    """A class may be absent from a source."""
    X, y, ids = task
    kept = ~((ids == 1) & (y == 1))
    model = fitted(name, X[kept], y[kept], ids[kept])
    assert model.classes_.tolist() == [0, 1]
    assert np.isfinite(model.predict_proba(X)).all()


@every
def test_mistakes(task, name):
    X, y, ids = task
    for wrong, words in (
        ((np.where(X.mean() < X, np.inf, X), y, ids), "infinite"),
        ((X, y[:-1], ids), "inconsistent"),
        ((X, y + 0.5, ids), "Unknown label type"),
        ((X, y, ids[:-1]), "sample_domain"),
        ((X, y, -1 - abs(ids)), "sample_domain"),
    ):
        with pytest.raises(mixda.MixdaError, match=words):
            make(name).fit(*wrong)


@pytest.fixture
def skada():
    """Import SKADA late, and undo the switch of scikit-learn's configuration that it makes."""
    before = sklearn.get_config()["enable_metadata_routing"]
    module = pytest.importorskip("skada")
    sklearn.set_config(enable_metadata_routing=True)
    yield module
    sklearn.set_config(enable_metadata_routing=before)


@every
def test_skada(skada, task, name):
    """In a pipeline the method predicts what it predicts alone; splitters and scorers accept it."""
    from skada.metrics import PredictionEntropyScorer, SupervisedScorer
    from skada.model_selection import SourceTargetShuffleSplit

    X, y, ids = task
    target = ids < 0
    masked = np.where(target, -1, y)
    scaled = StandardScaler().fit_transform(X)
    pipeline = skada.make_da_pipeline(StandardScaler(), make(name))
    pipeline.fit(X, masked, sample_domain=ids)
    alone = fitted(name, scaled, masked, ids).predict(scaled[target])
    assert np.array_equal(pipeline.predict(X[target]), alone)
    assert np.array_equal(pipeline.predict(X[target], sample_domain=ids[target]), alone)
    for scorer, labels in (
        (PredictionEntropyScorer(), {}),
        (SupervisedScorer(), {"target_labels": y}),
    ):
        scores = cross_validate(
            skada.make_da_pipeline(StandardScaler(), make(name)),
            X,
            masked,
            params={"sample_domain": ids, **labels},
            cv=SourceTargetShuffleSplit(n_splits=1, test_size=0.3, random_state=0),
            scoring=scorer,
            error_score="raise",
        )["test_score"]
        assert np.isfinite(scores).all()
