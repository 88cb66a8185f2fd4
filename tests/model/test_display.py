"""Representations are short and escaped, and scikit-learn's tools accept a loaded model."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import mixda
from mixda.datasets import make_shifted_toy
from mixda.model import Trust

TASK = make_shifted_toy(random_state=2).as_task()
NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    estimator = mixda.GMMDaDiL(random_state=0)
    estimator.fit(TASK.X, TASK.y, sample_domain=TASK.sample_domain)
    path = tmp_path_factory.mktemp("models") / "m.mixda"
    estimator.save(path, [NASTY, "b", "c", "plant"], allow_exposed_rows=True)
    return mixda.load(path)


def test_repr_fits_on_two_lines(model):
    assert len(repr(model)) < 250
    assert "GMMDaDiL" in repr(model)
    assert "plant" in repr(model)
    assert repr(model.dictionary) == "Dictionary(n_atoms=3, n_components=6, n_domains=4)"


def test_html_is_escaped(model):
    trust = Trust(0.9, 0.8, 0.95, 0.8, reason=NASTY)
    mixture = replace(model.labeled_target, info={"name": NASTY})
    shown = [replace(model, trust=trust), trust, mixture, model.dictionary]
    for value in shown:
        html = value._repr_html_()
        assert html.startswith("<div>")
        assert "<script" not in html
    assert "90 %" in trust._repr_html_()


def test_loaded_model_is_a_classifier(model):
    assert is_classifier(model)
    check_is_fitted(model)
    assert get_tags(model).estimator_type == "classifier"
    np.testing.assert_array_equal(model.classes_, model.classes)
    accuracy = model.score(TASK.X_target, TASK.y_target)
    assert accuracy == np.mean(model.predict(TASK.X_target) == TASK.y_target)
    assert accuracy > 0.95


def test_inspection_works(model):
    importance = permutation_importance(
        model, TASK.X_target, TASK.y_target, n_repeats=2, random_state=0
    )
    assert importance.importances_mean.max() > 0.1


def test_calibration_works(model):
    calibrated = CalibratedClassifierCV(FrozenEstimator(model), cv=2)
    calibrated.fit(TASK.X_target, TASK.y_target)
    assert calibrated.score(TASK.X_target, TASK.y_target) > 0.95
