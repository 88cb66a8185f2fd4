"""The estimators inside SKADA: its pipelines, splitters and scorers, as they are."""

import numpy as np
import pytest
from sklearn.model_selection import cross_validate
from sklearn.preprocessing import StandardScaler

from mixda.estimators import GMMWBT, GMMDaDiL

both = pytest.mark.parametrize("Estimator", [GMMWBT, GMMDaDiL])


@pytest.fixture(scope="module", autouse=True)
def skada():
    """Import SKADA late, and undo the switch of scikit-learn's configuration that it makes."""
    import sklearn

    before = sklearn.get_config()
    module = pytest.importorskip("skada")
    sklearn.set_config(enable_metadata_routing=True)
    yield module
    sklearn.set_config(enable_metadata_routing=before["enable_metadata_routing"])


@pytest.fixture(scope="module")
def dataset():
    """Two sources and two classes; the target has moved."""
    rng = np.random.default_rng(0)
    X, y, ids = [], [], []
    for k, shift in {1: 0.0, 2: 1.0, -3: 3.0}.items():
        for label in (0, 1):
            X.append(rng.normal([4.0 * label + shift, shift], 0.5, (60, 2)))
            y += [label] * 60
            ids += [k] * 60
    return np.concatenate(X), np.array(y), np.array(ids)


def model(Estimator):
    few = {"n_iter": 20} if Estimator is GMMDaDiL else {}
    return Estimator(n_components=1, random_state=0, **few)


@both
def test_pipeline(skada, dataset, Estimator):
    X, y, ids = dataset
    pipeline = skada.make_da_pipeline(StandardScaler(), model(Estimator))
    masked = np.where(ids < 0, -1, y)
    pipeline.fit(X, masked, sample_domain=ids)
    target = ids < 0
    assert pipeline.score(X[target], y[target], sample_domain=ids[target]) >= 0.99
    alone = model(Estimator).fit(StandardScaler().fit_transform(X), masked, ids)
    expected = alone.predict(StandardScaler().fit_transform(X)[target])
    assert np.array_equal(pipeline.predict(X[target], sample_domain=ids[target]), expected)
    assert np.array_equal(pipeline.predict(X[target]), expected)
    proba = pipeline.predict_proba(X, sample_domain=ids, allow_source=True)
    assert proba.shape == (len(X), 2)


@both
@pytest.mark.parametrize(
    "splitter",
    ["SourceTargetShuffleSplit", "DomainShuffleSplit", "StratifiedDomainShuffleSplit"],
)
def test_splitters_with_the_supervised_scorer(skada, dataset, Estimator, splitter):
    from skada import metrics, model_selection

    X, y, ids = dataset
    scores = cross_validate(
        skada.make_da_pipeline(StandardScaler(), model(Estimator)),
        X,
        np.where(ids < 0, -1, y),
        params={"sample_domain": ids, "target_labels": y},
        cv=getattr(model_selection, splitter)(n_splits=2, test_size=0.3, random_state=0),
        scoring=metrics.SupervisedScorer(),
        error_score="raise",
    )["test_score"]
    assert (scores >= 0.95).all()


@both
def test_leave_one_domain_out(skada, dataset, Estimator):
    from skada.metrics import SupervisedScorer
    from skada.model_selection import LeaveOneDomainOut

    X, y, ids = dataset
    ids = np.concatenate([np.abs(ids), -np.abs(ids)])  # every domain as source and as target
    scores = cross_validate(
        model(Estimator),
        np.concatenate([X, X]),
        np.concatenate([y, np.full_like(y, -1)]),
        params={"sample_domain": ids, "target_labels": np.concatenate([y, y])},
        cv=LeaveOneDomainOut(max_n_splits=3, random_state=0),
        scoring=SupervisedScorer(),
        error_score="raise",
    )["test_score"]
    assert len(scores) == 3
    assert (scores >= 0.95).all()


@both
@pytest.mark.parametrize(
    "scorer",
    [
        "PredictionEntropyScorer",
        "ImportanceWeightedScorer",
        "SoftNeighborhoodDensity",
        "DeepEmbeddedValidation",
        "CircularValidation",
    ],
)
def test_scorers_without_target_labels(skada, dataset, Estimator, scorer):
    from skada import metrics
    from skada.model_selection import SourceTargetShuffleSplit

    X, y, ids = dataset
    scores = cross_validate(
        skada.make_da_pipeline(StandardScaler(), model(Estimator)),
        X,
        np.where(ids < 0, -1, y),
        params={"sample_domain": ids},
        cv=SourceTargetShuffleSplit(n_splits=1, test_size=0.4, random_state=0),
        scoring=getattr(metrics, scorer)(),
        error_score="raise",
    )["test_score"]
    assert np.isfinite(scores).all()
