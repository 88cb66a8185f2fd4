"""AutoMSDA in hard places: rows of sources, experts that cannot be fitted or kept."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import MinMaxScaler

from mixda import GMMWBT, WBT, AutoMSDA, GMMDaDiL
from mixda.datasets import make_shifted_toy


def far_apart():
    """Domains with classes side by side, moved by several times their distance."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 320)
    ids = np.repeat([3, 5, 9, -1], 80)
    shift = np.array([[0, 0], [12, 3], [-12, 5], [25, -4]]).repeat(80, axis=0)
    X = rng.normal(size=(320, 2)) + np.c_[4.0 * y, 0.0 * y] + shift
    return X, y, ids


def test_rows_of_sources_have_their_own_scale():
    X, y, ids = far_apart()
    model = AutoMSDA(random_state=0).fit(X, np.where(ids < 0, -1, y), sample_domain=ids)
    source = ids >= 0
    assert model.score(X[source], y[source], sample_domain=ids[source]) > 0.95
    assert model.score(X[source], y[source]) < 0.8  # taken for rows of the target
    together = model.predict_proba(X, sample_domain=ids)[~source]
    assert np.allclose(together, model.predict_proba(X[~source]), atol=1e-12)


def test_quite_other_shares_of_the_classes_are_said():
    """The sources are balanced; nine of ten rows of the target are of one class, and it moved."""
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(240) % 4, np.zeros(108, dtype=int), np.arange(12) % 3 + 1]
    ids = np.repeat([0, 1, 2, -1], [80, 80, 80, 120])
    shift = 0.8 * rng.normal(size=(4, 8))[ids]
    X = 2.0 * rng.normal(size=(4, 8))[y] + rng.normal(size=(360, 8)) + shift
    model = AutoMSDA(random_state=0).fit(X, np.where(ids < 0, -1, y), sample_domain=ids)
    assert model.score(X[ids < 0], y[ids < 0]) < 0.7
    assert "if the truth is nearer to the latter" in model.trust_.reason
    balanced = np.r_[0:240, 240:270, 348:360]
    model.fit(X[balanced], y[balanced], sample_domain=ids[balanced])
    assert "nearer" not in model.trust_.reason


@pytest.mark.parametrize("kind", ["flat within classes", "one sample per class"])
def test_what_discriminants_cannot_take_is_left_as_it_is(kind):
    rng = np.random.default_rng(0)
    if kind == "flat within classes":
        y = rng.integers(0, 3, 160)
        X, ids = 5.0 * np.eye(3)[y], np.repeat([1, 2, -1], [60, 60, 40])
    else:
        y = np.arange(90) % 30
        X, ids = rng.normal(size=(90, 4)) + 9.0 * y[:, None], np.repeat([1, 2, -1], 30)
    model = AutoMSDA(random_state=0).fit(X, np.where(ids < 0, -1, y), sample_domain=ids)
    assert model.score(X[ids < 0], y[ids < 0]) > 0.9


@pytest.mark.parametrize(
    "candidate",
    [WBT(classifier=RandomForestClassifier(3)), GMMWBT(encoder=MinMaxScaler())],
    ids=["classifier", "encoder"],
)
def test_a_candidate_that_cannot_be_kept_is_refused_after_the_first_trial(candidate, monkeypatch):
    task = make_shifted_toy(random_state=2).as_task()
    fits = []
    monkeypatch.setattr(AutoMSDA, "_keep", lambda *_: fits.append("the end"))
    model = AutoMSDA({"mine": candidate, "gmm": GMMDaDiL(n_iter=2)}, random_state=0)
    with pytest.raises(ValueError, match="cannot be kept in a model"):
        model.fit(task.X, task.y, sample_domain=task.sample_domain)
    assert not fits


def test_the_benchmark_of_the_choice_judges_every_candidate():
    path = Path(__file__).parents[2] / "benchmarks" / "selection.py"
    spec = importlib.util.spec_from_file_location("selection_benchmark", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    task = make_shifted_toy(random_state=2).as_task()
    model = script.Judged(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    assert set(model.candidate_rules_) == set(model.scores_)
    taken = model.candidate_rules_[model.choice_](task.X_target).argmax(axis=1)
    assert np.array_equal(model.classes_[taken], model.predict(task.X_target))
