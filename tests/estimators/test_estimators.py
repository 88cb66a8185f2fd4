"""Estimators: scikit-learn's contract, no leak of target labels, bad input, and what they reach."""

import os
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mixda import MixdaError, Mixture, barycenter, datasets, fit_labeled_mixture, smw2
from mixda.estimators import (
    GMMWBT,
    WBT,
    DaDiL,
    DomainEncoder,
    GMMDaDiL,
    LDAEncoder,
    MLPEncoder,
    SourceOnly,
)

ESTIMATORS = [GMMWBT, GMMDaDiL]
both = pytest.mark.parametrize("Estimator", ESTIMATORS)


@parametrize_with_checks([LDAEncoder(), MLPEncoder((8, 4), max_iter=20)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def task():
    """Three sources and a target that has moved by more than the distance of its classes."""
    rng = np.random.default_rng(0)
    shifts = {0: 0.0, 1: 1.0, 2: -1.0, -4: 5.0}
    X, y, ids = [], [], []
    for k, shift in shifts.items():
        for label, center in enumerate([(0, 0, 0), (4, 0, 4), (0, 4, 8)]):
            X.append(rng.normal(np.array(center) + shift, 0.5, (40, 3)))
            y += [label] * 40
            ids += [k] * 40
    order = rng.permutation(len(y))
    return np.concatenate(X)[order], np.array(y)[order], np.array(ids)[order]


def small(Estimator, **parameters):
    if Estimator is GMMDaDiL:
        parameters.setdefault("n_iter", 20)
    return Estimator(n_components=1, random_state=0, **parameters)


@both
@pytest.mark.parametrize("scale", ["domain", "sources", None])
@pytest.mark.parametrize("encoder", [None, "lda", "mlp"])
def test_adapts(task, Estimator, scale, encoder):
    X, y, ids = task
    target = ids < 0
    source_only = LogisticRegression(max_iter=1000).fit(X[~target], y[~target])
    assert source_only.score(X[target], y[target]) < 0.7
    if encoder == "mlp":
        encoder = MLPEncoder((16, 8), max_iter=60, random_state=0)
    model = small(Estimator, scale=scale, encoder=encoder).fit(X, y, sample_domain=ids)
    # a target far from all sources saturates a network that has never seen it
    floor = 0.6 if isinstance(encoder, MLPEncoder) and scale != "domain" else 0.99
    assert model.score(X[target], y[target]) >= floor
    assert model.target_mixture_.classes.tolist() == [0, 1, 2]


@both
def test_without_target(task, Estimator):
    X, y, ids = task
    source = ids == 0
    model = small(Estimator, preset="paper").fit(X[source], y[source])
    expected = fit_labeled_mixture(X[source], y[source], class_prior="uniform")
    assert np.allclose(model.predict_proba(X), expected.predict_proba(X))
    assert not hasattr(model, "plan_")
    assert not hasattr(model, "dictionary_")


def test_wbt_moves_a_barycenter(task):
    X, y, ids = task
    model = small(GMMWBT).fit(X, y, sample_domain=ids)
    b = model.barycenter_.mixture  # the same components in any order
    assert smw2(b, barycenter(model.source_mixtures_).mixture, beta=1.0) < 1e-6
    assert np.allclose(model.plan_.sum(axis=1), b.weights)
    assert np.allclose(model.plan_.sum(axis=0), model.unlabeled_mixture_.weights)
    moved = model.plan_ / b.weights[:, None] @ model.unlabeled_mixture_.means
    assert np.allclose(model.target_mixture_.means, moved)
    assert np.allclose(model.target_mixture_.labels, b.labels)


def test_dadil_reconstructs(task):
    X, y, ids = task
    seen = []
    model = small(GMMDaDiL, n_iter=5, callback=seen.append).fit(X, y, sample_domain=ids)
    assert model.target_mixture_ == model.dictionary_.reconstruct(-1)
    assert model.dictionary_.coordinates.shape == (4, len(model.dictionary_.atoms))
    assert seen[-1].history.loss.size == model.dictionary_.history.loss.size


@both
@pytest.mark.parametrize("classifier", [LogisticRegression(), RidgeClassifier()])
def test_any_classifier(task, Estimator, classifier):
    X, y, ids = task
    names = np.array(["ball", "inner", "outer"])[y]
    model = small(Estimator, classifier=classifier, n_samples=300).fit(X, names, sample_domain=ids)
    assert model.score(X[ids < 0], names[ids < 0]) >= 0.99
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert not hasattr(classifier, "coef_")  # the given one is cloned


@both
def test_pandas(task, Estimator):
    pd = pytest.importorskip("pandas")
    X, y, ids = task
    frame = pd.DataFrame(X, columns=["speed", "load", "heat"], index=np.arange(len(X)) + 1000)
    labels = pd.Series(y, index=frame.index).astype("Int64")
    labels[ids < 0] = pd.NA
    model = small(Estimator, encoder="lda")
    model.fit(frame, labels, sample_domain=pd.Series(ids, index=frame.index))
    assert model.feature_names_in_.tolist() == ["speed", "load", "heat"]
    plain = small(Estimator, encoder="lda").fit(X, y, sample_domain=ids)
    assert np.array_equal(model.predict(frame), plain.predict(X))
    with pytest.raises(MixdaError, match="feature names"):
        model.predict(frame[["load", "speed", "heat"]])


@both
def test_copies_with_an_encoder(task, Estimator):
    X, y, ids = task
    model = Estimator(n_components=2, encoder=MLPEncoder((8,), max_iter=5), random_state=3)
    model.set_params(encoder__random_state=1)
    before = X.copy(), y.copy(), ids.copy()
    proba = model.fit(X, y, sample_domain=ids).predict_proba(X)
    for other in (clone(model).fit(X, y, sample_domain=ids), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict_proba(X), proba)
    assert all(np.array_equal(a, b) for a, b in zip(before, (X, y, ids), strict=True))


@both
def test_mlp_is_seeded(task, Estimator):
    X, y, ids = task
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = small(Estimator, encoder="mlp").fit(X, y, sample_domain=ids)
        again = small(Estimator, encoder="mlp").fit(X, y, sample_domain=ids)
    assert np.array_equal(first.predict_proba(X), again.predict_proba(X))


@both
def test_rare_classes(task, Estimator):
    X, y, ids = task
    kept = ~((ids == 0) & (y == 1))
    single = np.flatnonzero((ids == 1) & (y == 2))[1:]
    kept[single] = False
    model = Estimator(n_components=2, random_state=0)
    model.fit(X[kept], y[kept], sample_domain=ids[kept])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X[ids < 0], y[ids < 0]) >= 0.9


@both
def test_degenerate_data(task, Estimator):
    X, y, ids = task
    X = np.column_stack([X, np.full(len(X), 7.0)])
    rows = np.concatenate([np.repeat(np.flatnonzero(ids >= 0), 2), np.flatnonzero(ids < 0)[:2]])
    for least, n_components in ((1, 2), (5, 1)):  # more components than samples: limited
        model = Estimator(n_components=5, min_component_rows=least, random_state=0)
        model.fit(X[rows], y[rows], sample_domain=ids[rows])
        assert np.isfinite(model.predict_proba(X)).all()
        assert model.unlabeled_mixture_.n_components == n_components


def test_domain_ids(task):
    X, y, ids = task
    model = small(GMMWBT).fit(X, y, sample_domain=ids)
    renamed = np.select([ids == 0, ids == 1, ids == 2], [3, 10, 90], -7).astype(float)
    other = small(GMMWBT).fit(X, y, sample_domain=renamed)
    assert other.sources_.tolist() == [3, 10, 90]
    assert np.array_equal(other.predict(X), model.predict(X))
    split = np.where(ids < 0, np.where(np.arange(len(ids)) % 2, -1, -2), ids)
    several = small(GMMWBT).fit(X, y, split)
    with pytest.raises(MixdaError, match="sample_domain"):
        several.predict(X)
    for target in (-1, -2):
        rows = (split >= 0) | (split == target)
        alone = small(GMMWBT).fit(X[rows], y[rows], split[rows])
        assert np.array_equal(several.predict_proba(X, target), alone.predict_proba(X))


@both
def test_rows_of_sources(task, Estimator):
    X, y, ids = task
    model = small(Estimator, scale="domain").fit(X, y, sample_domain=ids)
    assert model.score(X, y, sample_domain=ids) >= 0.99
    assert model.score(X[ids < 0], y[ids < 0]) == model.score(X[ids < 0], y[ids < 0], None, -1)
    with pytest.raises(MixdaError, match="allow_source is False"):
        model.predict(X, sample_domain=ids, allow_source=False)


BAD = {
    "empty feature": (
        lambda X, y, i: (np.where(np.arange(X.shape[1]) == 0, np.nan, X), y, i),
        "feature 0",
    ),
    "infinite": (lambda X, y, i: (np.where(X > 5, np.inf, X), y, i), "infinite"),
    "dimensions": (lambda X, y, i: (X[:, 0], y, i), "2D array"),
    "lengths": (lambda X, y, i: (X, y[:-1], i), "inconsistent numbers of samples"),
    "empty": (lambda X, y, i: (X[:0], y[:0], i[:0]), "0 sample"),
    "one class": (lambda X, y, i: (X, np.where(i >= 0, 1, y), i), "one class only"),
    "no source": (lambda X, y, i: (X, y, -1 - abs(i)), "sample_domain has no source"),
    "no target": (lambda X, y, i: (X, y, abs(i)), "sample_domain has no target"),
    "unlabeled row": (lambda X, y, i: (X, np.where(i == 1, np.nan, y), i), "in domain 1"),
    "None": (
        lambda X, y, i: (X, [None if k == 2 else v for v, k in zip(y, i, strict=True)], i),
        "in domain 2",
    ),
    "continuous": (lambda X, y, i: (X, y + 0.5, i), "Unknown label type"),
    "no labels": (lambda X, y, i: (X, None, i), "requires y"),
    "domain shape": (lambda X, y, i: (X, y, i[:-1]), "one id per row of X"),
    "domain names": (
        lambda X, y, i: (X, y, np.where(i < 0, "t", "s")),
        "sample_domain must be integers",
    ),
    "domain floats": (lambda X, y, i: (X, y, i + 0.5), "sample_domain must be integers"),
    "domain NaN": (
        lambda X, y, i: (X, y, np.where(i < 0, np.nan, i)),
        "sample_domain must be integers",
    ),
}


@both
@pytest.mark.parametrize("kind", BAD)
def test_bad_data(task, Estimator, kind):
    spoil, message = BAD[kind]
    with pytest.raises(MixdaError, match=message):
        small(Estimator).fit(*spoil(*task))


@both
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be a positive integer"),
        ({"target_components": 1.5}, "target_components must be a positive integer"),
        ({"class_prior": "equal"}, "class_prior must be one of"),
        ({"min_std": -1.0}, "min_std must be"),
        ({"beta": -1.0}, "beta must be"),
        ({"component_weights": "some"}, "component_weights must be one of"),
        ({"encoder": "cnn"}, "encoder must be one of"),
        ({"encoder": 3}, "encoder must be None, 'lda', 'mlp' or a transformer"),
        ({"scale": "target"}, "scale must be one of"),
        ({"classifier": "svm"}, "classifier must be 'map', 'product' or"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_parameters(task, Estimator, parameters, message):
    X, y, ids = task
    with pytest.raises(MixdaError, match=message):
        Estimator(**parameters).fit(X, y, sample_domain=ids)


@pytest.mark.parametrize("scale", ["domain", "sources"])
def test_scaling(task, scale):
    X, y, ids = task
    encoder = DomainEncoder(scale, None)
    Z = encoder.fit_transform(X, y[ids >= 0], ids)
    for k in np.unique(ids):
        rows = ids == k
        scaler = StandardScaler().fit(X[rows] if scale == "domain" else X[ids >= 0])
        assert np.allclose(Z[rows], scaler.transform(X[rows]))
    assert np.array_equal(encoder.transform(X[ids < 0]), Z[ids < 0])


def test_encoders(task):
    X, y, ids = task
    source = ids >= 0
    Z = DomainEncoder(None, "lda").fit_transform(X, y[source], ids)
    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(X[source], y[source])
    assert np.allclose(np.abs(Z), np.abs(lda.transform(X)))
    Z = DomainEncoder(None, PCA(2)).fit_transform(X, y[source], ids)
    assert np.allclose(Z, PCA(2).fit(X[source]).transform(X))


def test_lda_features():
    """Exact with two classes; as scikit-learn with more; with many features on components."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 90)
    X = rng.normal(size=(90, 40)) * rng.uniform(0.2, 5, 40) + np.outer(y, rng.normal(size=40))
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X, y)
    W = LDAEncoder().fit(X, y).scalings_
    assert abs(np.corrcoef(W[:, 0], lda.coef_[0])[0, 1]) > 1 - 1e-9
    assert np.isclose((W.T @ lda.covariance_ @ W).item(), 1.0)
    y = rng.integers(0, 4, 90)
    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(X, y)
    ours = np.abs(LDAEncoder().fit(X, y).scalings_)
    assert np.allclose(ours, np.abs(lda.scalings_[:, :3]), rtol=1e-4, atol=1e-6)
    means = rng.normal(size=(4, 40))
    reduced = LDAEncoder(max_features=10).fit(X + 9 * means[y], y).transform(X + 9 * means[y])
    assert LogisticRegression().fit(reduced, y).score(reduced, y) == 1.0
    one_row_each = LDAEncoder().fit(np.eye(3), [0, 1, 2]).transform(np.eye(3))
    assert np.isfinite(one_row_each).all()


def test_mlp_features(task):
    X, y, _ = task
    encoder = MLPEncoder((16, 8), max_iter=20, random_state=0).fit(X, y)
    network = encoder.network_
    logits = encoder.transform(X) @ network.coefs_[-1] + network.intercepts_[-1]
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    assert np.allclose(proba / proba.sum(axis=1, keepdims=True), network.predict_proba(X))


@both
def test_shifted_toy(Estimator):
    task = datasets.make_shifted_toy(random_state=2).as_task()
    source = task.sample_domain > 0
    source_only = LogisticRegression().fit(task.X[source], task.y[source])
    assert source_only.score(task.X_target, task.y_target) < 0.92
    model = Estimator(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    assert model.score(task.X_target, task.y_target) >= 0.99


@pytest.mark.data
@pytest.mark.skipif("MIXDA_DATA" not in os.environ, reason="MIXDA_DATA names no folder")
@pytest.mark.parametrize("target", ["1797 rpm", "1772 rpm", "1730 rpm"])
@both
def test_cwru(Estimator, target):
    task = datasets.load_cwru().as_task(target)
    model = Estimator(encoder="mlp", random_state=0)
    model.fit(task.X, task.y, sample_domain=task.sample_domain)
    assert isinstance(model.target_mixture_, Mixture)
    assert model.score(task.X_target, task.y_target) >= 0.99


def _small_task(scale=1.0, offset=0.0):
    rng = np.random.default_rng(0)
    y, ids = np.tile([0, 1], 30), np.repeat([1, 2, -1], 20)
    X = rng.normal(size=(len(y), 2)) + 6.0 * y[:, None] + 0.2 * ids[:, None]
    return scale * X + offset, y, ids


@pytest.mark.parametrize("estimator", [GMMWBT, GMMDaDiL])
@pytest.mark.parametrize(("scale", "offset"), [(1e-12, 0.0), (1e20, 0.0), (1.0, 1e8)])
def test_unit_and_origin(estimator, scale, offset):
    X, y, ids = _small_task()
    expected = estimator(random_state=0).fit(X, y, sample_domain=ids).predict(X)
    X, y, ids = _small_task(scale, offset)
    found = estimator(random_state=0).fit(X, y, sample_domain=ids)
    np.testing.assert_array_equal(found.predict(X), expected)
    assert found.score(X[ids < 0], y[ids < 0]) == 1.0


def test_overflow():
    X, y, ids = _small_task()
    with pytest.raises(MixdaError, match="rescale"):
        GMMWBT().fit(X * 1e160, y, sample_domain=ids)
    with pytest.raises(MixdaError, match="rescale"):
        GMMWBT().fit(X, y, sample_domain=ids).predict(X * 1e160)


def test_encoder_fails():
    X, y, ids = _small_task()
    with pytest.raises(MixdaError, match="encoder could not be fitted"):
        GMMWBT(encoder=PCA(X.shape[1] + 1)).fit(X, y, sample_domain=ids)


def test_constant_features():
    X, y, ids = _small_task()
    assert np.isfinite(GMMWBT().fit(np.ones_like(X), y, sample_domain=ids).predict_proba(X)).all()


@both
def test_presets(task, Estimator):
    X, y, ids = task
    default, paper = (
        small(Estimator, preset=name).fit(X, y, sample_domain=ids) for name in ("default", "paper")
    )
    assert default.encoder_.scale == "domain"
    assert paper.encoder_.rule() is None
    assert default.target_mixture_.n_features == 2
    assert default.to_model().settings["parameters"]["encoder"] == "lda"
    other = small(Estimator).set_params(random_state=5).fit(X, y, sample_domain=ids)
    assert np.array_equal(other.predict_proba(X), default.predict_proba(X))  # nothing is random
    explicit = {"class_prior": "uniform", "n_init": 1, "encoder": None, "classifier": "map"}
    same = small(Estimator, scale=None, **explicit).fit(X, y, sample_domain=ids)
    assert np.array_equal(same.predict_proba(X), paper.predict_proba(X))
    with pytest.raises(MixdaError, match="preset"):
        small(Estimator, preset="best").fit(X, y, sample_domain=ids)


@pytest.mark.parametrize(("left", "scale"), [(0.1, "domain"), (1.0, "sources")])
def test_scale_if_a_source_lacks_a_class(task, left, scale):
    """One source has none of its rows, and the others a part of them."""
    X, y, ids = task
    rare = np.random.default_rng(0).random(len(y)) > left
    kept = (y != 2) | (ids < 0) | ((ids != 0) & ~rare)
    model = small(GMMWBT).fit(X[kept], y[kept], sample_domain=ids[kept])
    assert model.encoder_.scale == scale
    assert ("lacks classes" in model.to_model().settings["space"]) is (scale == "sources")


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_infinite_classes_and_ids():
    X, y, ids = _small_task()
    with pytest.raises(MixdaError, match="infinity"):
        GMMWBT().fit(X, np.where(y == 0, np.inf, 1.0), sample_domain=ids)
    with pytest.raises(MixdaError, match="sample_domain must be integers"):
        GMMWBT().fit(X, y, sample_domain=np.where(ids < 0, -1e30, 1e30))


@pytest.mark.parametrize(
    "model",
    [
        GMMWBT(preset="paper"),
        GMMDaDiL(preset="paper"),
        GMMDaDiL(),
        DaDiL(method="R", n_epochs=20),
        DaDiL(method="E", n_epochs=20),
        WBT(),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", [0, 1])
def test_incomplete_sources(model, seed):
    rng = np.random.default_rng(seed)
    centers, classes = 6.0 * np.array([[0, 0], [1, 0], [0, 1]]), np.repeat(np.arange(3), 40)

    def domain(shift):
        return rng.normal(size=(120, 2)) + centers[classes] + shift

    X = np.vstack([*(domain(0.3 * k)[classes != k] for k in range(3)), domain([1.0, 0.5])])
    y = np.concatenate([*(classes[classes != k] for k in range(3)), np.full(120, -1)])
    ids = np.repeat([1, 2, 3, -4], [80, 80, 80, 120])
    fitted = clone(model).set_params(random_state=0).fit(X, y, sample_domain=ids)
    assert fitted.score(X[-120:], classes) > 0.95


def test_one_hot_source_weights():
    task = datasets.make_shifted_toy(random_state=2).as_task()
    model = GMMWBT(source_weights=[0, 1, 0], random_state=0)
    model.fit(task.X, task.y, sample_domain=task.sample_domain)
    distance = smw2(model.barycenter_.mixture, model.source_mixtures_[1])
    assert distance == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        SourceOnly(classifier=RandomForestClassifier(5)),
        GMMWBT(classifier=RandomForestClassifier(5)),
        GMMWBT(encoder=MLPEncoder((4,), max_iter=5)),
    ],
    ids=["samples", "mixture", "encoder"],
)
def test_seed_reaches_all(task, model):
    X, y, ids = task
    seeded = clone(model).set_params(random_state=3)
    first, again = (clone(seeded).fit(X, y, sample_domain=ids) for _ in range(2))
    assert np.array_equal(first.predict_proba(X[ids < 0]), again.predict_proba(X[ids < 0]))


def test_whitened_encoder(task):
    X, y, ids = task
    X = np.hstack([X, X[:, :1]])  # of less than full rank
    model = SourceOnly(encoder=PCA(whiten=True)).fit(X, y, sample_domain=ids)
    target = X[ids < 0]
    assert np.allclose(model.to_model().predict_proba(target), model.predict_proba(target))


def test_early_stopping(task):
    """Learning stops at the first step after five that lowers the loss by less than 2 %."""
    X, y, ids = task

    def losses(**options):
        model = GMMDaDiL(random_state=0, **options).fit(X, y, sample_domain=ids)
        return np.asarray(model.dictionary_.history.loss)

    early, whole = losses(), losses(n_iter=100, target_fit=0.0)
    small = np.flatnonzero(whole[5:] > 0.98 * whole[4:-1])
    assert len(early) == 6 + small[0] < len(whole)
    np.testing.assert_array_equal(early, whole[: len(early)])
    assert len(losses(preset="paper", target_fit=0.0)) > len(early)
    assert len(losses(n_iter=2)) == 3
