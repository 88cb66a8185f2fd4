"""Several targets: one estimator each, and never a silent merge."""

import warnings

import numpy as np
import pandas as pd
import pytest

import mixda
from mixda import MixdaError


@pytest.fixture(scope="module")
def task():
    """Two sources and two targets that moved in opposite directions, as a table."""
    rng = np.random.default_rng(0)
    X, y, ids = [], [], []
    for k, shift in {0: 0.0, 1: 0.5, -1: 2.0, -2: -2.0}.items():
        labels = rng.integers(0, 2, 80)
        X.append(rng.normal(0.0, 0.4, (80, 2)) + 4.0 * labels[:, None] + shift)
        y.append(labels)
        ids.append(np.full(80, k))
    return pd.DataFrame(np.vstack(X), columns=["a", "b"]), np.concatenate(y), np.concatenate(ids)


METHODS = {
    "GMMWBT": lambda: mixda.GMMWBT(1, random_state=0),
    "SourceOnly": lambda: mixda.SourceOnly(scale="domain"),
}


@pytest.mark.parametrize("name", METHODS)
def test_one_estimator_per_target(task, name):
    X, y, ids = task
    model = METHODS[name]().fit(X, y, sample_domain=ids)
    assert list(model.targets_) == [-1, -2]
    for target in (-1, -2):
        rows = (ids >= 0) | (ids == target)
        alone = METHODS[name]().fit(X[rows], y[rows], sample_domain=ids[rows])
        own = ids == target
        np.testing.assert_array_equal(
            model.predict_proba(X[own], ids[own]), alone.predict_proba(X[own])
        )
        assert model.targets_[target].score(X[own], y[own]) > 0.95
    mixed = np.random.default_rng(1).permutation(len(X))
    proba = model.predict_proba(X.iloc[mixed], ids[mixed])
    np.testing.assert_allclose(proba, model.predict_proba(X, ids)[mixed], atol=1e-12)
    sources = model.predict_proba(X[ids == 0], 0)
    both = [part.predict_proba(X[ids == 0], 0) for part in model.targets_.values()]
    np.testing.assert_allclose(sources, np.mean(both, axis=0), atol=1e-12)


def test_what_is_about_one_target(task, tmp_path):
    X, y, ids = task
    model = mixda.GMMDaDiL(1, n_iter=3, random_state=0).fit(X, y, sample_domain=ids)
    with pytest.raises(MixdaError, match=r"sample_domain.*-1, -2"):
        model.predict(X)
    with pytest.raises(MixdaError, match=r"target -7.*-1, -2"):
        model.predict(X, -7)
    for use in (lambda: model.save(tmp_path / "m.mixda"), lambda: model.partial_fit(X, None, -1)):
        with pytest.raises(MixdaError, match=r"targets_\[-1\]"):
            use()
    model.targets_[-2].save(tmp_path / "m.mixda", allow_exposed_rows=True)
    model.fit(X[ids != -2], y[ids != -2], sample_domain=ids[ids != -2])
    assert not hasattr(model, "targets_")
    model.predict(X)


def test_few_labels_of_each_target(task):
    X, y, ids = task
    known = (ids >= 0) | (np.arange(len(ids)) % 10 == 0)
    labels = np.where(known, y.astype(object), None)
    options = {
        "candidates": {"OT": mixda.GMMOTDA(n_components=1)},
        "max_rows": 40,
        "random_state": 0,
    }
    model = mixda.AutoMSDA(target_labels="use", **options).fit(X, labels, sample_domain=ids)
    assert model.score(X[ids < 0], y[ids < 0], sample_domain=ids[ids < 0]) > 0.8
    assert model.targets_[-1].trust_.accuracy is not None


def test_target_only(task):
    X, y, ids = task
    model = mixda.TargetOnly().fit(X, y, ids, target_labels=y[ids < 0])
    assert model.score(X[ids < 0], y[ids < 0], sample_domain=ids[ids < 0]) > 0.95
    with pytest.raises(MixdaError, match=r"target_labels.*160"):
        mixda.TargetOnly().fit(X, y, ids, target_labels=y[:3])


def test_forgotten_domains(task):
    X, y, _ = task
    with pytest.warns(mixda.NoTargetWarning, match="sample_domain") as caught:
        mixda.GMMWBT(1, random_state=0).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            mixda.GMMWBT(1, random_state=0).fit(X, y)
    assert not caught  # it was told once
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", mixda.NoTargetWarning)
        mixda.GMMWBT(1, random_state=0).fit(X, y)
    with pytest.raises(MixdaError, match=r"-1.*sample_domain"):
        mixda.GMMWBT(1).fit(X, np.where(np.arange(len(y)) % 5 == 0, -1, y))
