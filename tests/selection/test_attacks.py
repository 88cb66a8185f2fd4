"""AutoMSDA with vague shares, members that fail or cannot be saved, and labels in any form."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from mixda import GMMWBT, AutoMSDA, MixdaError, SourceOnly
from mixda.selection._members import make_members

CENTERS = np.array([[-2.0, 0.0], [2.0, 0.0]])
QUICK = {"max_folds": 2, "max_rows": 60, "random_state": 0}


def make_task(n=40, n_sources=3, n_target=60, shares=(0.5, 0.5), move=0.0, seed=0):
    """Two classes at -2 and 2; each domain is moved, the target by `move`."""
    rng = np.random.default_rng(seed)
    X, y, ids = [], [], []
    for k, size in enumerate([n] * n_sources + [n_target]):
        last = k == n_sources
        codes = np.repeat([0, 1], [round(size * shares[0]), size - round(size * shares[0])])
        codes = codes if last else np.arange(size) % 2
        X.append(CENTERS[codes] + rng.normal(size=(size, 2)) + (move if last else 0.3 * k))
        y.append(codes)
        ids.append(np.full(size, -1 if last else k))
    return np.vstack(X), np.concatenate(y), np.concatenate(ids)


def proba(model, X, y, ids):
    return model.fit(X, y, sample_domain=ids).predict_proba(X[ids < 0])


@pytest.mark.parametrize("vague", [{}, {0: (0.0, 1.0)}, {0: (0.2, 0.8)}])
def test_shares_that_say_nothing_change_nothing(vague):
    X, y, ids = make_task(move=2.5)
    told = proba(AutoMSDA(target_shares=vague, **QUICK), X, y, ids)
    blind = proba(AutoMSDA(**QUICK), X, y, ids)
    assert (told.argmax(axis=1) == blind.argmax(axis=1)).mean() > 0.97


def test_a_range_limits_what_is_estimated():
    X, y, ids = make_task(n=100, n_target=100, shares=(0.95, 0.05))
    told = AutoMSDA(target_shares={0: (0.3, 0.7)}, **QUICK)
    assert 0.25 < proba(told, X, y, ids)[:, 0].mean() < 0.75
    assert "given" not in told.trust_.reason


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("candidates", SourceOnly(), GMMWBT()),
        ("classifiers", GaussianNB(), LogisticRegression(C=1e-6)),
    ],
)
def test_a_checkpoint_tells_members_of_the_same_name_apart(tmp_path, kind, first, second):
    task = make_task()
    AutoMSDA(**{kind: {"mine": first}}, checkpoint=tmp_path / "c", **QUICK).fit(*task)
    resumed = AutoMSDA(**{kind: {"mine": second}}, checkpoint=tmp_path / "c", **QUICK).fit(*task)
    fresh = AutoMSDA(**{kind: {"mine": second}}, **QUICK).fit(*task)
    assert resumed.scores_ == fresh.scores_
    assert resumed.weights_ == fresh.weights_


@pytest.mark.parametrize("sign", [1, -1])  # mirroring exchanges the canonical order of classes
@pytest.mark.parametrize("names", [np.array([0, 1]), np.array(["a", "b"]), np.array([5, -3])])
def test_class_weights_refer_to_the_users_classes(sign, names):
    X, y, ids = make_task()
    weights = {names[0].item(): 1e-3, names[1].item(): 1.0}
    mine = {"mine": LogisticRegression(class_weight=weights)}
    model = AutoMSDA(classifiers=mine, **QUICK).fit(sign * X, names[y], sample_domain=ids)
    assert model.scores_["mine, common scale"] < 0.7  # nearly always the second class
    assert "mine" not in model.trust_.reason
    assert model.score(sign * X[ids < 0], names[y[ids < 0]]) > 0.9


def test_the_order_of_rows_plays_no_part_with_labels():
    X, y, ids = make_task(n_target=40)
    X = np.round(X)  # equal rows, of which some have a label
    labels = np.where(ids < 0, np.nan, y)
    target = np.flatnonzero(ids < 0)
    labels[target[::3]] = y[target[::3]]
    mixed = np.random.default_rng(1).permutation(len(y))
    options = {**QUICK, "target_labels": "use"}
    one = AutoMSDA(**options).fit(X, labels, sample_domain=ids)
    other = AutoMSDA(**options).fit(X[mixed], labels[mixed], sample_domain=ids[mixed])
    assert one.trust_ == other.trust_
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))


def test_all_weights_are_in_the_table_of_members():
    model = AutoMSDA(**QUICK).fit(*make_task())
    assert "self-trained LDA, own scale" in model.weights_
    told = {c["name"]: c["weight"] for c in model.trust_.candidates if "weight" in c}
    assert {name: weight for name, weight in told.items() if weight} == model.weights_


def test_committee_and_rivals_are_scored_at_the_same_shares():
    """At 95:5, an answer of always the first class is right on 95 %."""
    X, y, ids = make_task(n=100, n_target=100, shares=(0.95, 0.05))
    constant = {"constant": DummyClassifier(strategy="constant", constant=0)}
    model = AutoMSDA(classifiers=constant, target_shares={0: 0.95}, **QUICK).fit(X, y, ids)
    assert model.scores_["constant, common scale"] == pytest.approx(0.95, abs=1e-3)


def test_sources_without_the_classes_of_the_target_are_not_counted():
    X, y, ids = make_task(n=40, n_sources=4, shares=(0.98, 0.02))
    kept = (ids > 1) | (ids < 0) | (y == 1)  # sources 0 and 1 lack the first class
    model = AutoMSDA(target_shares={0: 1.0}, random_state=0)
    model.fit(X[kept], y[kept], sample_domain=ids[kept])
    assert set(model.trust_.folds) == {"2", "3"}
    assert model.scores_["committee"] > 0.9


class Failing(ClassifierMixin, BaseEstimator):
    """Cannot be fitted to fewer rows than `least`, or raises another error."""

    def __init__(self, least=10**9, error=ValueError):
        self.least = least
        self.error = error

    def fit(self, X, y):
        if len(X) < self.least:
            raise self.error("too few rows")
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1.0 / len(self.classes_))


@pytest.mark.parametrize("least", [10**9, 100])
def test_a_member_that_fails_has_no_score(least):
    model = AutoMSDA(classifiers={"mine": Failing(least)}, **QUICK).fit(*make_task())
    assert not any(name.startswith("mine") for name in model.scores_)
    assert "mine, own scale" in model.trust_.reason
    assert "(mine" not in model.trust_.reason  # it is not the best ordinary classifier


def test_an_error_in_a_users_classifier_names_it():
    with pytest.raises(RuntimeError, match=r"mine.*too few rows"):
        AutoMSDA(classifiers={"mine": Failing(error=OSError)}, **QUICK).fit(*make_task())


@pytest.mark.parametrize("name", ["extra trees", "adapted LDA", "GMM-DaDiL", "self-trained LDA"])
def test_names_of_members_are_taken(name):
    with pytest.raises(MixdaError, match=name):
        make_members(np.arange(2), {name: GaussianNB()})


@pytest.mark.parametrize("wrong", [[("nb", GaussianNB())], 3, {"nb": GaussianNB}, {"nb": 3}])
def test_wrong_classifiers_are_refused(wrong):
    with pytest.raises(MixdaError, match="classifiers"):
        AutoMSDA(classifiers=wrong).fit(*make_task())


def test_wrong_numbers_of_jobs_are_refused():
    with pytest.raises(MixdaError, match=r"n_jobs.*0"):
        AutoMSDA(n_jobs=0).fit(*make_task())


def test_a_candidate_that_no_file_holds_can_be_used(tmp_path):
    mine = {"mine": SourceOnly(classifier=KNeighborsClassifier(3))}
    X, y, ids = make_task()
    model = AutoMSDA(candidates=mine, **QUICK).fit(X, y, sample_domain=ids)
    assert model.score(X[ids < 0], y[ids < 0]) > 0.9
    assert model.weights_["mine, features as given"] > 0.002
    with pytest.raises(MixdaError, match="SourceOnly"):
        model.save(tmp_path / "m.mixda")


@pytest.mark.parametrize("dtype", ["string", "object", "Int64", "column"])
def test_missing_labels_of_pandas(dtype):
    X, y, ids = make_task(n_target=40)
    known = np.flatnonzero(ids < 0)[::2]
    asked = (ids >= 0) | np.isin(np.arange(len(y)), known)
    if dtype == "column":
        labels = np.where(asked, y, np.nan)[:, None]
    else:
        names = y if dtype == "Int64" else np.where(y == 0, "ok", "worn")
        labels = pd.Series(names).astype(dtype).where(pd.Series(asked), pd.NA)
    model = AutoMSDA(target_labels="use", **QUICK).fit(X, labels, sample_domain=ids)
    assert model.trust_.n_labels == len(known)
    places = np.flatnonzero(ids < 0)[model.suggest_labels(20)]
    assert not np.isin(places, known).any()
