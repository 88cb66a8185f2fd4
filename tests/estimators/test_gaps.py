"""Missing values in estimators: integrated out or filled, the same at fit and predict."""

from __future__ import annotations

import numpy as np
import pytest

from mixda import (
    GMMOTDA,
    GMMWBT,
    WJDOT,
    AdaptedModel,
    GMMDaDiL,
    MixdaError,
    NoTargetWarning,
    SourceOnly,
)
from mixda.datasets import make_shifted_toy
from mixda.estimators._gaps import fit_imputer

EXACT = [
    GMMWBT(scale="sources", preset="paper", random_state=0),
    GMMOTDA(scale="sources", preset="paper", random_state=0),
]
FILLED = [SourceOnly(), GMMWBT(random_state=0), GMMDaDiL(random_state=0, n_iter=5), WJDOT()]


@pytest.fixture(scope="module")
def task():
    toy = make_shifted_toy(random_state=2).as_task()
    X = np.hstack([toy.X, toy.X + 0.1 * np.random.default_rng(0).standard_normal(toy.X.shape)])
    gaps = X.copy()
    gaps[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    y = toy.y.copy()
    y[toy.sample_domain < 0] = toy.y_target
    return X, gaps, y, toy.sample_domain


@pytest.mark.parametrize("estimator", [*EXACT, *FILLED], ids=lambda e: type(e).__name__)
def test_fit_and_predict_with_gaps(task, estimator, tmp_path):
    X, gaps, y, ids = task
    target = ids < 0
    complete = estimator.fit(X, y, sample_domain=ids).score(X[target], y[target])
    estimator.fit(gaps, y, sample_domain=ids)
    assert estimator.score(gaps[target], y[target]) > complete - 0.08
    estimator.save(tmp_path / "m.mixda", allow_exposed_rows=True)
    model = AdaptedModel.load(tmp_path / "m.mixda")
    expected = estimator.predict_proba(gaps[target])
    np.testing.assert_allclose(model.predict_proba(gaps[target]), expected, atol=1e-12)
    assert model.outliers(gaps[target]).mean() < 0.05


@pytest.mark.parametrize("estimator", [EXACT[0], FILLED[0]], ids=lambda e: type(e).__name__)
def test_gaps_only_in_rows_to_predict(task, estimator):
    X, gaps, y, ids = task
    estimator.fit(X, y, sample_domain=ids)
    target = ids < 0
    complete = estimator.score(X[target], y[target])
    assert estimator.score(gaps[target], y[target]) > complete - 0.08
    model = estimator.to_model()
    expected = estimator.predict_proba(gaps[target])
    np.testing.assert_allclose(model.predict_proba(gaps[target]), expected, atol=1e-12)


def test_learned_features_need_gaps_in_the_fit(task):
    X, gaps, y, ids = task
    estimator = SourceOnly(encoder="lda").fit(X, y, sample_domain=ids)
    with pytest.raises(MixdaError, match="NaN"):
        estimator.predict(gaps)


def test_posterior_without_a_feature(task):
    X, _, y, ids = task
    estimator = GMMWBT(scale="sources", preset="paper", random_state=0).fit(X, y, sample_domain=ids)
    hidden = X[ids < 0].copy()
    hidden[:, 0] = np.nan
    mixture = estimator.target_mixture_
    Z = estimator.encoder_.transform(X[ids < 0])[:, 1:]
    alone = type(mixture)(
        mixture.weights, mixture.means[:, 1:], mixture.stds[:, 1:], mixture.labels
    )
    np.testing.assert_allclose(
        estimator.predict_proba(hidden), alone.predict_proba(Z), rtol=1e-9, atol=1e-12
    )


def test_feature_without_a_value_in_one_domain(task):
    X, _, y, ids = task
    target = ids < 0
    for domain in (1, ids.min()):
        gaps = X.copy()
        gaps[ids == domain, 3] = np.nan
        for estimator in (EXACT[0], FILLED[0]):
            complete = estimator.fit(X, y, sample_domain=ids).score(X[target], y[target])
            estimator.fit(gaps, y, sample_domain=ids)
            assert estimator.score(gaps[target], y[target]) > complete - 0.1


def test_imputer_does_not_read_target_labels(task):
    _, gaps, y, ids = task
    estimator = SourceOnly().fit(gaps, y, sample_domain=ids)
    other = SourceOnly().fit(gaps, np.where(ids < 0, y[0], y), sample_domain=ids)
    assert estimator.imputer_ == other.imputer_


def test_imputer_fills_from_the_same_cluster():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 1.0], [9.0, 7.0]], 50, axis=0) + 0.01 * rng.standard_normal((100, 2))
    X[[0, 99], 1] = np.nan
    np.testing.assert_allclose(fit_imputer(X).impute(X)[[0, 99], 1], [1.0, 7.0], atol=0.1)


def test_text(task):
    pandas = pytest.importorskip("pandas")
    X, _, y, ids = task
    frame = pandas.DataFrame(X).rename(columns=str).assign(machine="M1")
    with pytest.raises(MixdaError, match=r"X.*'machine'.*OneHotEncoder"):
        GMMWBT().fit(frame, y, sample_domain=ids)


def test_tag():
    assert GMMWBT().__sklearn_tags__().input_tags.allow_nan


def test_forgotten_domains():
    X, y = np.arange(8.0)[:, None], [0, 0, 0, 1, 1, 1, -1, -1]
    with pytest.raises(MixdaError, match=r"y is -1 in 2 rows.*sample_domain"):
        GMMWBT().fit(X, y)
    with pytest.warns(NoTargetWarning, match="sample_domain"):
        GMMWBT(n_components=1).fit(X[:6], np.where(np.array(y[:6]) == 0, -1, 1))
