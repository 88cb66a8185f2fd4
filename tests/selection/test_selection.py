"""Choices without target labels: the scores, the trust estimate and AutoMSDA.

Oracles are literal loops, grids and cases where the answer is known by construction.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from mixda import GMMWBT, AdaptedModel, AutoMSDA, GMMDaDiL, SourceOnly, load
from mixda.datasets import make_shifted_toy
from mixda.selection import (
    SCORES,
    Trust,
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
from mixda.selection.trust import Fold, estimate_accuracy, explain_choice, fit_power, interval

CENTERS = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 1.0], [0.0, 4.0, -1.0]])


def make_domain(seed, shift=0.0, classes=(0, 1, 2), n=24, spread=0.6):
    """Gaussian classes around CENTERS, all moved by the same shift."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(classes, n))
    return CENTERS[y] + shift + spread * rng.normal(size=(len(y), 3)), y


def stacked(*domains, target):
    """Samples, classes (the target's masked), ids 1, 2, … and -1, and the target's classes."""
    parts = [*domains, target]
    ids = np.repeat([*range(1, len(parts)), -1], [len(y) for _, y in parts])
    y = np.concatenate([y for _, y in parts])
    return np.vstack([X for X, _ in parts]), np.where(ids < 0, -1, y), ids, target[1]


@pytest.fixture(scope="module")
def moved():
    """Three sources that differ a little, and a target moved by half the distance of classes."""
    sources = [make_domain(k, shift) for k, shift in enumerate((0.0, 0.6, -0.6))]
    return stacked(*sources, target=make_domain(9, 2.0))


@pytest.fixture(scope="module")
def auto(moved):
    X, y, ids, _ = moved
    return AutoMSDA(random_state=0).fit(X, y, sample_domain=ids)


def quick(**parameters):
    """An AutoMSDA with two cheap candidates instead of the six experts."""
    candidates = {"dadil": GMMDaDiL(1, n_iter=3), "wbt": GMMWBT(1)}
    return AutoMSDA(**{"candidates": candidates, "random_state": 0, **parameters})


class Liar(SourceOnly):
    """Says the next class instead of the right one."""

    def _fit_domains(self, sources, target, rng):
        wrong = [(Z, (codes + 1) % len(self.classes_)) for Z, codes in sources]
        super()._fit_domains(wrong, target, rng)


# Scores ------------------------------------------------------------------------------------------


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


# Trust -------------------------------------------------------------------------------------------


def make_fold(seed, n=200, sharpness=4.0, noise=1.5, nc=3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, nc, n)
    logits = sharpness * (np.eye(nc)[truth] + noise * rng.normal(size=(n, nc)))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return Fold(proba, proba.argmax(axis=1)[None], truth)


def test_the_power_is_that_of_a_grid_search():
    folds = [make_fold(0), make_fold(1, n=50, noise=0.7)]
    grid = np.exp(np.linspace(-4, 4, 801))

    def loss(power):
        right = [f.to_the(power).proba[np.arange(len(f.truth)), f.truth] for f in folds]
        return -np.mean([np.log(np.maximum(p, 1e-12)).mean() for p in right])

    expected = grid[np.argmin([loss(power) for power in grid])]
    assert fit_power(folds) == pytest.approx(expected, rel=0.01)
    assert fit_power(folds) < 0.7  # these are far too sure


def test_a_power_changes_no_answer():
    fold = make_fold(0)
    for power in (0.1, 1.0, 3.0):
        other = fold.to_the(power)
        assert np.allclose(other.proba.sum(axis=1), 1.0)
        assert other.accuracy == fold.accuracy
    assert np.allclose(fold.to_the(1.0).proba, fold.proba)


def test_the_estimate_is_right_where_the_target_is_a_fold():
    """A single expert agrees with itself, which is no evidence."""
    fold = make_fold(0)
    fold = fold.to_the(fit_power([fold]))
    assert 0.4 < fold.accuracy < 0.8
    assert estimate_accuracy([fold], fold) == pytest.approx(fold.accuracy)


def test_the_estimate_falls_with_confidence_and_with_agreement():
    fold = make_fold(0).to_the(0.4)
    unsure = [fold.to_the(power) for power in (1.0, 0.7, 0.4, 0.1)]
    estimates = [estimate_accuracy([fold], target) for target in unsure]
    assert estimates == sorted(estimates, reverse=True)
    assert estimates[0] > estimates[-1] + 0.1
    answers = fold.proba.argmax(axis=1)
    united = fold._replace(votes=np.vstack([answers, answers]))
    divided = fold._replace(votes=np.vstack([answers, (answers + 1) % 3]))
    assert estimate_accuracy([fold], united) == pytest.approx((2 * estimates[0] + 1.0) / 3)
    assert estimate_accuracy([fold], divided) == pytest.approx((2 * estimates[0] + 0.5) / 3)


def test_a_perfect_fold_and_a_sure_target_are_trusted_fully():
    truth = np.array([0, 1, 1, 0])
    fold = Fold(np.eye(2)[truth], truth[None], truth)
    assert estimate_accuracy([fold], fold) == 1.0


def test_intervals_hold_the_estimate_and_grow_with_the_level():
    for p in (0.0, 0.3, 0.5, 0.9, 1.0):
        widths = []
        for level in (0.5, 0.8, 0.95):
            low, high = interval(p, level, 500)
            assert 0.0 <= low <= p <= high <= 1.0
            widths.append(high - low)
        assert widths == sorted(widths)
        assert widths[0] < widths[-1]
    assert np.diff(interval(0.5, 0.8, 500)) > np.diff(interval(0.95, 0.8, 500))
    assert interval(0.5, 1.0, 500) == (0.0, 1.0)
    assert interval(0.77, 0.8, 1)[0] < 0.3  # one sample says little


def test_trust_is_json_and_a_sentence(auto):
    trust = auto.trust_
    assert Trust.from_json(json.loads(json.dumps(trust.to_json()))) == trust
    numbers = [f"{100 * x:.0f}" for x in (trust.accuracy, trust.level, trust.low, trust.high)]
    assert "accuracy {} % ({} % interval: {}–{} %)".format(*numbers) in str(trust)
    assert "not estimated" in str(replace(trust, accuracy=None))
    assert auto.to_model().trust == trust


# AutoMSDA ----------------------------------------------------------------------------------------


def test_it_is_better_than_the_sources_alone(moved, auto):
    X, y, ids, truth = moved
    alone = SourceOnly().fit(X, y, sample_domain=ids).score(X[ids < 0], truth)
    assert alone < 0.9
    assert auto.score(X[ids < 0], truth) > alone + 0.1
    assert not auto.trust_.declined
    assert auto.trust_.low <= auto.score(X[ids < 0], truth) <= auto.trust_.high


def test_what_it_tried_and_chose(auto):
    names = ["all together", "common scale", "own scale", "source only"]
    assert [c["name"] for c in auto.trust_.candidates] == names
    assert [c["chosen"] for c in auto.trust_.candidates] == [n == auto.choice_ for n in names]
    assert auto.scores_ == {c["name"]: c["score"] for c in auto.trust_.candidates}
    assert list(auto.trust_.folds) == ["1", "3"]  # two of three, evenly spread
    assert np.mean(list(auto.trust_.folds.values())) == pytest.approx(auto.scores_[auto.choice_])
    assert f"({auto.choice_})" in auto.trust_.reason


def test_the_scores_are_those_of_a_loop_over_left_out_sources(moved):
    X, y, ids, _ = moved
    model = quick(max_folds=3).fit(X, y, sample_domain=ids)
    for name, candidate in model.candidates.items():
        seeded = clone(candidate).set_params(random_state=model._seed)
        expected = np.mean(
            [
                np.mean(
                    clone(seeded).fit(t.X, t.codes, t.sample_domain).predict(t.X_target) == t.truth
                )
                for t in pseudo_tasks(X, y, ids)
            ]
        )
        assert model.scores_[name] == pytest.approx(expected)
    assert model.scores_["source only"] == leave_one_source_out(SourceOnly(), X, y, ids)


def test_the_committee_is_the_product_of_its_experts(moved):
    X, y, ids, _ = moved
    model = quick().fit(X, y, sample_domain=ids)
    assert model.choice_ == "all together"
    logs = sum(
        np.log(0.95 * expert.predict_proba(X[ids < 0]) + 0.05 / 3)
        for expert in model.experts_.values()
    )
    assert np.array_equal(logs.argmax(axis=1), model.predict_proba(X[ids < 0]).argmax(axis=1))
    ratio = np.ptp(np.log(model.predict_proba(X[ids < 0])), axis=1) / np.ptp(logs, axis=1)
    assert np.allclose(ratio, ratio[0])  # one power for all


def test_adaptation_that_hurts_is_declined_with_a_reason(moved):
    X, y, ids, _ = moved
    model = AutoMSDA({"bad": Liar(), "worse": Liar(scale="domain")}, random_state=0)
    model.fit(X, y, sample_domain=ids)
    assert model.trust_.declined
    assert model.choice_ == "source only"
    assert model.trust_.reason.startswith("Adaptation was declined: on left-out sources the")
    alone = SourceOnly().fit(X, y, sample_domain=ids)
    assert np.array_equal(model.predict(X), alone.predict(X))
    assert model.to_model().trust.declined is True
    single = np.where(ids < 0, -1, 0)
    model.fit(X, y, sample_domain=single)
    assert model.trust_.reason.startswith("Adaptation was declined: on the way back to the sources")


def test_the_largest_committee_is_left_for_a_clearly_better_candidate_only():
    model = AutoMSDA()
    for own, alone, choice in (
        (0.905, 0.90, "all together"),
        (0.89, 0.91, "all together"),
        (0.95, 0.91, "own scale"),
        (0.92, 0.95, "source only"),
    ):
        model.scores_ = {"all together": 0.895, "own scale": own, "source only": alone}
        assert model._choose(dict.fromkeys(model.scores_, ())) == choice
    reason = explain_choice(model.scores_, "source only", left_out=True, only_proportions=False)
    assert "right on 95.0%, the best adapted one on 92.0%." in reason


def test_a_single_source_is_judged_on_the_way_back():
    source, target = make_domain(0, n=40), make_domain(1, 0.8, n=40)
    X, y, ids, truth = stacked(source, target=target)
    model = quick().fit(X, y, sample_domain=ids)
    assert "on the way back to the sources" in model.trust_.reason
    assert model.trust_.accuracy is model.trust_.low is model.trust_.high is None
    assert model.trust_.folds == {}
    assert model.score(X[ids < 0], truth) > 0.9
    assert model.scores_["source only"] == circular_validation(SourceOnly(), X, y, ids)


def test_who_sees_one_class_only_brings_back_that_class():
    """Answers of one class teach a constant: its share of the source."""
    X, y, ids, _ = stacked(
        make_domain(0, spread=0.3), target=make_domain(1, spread=0.3, classes=(1,))
    )
    model = quick().fit(X, y, sample_domain=ids)
    assert model.scores_["source only"] == circular_validation(SourceOnly(), X, y, ids)
    assert model.scores_["source only"] == pytest.approx(1 / 3)
    assert np.isfinite(model.predict_proba(X)).all()


def test_sources_without_a_common_class_are_judged_on_the_way_back():
    X, y, ids, truth = stacked(
        *(make_domain(k, classes=(k,), n=40) for k in range(3)), target=make_domain(5)
    )
    model = quick().fit(X, y, sample_domain=ids)
    assert model.trust_.accuracy is None
    assert all(np.isfinite(score) for score in model.scores_.values())
    assert model.score(X[ids < 0], truth) > 0.9


def test_a_class_may_be_missing_from_a_source_or_be_in_one_only():
    X, y, ids, truth = stacked(
        make_domain(0),
        make_domain(1, classes=(0, 1)),
        make_domain(2, classes=(0, 1)),
        target=make_domain(3, 0.3),
    )
    model = quick(max_folds=3).fit(X, y, sample_domain=ids)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X[ids < 0], truth) > 0.9
    assert model.trust_.accuracy > 0.9


def test_a_target_of_one_class_or_one_row_is_no_reason_to_fail(moved):
    X, y, ids, truth = moved
    for rows in (np.flatnonzero(ids < 0)[truth == 1], np.flatnonzero(ids < 0)[:1]):
        kept = np.concatenate([np.flatnonzero(ids >= 0), rows])
        model = quick().fit(X[kept], y[kept], sample_domain=ids[kept])
        assert np.isfinite(model.predict_proba(X[rows])).all()
        assert 0.0 <= model.trust_.low <= model.trust_.high <= 1.0


@pytest.mark.parametrize("kind", ["shuffled", "nan", "new class"])
def test_target_labels_are_never_read(moved, kind):
    X, y, ids, truth = moved
    hidden = {"shuffled": truth[::-1], "nan": np.nan, "new class": 99}[kind]
    poisoned = y.astype(float)
    poisoned[ids < 0] = hidden
    one = quick().fit(X, y.astype(float), sample_domain=ids)
    other = quick().fit(X, poisoned, sample_domain=ids)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.trust_ == other.trust_


def test_one_seed_gives_one_result_in_any_number_of_processes(moved):
    X, y, ids, _ = moved
    one, two = (quick(n_jobs=n).fit(X, y, sample_domain=ids) for n in (1, 2))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.trust_ == two.trust_


def test_a_budget_stops_after_the_first_source(moved):
    X, y, ids, _ = moved
    assert list(quick(budget=1e-9).fit(X, y, sample_domain=ids).trust_.folds) == ["1"]
    assert list(quick(budget=1e9, max_folds=9).fit(X, y, sample_domain=ids).trust_.folds) == [
        "1",
        "2",
        "3",
    ]


def test_trials_use_at_most_so_many_rows(moved):
    X, y, ids, _ = moved
    seen = []

    class Spy(SourceOnly):
        def _fit_domains(self, sources, target, rng):
            seen.append([*(len(Z) for Z, _ in sources), len(target)])
            super()._fit_domains(sources, target, rng)

    AutoMSDA({"spy": Spy()}, max_rows=30, random_state=0).fit(X, y, sample_domain=ids)
    assert seen == [[30] * 3, [30] * 3, [72] * 4]  # two trials, then the target


def test_without_a_target_it_is_the_sources_own_classifier(moved):
    X, y, ids, _ = moved
    X, y = X[ids >= 0], y[ids >= 0]
    model = AutoMSDA(random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), SourceOnly().fit(X, y).predict(X))
    assert list(model.experts_) == ["source only"]
    with pytest.raises(ValueError, match="this AutoMSDA was fitted without a target"):
        model.to_model()


def test_a_second_fit_owes_nothing_to_the_first(moved, auto):
    X, y, ids, _ = moved
    model = quick().fit(X, y, sample_domain=ids)
    model.fit(X[ids >= 0], y[ids >= 0])
    assert not hasattr(model, "trust_")
    assert not hasattr(model, "choice_")


def test_the_model_and_its_file_predict_the_same(moved, auto, tmp_path):
    X, _, ids, _ = moved
    auto.save(tmp_path / "m.mixda", ["a", "b", "c", "hall"])
    model = load(tmp_path / "m.mixda")
    assert isinstance(model, AdaptedModel)
    np.testing.assert_allclose(model.predict_proba(X), auto.predict_proba(X), atol=1e-12)
    assert np.array_equal(model.predict(X[ids < 0]), auto.predict(X[ids < 0]))
    assert model.method == "AutoMSDA"
    assert model.trust == auto.trust_
    assert [domain.name for domain in model.sources] == ["a", "b", "c"]
    assert model.novelty(X[ids < 0]).mean() < 0.05
    assert model.novelty(X[:1] + 1e3).all()


def test_names_of_classes_and_columns(moved):
    pd = pytest.importorskip("pandas")
    X, y, ids, truth = moved
    names = np.array(["worn", "ok", "broken"])
    frame = pd.DataFrame(X, columns=["speed", "load", "heat"])
    model = quick().fit(frame, pd.Series(names[y]), sample_domain=pd.Series(ids))
    assert model.classes_.tolist() == ["broken", "ok", "worn"]
    assert model.score(frame[ids < 0], names[truth]) == quick().fit(X, y, sample_domain=ids).score(
        X[ids < 0], truth
    )
    saved = model.to_model()
    assert saved.feature_names == ("speed", "load", "heat")
    turned = frame[["heat", "speed", "load"]][ids < 0]
    assert np.array_equal(saved.predict(turned), model.predict(frame[ids < 0]))


def test_the_report_begins_with_the_verdict(moved, auto, tmp_path):
    pytest.importorskip("matplotlib", reason="the report needs the report extra")
    X, _, ids, _ = moved
    page = auto.report(tmp_path / "r.html", X=X[ids < 0]).read_text(encoding="utf-8")
    assert "Estimated accuracy" in page
    assert auto.trust_.reason.replace("'", "&#x27;") in page
    assert "Candidates that were compared without labels of the target" in page
    n = len(auto.experts_)
    assert f"AutoMSDA decides by {n} classifiers together, but the mixtures on this page" in page


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"candidates": {}}, "candidates must be a non-empty mapping of names to mixda estimators"),
        ({"candidates": [GMMWBT()]}, "candidates must be a non-empty mapping"),
        ({"candidates": {"wbt": GMMWBT}}, "candidates must be a non-empty mapping"),
        ({"candidates": {"logistic": LogisticRegression()}}, "candidates must be a non-empty"),
        ({"candidates": {"source only": GMMWBT()}}, "'source only' is always there"),
        ({"max_folds": 0}, "max_folds must be a positive integer"),
        ({"max_rows": 0}, "max_rows must be a positive integer"),
        ({"budget": 0}, "budget must be"),
        ({"level": 1.5}, "level must be"),
    ],
)
def test_bad_parameters_get_a_sentence(moved, parameters, message):
    X, y, ids, _ = moved
    with pytest.raises(ValueError, match=message):
        quick(**parameters).fit(X, y, sample_domain=ids)


def test_it_adapts_to_the_shifted_toy():
    """A seed on which the sources alone are right on four of five."""
    task = make_shifted_toy(random_state=2).as_task()
    rows = slice(None, None, 9)
    given = (task.X[rows], task.y[rows], task.sample_domain[rows])
    alone = SourceOnly().fit(*given).score(task.X_target, task.y_target)
    model = AutoMSDA(random_state=0).fit(*given)
    assert alone < 0.85
    assert model.score(task.X_target, task.y_target) > 0.97
