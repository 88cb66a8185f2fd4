"""Forests and boosted trees as arrays: the same answers as scikit-learn's."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

from mixda import MixdaError
from mixda.estimators._export import rule_of
from mixda.rules import Trees

DATA = {
    "two": make_classification(300, 8, random_state=0),
    "three": load_iris(return_X_y=True),
    "ten": load_digits(return_X_y=True),
}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("forest", [RandomForestClassifier, ExtraTreesClassifier])
def test_forest_rule_predicts_as_scikit_learn(forest, data):
    X, y = DATA[data]
    model = forest(20, max_leaf_nodes=40, random_state=0).fit(X, y)
    proba = rule_of(model, len(model.classes_))(X + 0.1)
    np.testing.assert_allclose(proba, model.predict_proba(X + 0.1), atol=5e-4)  # half precision


@pytest.mark.parametrize("data", DATA)
def test_boosting_rule_predicts_as_scikit_learn(data):
    X, y = DATA[data]
    model = HistGradientBoostingClassifier(max_iter=8, random_state=0).fit(X, y)
    proba = rule_of(model, len(model.classes_))(X)
    np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-5)  # single precision


def test_single_leaf_is_a_constant():
    model = RandomForestClassifier(3, max_depth=1, min_samples_leaf=50).fit(
        np.zeros((60, 1)), np.arange(60) % 3
    )
    proba = rule_of(model, 3)(np.ones((2, 1)))
    np.testing.assert_allclose(proba, model.predict_proba(np.ones((2, 1))), atol=5e-4)


STUMP = {
    "feature": np.array([0, 0, 0]),
    "threshold": np.zeros(3),
    "child": np.array([1, -1, -2]),
    "roots": np.array([0]),
    "leaves": np.eye(2),
    "offset": np.zeros(2),
}


@pytest.mark.parametrize(
    "forged",
    [
        {"child": np.array([0, -1, -2])},  # a node that is its own child would never end
        {"child": np.array([2, -1, -2])},
        {"child": np.array([1, -1, -9])},
        {"roots": np.array([7])},
        {"roots": np.array([0, 2])},  # a child in another tree
        {"roots": np.array([1])},
        {"feature": np.array([-1, 0, 0])},
        {"feature": np.array([0.5, 0, 0])},
        {"offset": np.zeros(3)},
        {"leaves": np.array([[np.nan, 0], [0, 1]])},
    ],
)
def test_forged_trees_are_refused(forged):
    with pytest.raises(MixdaError):
        Trees(**{**STUMP, **forged})


def test_too_few_features_are_refused():
    with pytest.raises(MixdaError, match="2 features, got 1"):
        Trees(**{**STUMP, "feature": np.array([1, 0, 0])})(np.zeros((1, 1)))


def walk(trees, x):
    """Transcription of the definition: one row, one tree after the other."""
    total = trees.offset.copy()
    for node in trees.roots:
        while trees.child[node] >= 0:
            node = trees.child[node] + (x[trees.feature[node]] > trees.threshold[node])
        total += trees.leaves[-1 - trees.child[node]]
    return total


def test_trees_follow_their_definition():
    X, y = DATA["three"]
    forest = ExtraTreesClassifier(9, max_leaf_nodes=12, random_state=0).fit(X, y)
    trees = rule_of(forest, 3).steps[0]
    rows = np.random.default_rng(0).permutation(X.astype(np.float32))
    rows[::7, 1] = np.nan  # goes to the left, because no comparison holds
    np.testing.assert_allclose(trees(rows), [walk(trees, row) for row in rows], atol=1e-12)


def test_forged_trees_are_refused_or_followed():
    """Compiled code walks down the trees of a file, so no array may lead it out of them."""
    X, y = DATA["three"]
    trees = rule_of(ExtraTreesClassifier(3, max_leaf_nodes=6, random_state=0).fit(X, y), 3).steps[0]
    sound = {name: np.array(getattr(trees, name), dtype=np.float64) for name in STUMP}
    rng, rows = np.random.default_rng(0), X[::10].astype(np.float32)
    n_followed = 0
    for _ in range(500):
        arrays = {name: array.copy() for name, array in sound.items()}
        for name in rng.choice(list(STUMP), size=rng.integers(1, 3)):
            values = arrays[name].reshape(-1)
            place = rng.integers(len(values))
            values[place] = rng.choice([values[place] + 1, values[place] - 1, 0, -1, 4, 33, 2**40])
        whole = ("feature", "child", "roots")
        arrays |= {name: arrays[name].astype(np.int64) for name in whole}
        try:
            forged = Trees(**arrays)
            answers = forged(rows)
        except MixdaError:
            continue
        np.testing.assert_allclose(answers, [walk(forged, row) for row in rows], atol=1e-12)
        n_followed += 1
    assert 50 < n_followed < 450
