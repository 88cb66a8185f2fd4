"""Scores without target labels.

Oracles are literal loops, grids and cases where the answer is known by construction.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from mixda import GMMWBT, GMMDaDiL, SourceOnly
from mixda.selection import (
    SCORES,
    agreement,
    circular_validation,
    confidence,
    importance_weighted,
    information,
    leave_one_source_out,
    likelihood,
    pseudo_tasks,
    rank,
    reconstruction,
    stability,
)

from .domains import make_domain, stacked


@pytest.fixture(scope="module")
def moved():
    """Three sources that differ a little, and a target moved by half the distance of classes."""
    sources = [make_domain(k, shift) for k, shift in enumerate((0.0, 0.6, -0.6))]
    return stacked(*sources, target=make_domain(9, 2.0))


class Liar(SourceOnly):
    """Says the next class instead of the right one."""

    def _fit_domains(self, sources, target, rng):
        wrong = [(Z, (codes + 1) % len(self.classes_)) for Z, codes in sources]
        super()._fit_domains(wrong, target, rng)


def test_a_pseudo_task_hides_one_source_and_drops_the_target(moved):
    X, y, ids, _ = moved
    tasks = list(pseudo_tasks(X, y, ids))
    assert [task.held_out for task in tasks] == [1, 2, 3]
    for task in tasks:
        assert np.array_equal(task.X, X[ids >= 0])
        held = ids[ids >= 0] == task.held_out
        assert (task.codes[held] == -1).all()
        assert (task.sample_domain[held] == -1).all()
        assert np.array_equal(task.codes[~held], y[ids >= 0][~held])
        assert np.array_equal(task.truth, y[ids == task.held_out])
        assert np.array_equal(task.X_target, X[ids == task.held_out])
    assert [task.held_out for task in pseudo_tasks(X, y, ids, [2])] == [2]


def test_a_source_is_scored_on_the_classes_that_others_know():
    one, two = make_domain(0, classes=(0, 1, 2)), make_domain(1, classes=(0, 1))
    X, y, ids, _ = stacked(one, two, target=make_domain(2))
    first, second = pseudo_tasks(X, y, ids)
    assert sorted(set(first.truth)) == [0, 1]
    assert not ((first.codes == 2) | (first.X[:, 1] > 3)).any()  # rows of class 2 are left out
    assert sorted(set(second.truth)) == [0, 1]
    assert 2 in second.codes  # the held-out source lacks it, the other does not


def test_sources_without_a_common_class_cannot_be_left_out():
    X, y, ids, _ = stacked(
        make_domain(0, classes=(0,)), make_domain(1, classes=(1,)), target=make_domain(2)
    )
    assert list(pseudo_tasks(X, y, ids)) == []
    with pytest.raises(ValueError, match="no source can be left out"):
        leave_one_source_out(SourceOnly(), X, y, ids)
    with pytest.raises(ValueError, match="needs at least two sources, got one"):
        leave_one_source_out(SourceOnly(), X, y, np.where(ids < 0, -1, 0))


def test_leave_one_source_out_is_a_loop_over_sources(moved):
    X, y, ids, _ = moved
    expected = []
    for held in (1, 2, 3):
        others = (ids >= 0) & (ids != held)
        mean, std = X[others].mean(axis=0), X[others].std(axis=0)
        model = LogisticRegression(max_iter=1000).fit((X[others] - mean) / std, y[others])
        expected.append(model.score((X[ids == held] - mean) / std, y[ids == held]))
    assert leave_one_source_out(SourceOnly(), X, y, ids) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("score", SCORES)
def test_scores_never_read_target_labels_and_are_numbers(moved, score):
    X, y, ids, _ = moved
    estimator = GMMDaDiL(1, n_iter=2, random_state=0)
    expected = SCORES[score](estimator, X, y, ids)
    assert np.isfinite(expected)
    rng = np.random.default_rng(0)
    for poison in (np.nan, 99, rng.integers(0, 3, len(y))):
        assert SCORES[score](estimator, X, np.where(ids < 0, poison, y), ids) == expected
    assert not hasattr(estimator, "classes_")  # clones are fitted


def test_importance_weights_of_equal_domains_are_all_the_same():
    """With a target equal to the sources, no row looks more like it: plain accuracy."""
    X, y = make_domain(0, spread=2.0, n=60)
    X, y, ids = np.vstack([X, X]), np.concatenate([y, y]), np.repeat([0, -1], len(y))
    held = (ids >= 0) & (np.random.default_rng(0).random(len(ids)) < 0.2)
    model = SourceOnly().fit(X[~held], y[~held], sample_domain=ids[~held])
    plain = model.score(X[held], y[held])
    assert 0.5 < plain < 0.95  # a score of 1 would say nothing
    assert importance_weighted(SourceOnly(), X, y, ids) == pytest.approx(plain, abs=1e-3)


def test_importance_weights_follow_the_target():
    """Right near the target, wrong far from it: only the former counts."""
    rng = np.random.default_rng(0)
    easy, hard = rng.normal(5.0, 1.0, (200, 2)), rng.normal(-5.0, 1.0, (200, 2))
    y = np.concatenate([(easy[:, 1] > 5.0).astype(int), rng.integers(0, 2, 200)])
    X = np.vstack([easy, hard, rng.normal(5.0, 1.0, (200, 2))])
    y, ids = np.concatenate([y, np.full(200, -1)]), np.repeat([1, 2, -1], 200)
    near = SourceOnly(classifier=KNeighborsClassifier())
    assert leave_one_source_out(near, X, y, ids) < 0.7
    assert importance_weighted(near, X, y, ids) > 0.9


def test_importance_weighting_with_one_class_left_to_train_on():
    X, y = np.arange(24.0)[:, None], np.r_[1, np.zeros(15, dtype=int), np.full(8, -1)]
    ids = np.repeat([0, -1], [16, 8])
    scores = [importance_weighted(SourceOnly(), X, y, ids, random_state=s) for s in range(20)]
    assert min(scores) < 1.0  # the only row of a class was held out, and missed


def test_circular_validation_of_equal_and_separable_domains_is_perfect():
    source, target = make_domain(0, spread=0.3), make_domain(1, spread=0.3)
    X, y, ids, _ = stacked(source, target=target)
    assert circular_validation(SourceOnly(), X, y, ids) == 1.0
    assert circular_validation(GMMWBT(1, random_state=0), X, y, ids) == 1.0
    one_class = stacked(source, target=make_domain(1, spread=0.3, classes=(1,)))[:3]
    assert circular_validation(SourceOnly(), *one_class) == pytest.approx(1 / 3)  # a constant


def test_agreement_is_over_pairs():
    a, b, c = np.array([0, 1, 2, 2]), np.array([0, 1, 2, 0]), np.array([0, 0, 2, 0])
    assert agreement([a, b, c]) == pytest.approx((0.75 + 0.5 + 0.75) / 3)
    assert agreement([a]) == agreement([a, a]) == 1.0


def test_stability_of_a_method_without_chance_is_one(moved):
    X, y, ids, _ = moved
    assert stability(SourceOnly(), X, y, ids) == 1.0
    noisy = GMMDaDiL(1, n_iter=1, init="random")
    labels = [
        clone(noisy).set_params(random_state=k).fit(X, y, sample_domain=ids).predict(X[ids < 0])
        for k in (0, 1)
    ]
    assert stability(noisy, X, y, ids, n_seeds=2) == np.mean(labels[0] == labels[1])


def test_confidence_and_information_of_the_probabilities(moved):
    X, y, ids, _ = moved
    proba = SourceOnly().fit(X, y, sample_domain=ids).predict_proba(X[ids < 0])
    assert confidence(SourceOnly(), X, y, ids) == pytest.approx(proba.max(axis=1).mean())
    inside = -np.mean([row @ np.log(row) for row in proba])
    whole = -proba.mean(axis=0) @ np.log(proba.mean(axis=0))
    assert information(SourceOnly(), X, y, ids) == pytest.approx(whole - inside)


def test_likelihood_and_reconstruction_need_a_mixture_and_prefer_the_adapted_one(moved):
    X, y, ids, _ = moved
    for score in (likelihood, reconstruction):
        with pytest.raises(ValueError, match="SourceOnly has no mixture of the target"):
            score(SourceOnly(), X, y, ids)
        adapted = score(GMMWBT(1, scale="sources", random_state=0), X, y, ids)
        stuck = score(
            GMMDaDiL(1, n_atoms=1, n_iter=1, scale="sources", random_state=0), X, y, ids
        )  # one atom cannot follow the target
        assert adapted > stuck


def test_rank_is_by_score_best_first(moved):
    X, y, ids, _ = moved
    candidates = {"liar": Liar(), "honest": SourceOnly(), "adapted": SourceOnly(scale="domain")}
    found = rank(candidates, X, y, ids)
    assert list(found)[-1] == "liar"
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert found["honest"] == leave_one_source_out(SourceOnly(), X, y, ids)
    backwards = rank(candidates, X, y, ids, lambda model, *_: -len(repr(model)))
    assert list(backwards) == ["liar", "honest", "adapted"]
    with pytest.raises(ValueError, match="score must be one of"):
        rank(candidates, X, y, ids, "accuracy")
