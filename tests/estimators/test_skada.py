"""All splitters and scorers of SKADA with one method; test_contract has all methods."""

import numpy as np
import pytest
from sklearn.model_selection import cross_validate
from sklearn.preprocessing import StandardScaler

from mixda.estimators import GMMWBT


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


def model():
    return GMMWBT(n_components=1, random_state=0)


@pytest.mark.parametrize(
    "splitter",
    ["SourceTargetShuffleSplit", "DomainShuffleSplit", "StratifiedDomainShuffleSplit"],
)
def test_splitters(skada, dataset, splitter):
    from skada import metrics, model_selection

    X, y, ids = dataset
    scores = cross_validate(
        skada.make_da_pipeline(StandardScaler(), model()),
        X,
        np.where(ids < 0, -1, y),
        params={"sample_domain": ids, "target_labels": y},
        cv=getattr(model_selection, splitter)(n_splits=2, test_size=0.3, random_state=0),
        scoring=metrics.SupervisedScorer(),
        error_score="raise",
    )["test_score"]
    assert (scores >= 0.95).all()


def test_leave_one_domain_out(skada, dataset):
    from skada.metrics import SupervisedScorer
    from skada.model_selection import LeaveOneDomainOut

    X, y, ids = dataset
    ids = np.concatenate([np.abs(ids), -np.abs(ids)])  # every domain as source and as target
    scores = cross_validate(
        model(),
        np.concatenate([X, X]),
        np.concatenate([y, np.full_like(y, -1)]),
        params={"sample_domain": ids, "target_labels": np.concatenate([y, y])},
        cv=LeaveOneDomainOut(max_n_splits=3, random_state=0),
        scoring=SupervisedScorer(),
        error_score="raise",
    )["test_score"]
    assert len(scores) == 3
    assert (scores >= 0.95).all()


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
def test_scorers(skada, dataset, scorer):
    from skada import metrics
    from skada.model_selection import SourceTargetShuffleSplit

    X, y, ids = dataset
    scores = cross_validate(
        skada.make_da_pipeline(StandardScaler(), model()),
        X,
        np.where(ids < 0, -1, y),
        params={"sample_domain": ids},
        cv=SourceTargetShuffleSplit(n_splits=1, test_size=0.4, random_state=0),
        scoring=getattr(metrics, scorer)(),
        error_score="raise",
    )["test_score"]
    assert np.isfinite(scores).all()
