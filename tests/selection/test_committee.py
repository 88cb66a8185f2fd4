"""The parts of the committee: weights, views, class proportions, estimates, labels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import norm, rankdata
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mixda import MixdaError
from mixda.estimators import rank_to_normal, standardization
from mixda.rules import Chain, Linear, Softmax
from mixda.selection._committee import agreement_of_views, contradiction
from mixda.selection._doubts import confounding, has_repeated_objects
from mixda.selection._estimate import (
    add_labels,
    agreement,
    calibrate,
    estimate_accuracy,
    fit_power,
    left_out_logs,
    temper,
)
from mixda.selection._labels import encode_target_labels, given_labels, most_informative
from mixda.selection._matching import match_moments
from mixda.selection._members import Fitted, Member
from mixda.selection._pool import Fold, combine, fit_weights
from mixda.selection._self_training import Powers, answer, fit_clusters, learn_powers
from mixda.selection._shares import (
    check_shares,
    estimate_difference,
    estimate_shares,
    fit_log_odds,
    match_shares,
    reweight,
    sampling_error,
)
from mixda.selection._thinning import thin
from mixda.selection._trials import Answered, Evidence, Labeled, Problem, run_trials
from mixda.selection._verdict import Verdict, explain
from mixda.selection._views import COMMON, OWN, TARGET, VIEWS, make_views


def make_logs(truth, sharpness, noise, rng):
    nc = int(truth.max()) + 1
    return log_softmax(
        sharpness * (np.eye(nc)[truth] + noise * rng.normal(size=(len(truth), nc))), axis=1
    )


def make_fold(seed, n=200, members=((4.0, 0.5), (4.0, 1.5), (1.0, 9.0)), weight=1.0):
    """Members of falling quality; the last one knows nothing."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    truth[:3] = [0, 1, 2]
    return Fold(np.array([make_logs(truth, *m, rng) for m in members]), truth, weight)


def log_loss(weights, folds):
    losses = [-combine(weights, f.logs)[np.arange(len(f.truth)), f.truth].mean() for f in folds]
    return np.average(losses, weights=[f.weight for f in folds])


def test_weights_prefer_the_member_that_knows():
    weights = fit_weights([make_fold(0), make_fold(1)])
    assert (weights >= 0).all()
    assert weights[0] > weights[1] > weights[2]


def test_weak_shrinkage_reaches_the_best_log_loss():
    """Against a grid over the weights of two members."""
    folds = [make_fold(k, members=((3.0, 0.8), (3.0, 1.2))) for k in range(2)]
    grid = np.linspace(0.0, 2.0, 81)
    best = min(log_loss(np.array([a, b]), folds) for a in grid for b in grid)
    assert log_loss(fit_weights(folds, strength=1e-6), folds) == pytest.approx(best, abs=2e-3)


def test_strong_shrinkage_gives_equal_say():
    """Members of one quality share the weight equally, and none is left out."""
    folds = [make_fold(0, members=((3.0, 1.0),) * 4)]
    weights = fit_weights(folds, strength=1e6)
    assert weights.min() > 0.5 * weights.max()
    np.testing.assert_allclose(weights, fit_weights(folds, strength=np.inf), rtol=1e-3)


def test_every_fold_has_its_weight():
    good, bad = make_fold(0), make_fold(1, members=((4.0, 1.5), (4.0, 0.5), (1.0, 9.0)))
    towards = fit_weights([good, replace(bad, weight=0.01)])
    away = fit_weights([replace(good, weight=0.01), bad])
    assert towards[0] > towards[1]
    assert away[1] > away[0]


def test_order_of_members_does_not_matter():
    fold = make_fold(0)
    turned = fold.take([2, 0, 1])
    np.testing.assert_allclose(fit_weights([turned]), fit_weights([fold])[[2, 0, 1]], atol=1e-4)


def test_power_is_that_of_a_grid_search():
    folds = [make_fold(0, members=((6.0, 1.0),)), make_fold(1, 50, ((6.0, 0.7),))]
    logs, truth = [f.logs[0] for f in folds], [f.truth for f in folds]
    grid = np.exp(np.linspace(-4, 2, 1201))

    def loss(power):
        right = [
            temper(p, power)[np.arange(len(t)), t].mean() for p, t in zip(logs, truth, strict=True)
        ]
        return -np.mean(right)

    expected = grid[np.argmin([loss(power) for power in grid])]
    assert fit_power(logs, truth, [f.rows for f in folds]) == pytest.approx(expected, rel=0.01)


def cross_fit(folds):
    return calibrate(folds, left_out_logs(folds))


def left_out(seed=0, n=400):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    logs = make_logs(truth, 3.0, 1.0, rng)
    return calibrate([Fold(logs[None], truth)], [logs])


def test_estimate_is_right_where_the_target_is_a_left_out_source():
    known = left_out()
    estimate = estimate_accuracy(known, known.logs[0], known.agreement, 0.8)
    assert estimate.accuracy == pytest.approx(known.accuracy, abs=0.03)
    assert estimate.low < known.accuracy < estimate.high


def test_estimate_falls_with_confidence():
    known = left_out()
    estimates = [
        estimate_accuracy(known, temper(known.logs[0], power), known.agreement, 0.8).accuracy
        for power in (2.0, 1.0, 0.5, 0.1)
    ]
    assert estimates == sorted(estimates, reverse=True)


def test_estimate_falls_with_agreement():
    folds = [make_fold(k) for k in range(3)]
    known = cross_fit(folds)
    same, less = (
        estimate_accuracy(known, known.logs[0], known.agreement - lost, 0.8) for lost in (0.0, 0.2)
    )
    assert same.accuracy - 0.1 < less.accuracy < same.accuracy
    assert less.high - less.low > same.high - same.low


def test_agreement_by_hand():
    """Two members, three rows: the first agrees everywhere, the second on one row of three."""
    pool = np.log([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    other = np.log([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]])
    members = np.array([pool, other])
    assert agreement(members, pool) == pytest.approx(2 / 3)
    assert agreement(members, pool, np.array([1.0, 0.0, 0.0])) == pytest.approx(1.0)


def test_interval_widens_with_few_rows_and_with_differing_shares():
    known = left_out()
    target = known.logs[0]

    def width(*args):
        logs, *others = args
        estimate = estimate_accuracy(known, logs, known.agreement, *others)
        return estimate.high - estimate.low

    assert width(target[:10], 0.8) > width(target, 0.8)
    assert width(target, 0.8, 0.6) > width(target, 0.8)
    assert width(target, 0.95) > width(target, 0.8) > width(target, 0.5)


def test_labels_pull_the_estimate():
    known = left_out()
    before = estimate_accuracy(known, known.logs[0], known.agreement, 0.8)
    others = np.exp(known.logs[0]).max(axis=1)
    confidences = np.full(20, others.mean())
    wrong, right = np.zeros(20, dtype=bool), np.ones(20, dtype=bool)
    assert add_labels(before, confidences, others, wrong, 0.8).accuracy < before.accuracy
    after = add_labels(before, confidences, others, right, 0.8)
    assert after.accuracy > before.accuracy
    assert after.high - after.low <= before.high - before.low + 1e-9


def test_labels_of_sure_rows_tell_less():
    """Rows that were expected to be right change the estimate less than unexpected ones."""
    known = left_out()
    before = estimate_accuracy(known, known.logs[0], known.agreement, 0.8)
    others = np.exp(known.logs[0]).max(axis=1)
    right = np.ones(10, dtype=bool)
    sure = add_labels(before, np.full(10, 0.99), others, right, 0.8).accuracy
    unsure = add_labels(before, np.full(10, 0.5), others, right, 0.8).accuracy
    assert before.accuracy - 0.05 < sure < unsure


def test_shuffled_labels_have_no_skill():
    rng = np.random.default_rng(0)
    folds = []
    for k in range(3):
        fold = make_fold(k)
        folds.append(Fold(fold.logs, rng.permutation(fold.truth)))
    judged = cross_fit(folds)
    assert judged.skill < 0.02
    assert (
        estimate_accuracy(judged, judged.logs[0], judged.agreement, 0.8).accuracy < 0.5
    )  # chance is a third
    assert cross_fit([make_fold(k) for k in range(3)]).skill > 0.5


def test_given_shares_are_met():
    fold = make_fold(0)
    logs = combine(fit_weights([fold]), fold.logs)
    low, high = check_shares({0: 0.7, 1: (0.0, 0.1)}, np.array([0, 1, 2]))
    shares = np.exp(reweight(logs, fit_log_odds(logs, (low, high)))).mean(axis=0)
    assert shares[0] == pytest.approx(0.7, abs=1e-3)
    assert shares[1] <= 0.1 + 1e-3


def test_given_shares_are_met_by_sure_answers():
    rng = np.random.default_rng(0)  # half of each class, almost all rows surer than 1e-10
    margin = np.where(np.arange(400) < 200, 1.0, -1.0) * rng.uniform(5.0, 60.0, 400)
    logs = log_softmax(np.column_stack([margin, np.zeros(400)]), axis=1)
    given = np.array([0.8, 0.2])
    shares = np.exp(reweight(logs, fit_log_odds(logs, (given, given)))).mean(axis=0)
    np.testing.assert_allclose(shares, given, atol=0.01)


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ({"x": 0.5}, "'x'"),
        ({"a": 1.5}, "1.5"),
        ({"a": (0.5, 0.2)}, "0.2"),
        ({"a": 0.7, "b": 0.7}, "1.4"),
        ({"a": 0.1, "b": 0.1}, "0.2"),
        ([0.5, 0.5], "mapping"),
        ({"a": "many"}, "many"),
    ],
)
def test_impossible_shares_are_refused(shares, words):
    with pytest.raises(MixdaError, match="target_shares.*" + words):
        check_shares(shares, np.array(["a", "b"]))


def test_importance_is_repetition():
    """A row of importance two counts as the row twice."""
    fold = make_fold(0, n=60)
    twice = np.concatenate([np.arange(60), np.arange(20)])
    importance = np.where(np.arange(60) < 20, 2.0, 1.0)
    one = fit_weights([replace(fold, importance=importance)], strength=1e-6)
    other = fit_weights([Fold(fold.logs[:, twice], fold.truth[twice])], strength=1e-6)
    np.testing.assert_allclose(one, other, rtol=0.02, atol=0.02)  # scarcity differs a little


def test_matched_folds_have_the_shares():
    fold = make_fold(0)
    shares = np.array([0.7, 0.2, 0.1])
    rows = match_shares(fold, shares).rows
    np.testing.assert_allclose(np.bincount(fold.truth, rows), shares)


def test_estimated_shares_solve_the_likelihood():
    """Against a grid: EM maximizes the likelihood of the mixture of class densities."""
    rng = np.random.default_rng(0)
    truth = (rng.uniform(size=4000) < 0.2).astype(int)
    x = rng.normal(size=4000) + 2.0 * truth
    joint = norm.logpdf(x[:, None], [0.0, 2.0])
    logs = log_softmax(joint, axis=1)  # posterior under equal shares
    estimated = estimate_shares(logs, np.array([0.5, 0.5]))[1]
    grid = np.linspace(0.01, 0.99, 99)
    prior = 400 * np.log(grid * (1.0 - grid)) / 2  # a tenth of the rows at the usual shares
    fit = [np.log(np.exp(joint) @ [1.0 - g, g]).sum() for g in grid]
    assert estimated == pytest.approx(grid[np.argmax(np.array(fit) + prior)], abs=0.02)


@pytest.mark.parametrize(("error", "left"), [(0.0, 1.0), (0.1, 8 / 9), (0.2, 5 / 9), (0.3, 0.0)])
def test_shares_are_shrunk_by_what_may_be_an_error(error, left):
    usual, start = np.array([0.5, 0.5]), np.array([0.8, 0.2])
    shares, strength = estimate_difference(start, usual, error, lambda shares: shares)
    np.testing.assert_allclose(shares, usual + left * (start - usual))
    assert strength == pytest.approx(left)


@pytest.mark.parametrize(("shares", "n"), [([0.5, 0.3, 0.2], 7), ([0.9, 0.1, 0.0], 30)])
def test_sampling_error_is_that_of_random_rows(shares, n):
    drawn = np.random.default_rng(0).multinomial(n, shares, 200_000) / n
    expected = 0.5 * np.abs(drawn - shares).sum(axis=1).mean()
    assert sampling_error(np.array(shares), n) == pytest.approx(expected, abs=1e-3)


def test_own_scales_can_overrule_the_common_scale():
    usual, start = np.array([0.5, 0.5]), np.array([0.8, 0.2])
    half = estimate_difference(start, usual, 0.16, lambda s: usual + 0.5 * (s - usual))
    assert half == (pytest.approx(usual), 0.0)


def test_matched_rows_are_where_they_are_in_the_source():
    """Rows of a source, drawn in other proportions and moved, return to their places exactly."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 20)
    Z = standardization(X := rng.normal(size=(60, 4)) + 3.0 * codes[:, None])(X)
    drawn = np.concatenate([np.repeat(np.flatnonzero(codes == 0), 7), np.flatnonzero(codes == 1)])
    target = 5.0 - 2.0 * X[drawn]
    usual, shares = np.full(3, 1 / 3), np.bincount(codes[drawn], minlength=3) / len(drawn)
    match = match_moments([Z], [codes], usual, shares)
    np.testing.assert_allclose(match(standardization(-target)(-target)), Z[drawn], atol=1e-12)


def test_usual_shares_change_nothing():
    rng = np.random.default_rng(0)
    sources = [rng.normal(size=(40, 3)) for _ in range(2)]
    codes = [rng.integers(0, 3, 40) for _ in range(2)]
    shares = np.array([0.2, 0.3, 0.5])
    match = match_moments(sources, codes, shares, shares)
    np.testing.assert_allclose(match(sources[0]), sources[0], atol=1e-12)


def test_a_class_that_is_rare_in_one_source_has_the_moments_of_others():
    rng = np.random.default_rng(0)
    codes = [np.repeat([0, 1], 20), np.repeat([0, 1], [39, 1])]
    sources = [rng.normal(size=(40, 2)) + 4.0 * own[:, None] for own in codes]
    sources[1][-1] = 100.0
    match = match_moments(sources, codes, np.array([0.5, 0.5]), np.array([0.0, 1.0]))
    own = sources[0][codes[0] == 1].mean(axis=0)
    np.testing.assert_allclose(match(np.zeros((1, 2)))[0], own, atol=2.0)  # the row is at 100


def test_self_training_is_lda_where_labels_are_hard():
    """With hard labels, one round and no shrinkage it is scikit-learn's LDA."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 3000)
    Z = rng.normal(size=(3000, 2)) + np.array([[0, 0], [8, 0], [0, 8]])[truth]
    proba = fit_clusters(Z, np.eye(3)[truth] * 0.98 + 0.02 / 3)(Z)
    lda = LinearDiscriminantAnalysis().fit(Z, truth)
    assert (proba.argmax(axis=1) == lda.predict(Z)).mean() > 0.998


def test_self_training_helps_where_classes_are_clusters_and_is_harmless_elsewhere():
    rng = np.random.default_rng(0)
    folds = []
    for clusters in (6.0, 0.0):
        truth = rng.integers(0, 2, 400)
        Z = rng.normal(size=(400, 2)) + clusters * truth[:, None]
        logs = make_logs(truth, 1.0, 1.5, rng)
        folds.append(Fold(logs[None], truth, Z=Z))
    for fold, least, most in ((folds[0], 0.1, 1.0), (folds[1], -0.01, 0.01)):
        powers, answers = learn_powers([fold], [fold.logs[0]])
        before, after = (
            (logs.argmax(axis=1) == fold.truth).mean() for logs in (fold.logs[0], answers[0])
        )
        assert least <= after - before <= most
        assert powers.clusters > 0


def test_powers_minimize_the_loss():
    """Against a grid of both powers."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 300)
    Z = rng.normal(size=(300, 2)) + 2.0 * truth[:, None]
    logs = make_logs(truth, 1.0, 1.5, rng)
    fold = Fold(logs[None], truth, Z=Z)
    powers, _ = learn_powers([fold], [logs])
    own = answer(fit_clusters(Z, np.exp(logs)), Z)

    def loss(p):
        right = Powers(*p).combine(logs, own)[np.arange(300), truth].mean()
        return 0.1 * ((p - np.array([1.0, 0.5])) ** 2).sum() - right

    grid = [(a, g) for a in np.linspace(0.05, 2, 79) for g in np.linspace(0.0, 2, 81)]
    assert loss((powers.committee, powers.clusters)) <= min(loss(p) for p in grid) + 1e-9


def test_thinning_depends_on_content_only():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(300, 5)), rng.integers(0, 3, 300)
    turned = rng.permutation(300)
    one, other = thin(X, codes, 40, 0), thin(X[turned], codes[turned], 40, 0)
    assert np.array_equal(X[one], X[turned][other])
    counts = np.bincount(codes[one]) / 40
    np.testing.assert_allclose(counts, np.bincount(codes) / 300, atol=0.03)


def test_ranks_become_normal_scores():
    """Against ranks of all rows; ties share their midrank."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.exponential(size=2000), rng.integers(0, 3, 2000)])
    Z = rank_to_normal(X)(X)
    exact = norm.ppf((rankdata(X[:, 0]) - 0.5) / 2000)
    inner = np.abs(exact) < 2.0  # the outermost knots are at 2.4
    np.testing.assert_allclose(Z[inner, 0], exact[inner], atol=0.1)
    assert len(np.unique(Z[:, 1])) == 3
    assert np.array_equal(Z[:, 1].argsort(kind="stable"), X[:, 1].argsort(kind="stable"))


def test_labels_of_the_target():
    ids = [0, 0, -1, -1, -1, -1]
    assert given_labels(["a", "b", "a", "", None, "b"], ids) == ["a", None, None, "b"]
    assert given_labels(np.array([0, 1, -1, 1, np.nan, -1.0]), ids) == [None, 1.0, None, None]
    assert given_labels([-1, 1, -1, 1, 1, -1], ids) == [-1, 1, 1, -1]  # a class of the sources
    assert encode_target_labels(["b", None], np.array(["a", "b"])).tolist() == [1, -1]
    with pytest.raises(MixdaError, match="'c'"):
        encode_target_labels(["c"], np.array(["a", "b"]))


def test_suggestions_are_disputed_and_different_rows():
    fold = make_fold(0)
    Z = np.random.default_rng(0).normal(size=(200, 2))
    rows = most_informative(fold.logs, np.ones(3), Z)
    assert len(np.unique(rows)) == len(rows)
    agree = np.array([fold.logs[0]] * 3)
    agree[:, 7] = np.log([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.01, 0.01, 0.98]])
    assert most_informative(agree, np.ones(3), Z)[0] == 7


def test_confounding_of_class_and_source():
    same = [np.array([0, 1] * 5)] * 3
    assert confounding(same) == pytest.approx(0.0)
    assert confounding([np.zeros(5, int), np.ones(5, int)]) == pytest.approx(1.0)


def test_repeated_objects_are_noticed():
    """The same rows with noise in both sources, against other rows of the same classes."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 150)
    centers = rng.normal(size=(3, 8))
    X = centers[codes] + 1.5 * rng.normal(size=(150, 8))
    again = X + 0.3 * rng.normal(size=X.shape)
    others = rng.integers(0, 3, 150)
    new = centers[others] + 1.5 * rng.normal(size=(150, 8))
    assert has_repeated_objects([X, again], [codes, codes])
    assert not has_repeated_objects([X, new], [codes, others])
    assert not has_repeated_objects([X], [codes])


def test_labels_teach_the_common_scale_only_if_every_class_has_one():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(30, 2)), np.repeat([0, 1, 2], 10)
    problem = Problem(make_views([X], X + 9.0, 0), [codes], 3, 0)
    common, own = (Member("m", view, False, lambda *_: None) for view in (COMMON, OWN))

    def n_rows(member, truth):
        labeled = Labeled(np.arange(len(truth)), np.array(truth))
        return len(replace(problem, labeled=labeled).sample(member, TARGET, [0]).X)

    assert n_rows(common, [0, 1]) == 30
    assert n_rows(own, [0, 1] * 9) == 30 + 18  # the third class has none: one copy each
    assert n_rows(common, [0, 1, 2] * 4) == 30 + 12 * 5  # 10 * 4 / (4 + 4) copies
    assert n_rows(common, [0, 0, 0, 1, 2]) == 30 + 5 * 2


@pytest.mark.parametrize(("n_target", "n_seen"), [(7, 7), (60, 40)])
def test_trials_show_members_as_few_rows_as_the_target_has(n_target, n_seen):
    """The members are asked about all rows, on the scale of the rows that they were shown."""
    rng = np.random.default_rng(0)
    codes = np.tile([0, 1], 20)
    sources = [rng.normal(size=(40, 2)) + codes[:, None] + shift for shift in (0.0, 5.0)]
    problem = Problem(make_views(sources, rng.normal(size=(n_target, 2)), 0), [codes, codes], 2, 0)
    seen = []

    def fit(sample, seed):
        seen.append(sample.target)
        rule = Chain((Linear(np.array([[0.0, 1.0], [0.0, 1.0]]), np.zeros(2)), Softmax()))
        return Fitted(rule(sample.target), lambda: rule)

    options = {"max_folds": 5, "budget": np.inf, "checkpoint": None, "n_jobs": None}
    members = [Member("m", OWN, False, fit)]
    folds = run_trials(members, problem, n_target=n_target, verbose=False, **options)
    assert [len(Z) for Z in seen] == [n_seen, n_seen]
    for k, fold in folds.items():
        np.testing.assert_allclose(seen[k].mean(axis=0), 0.0, atol=1e-9)
        assert fold.logs.shape == (1, 40, 2)
        shown = np.arange(40) if n_seen == 40 else thin(sources[k], None, n_seen, 0)
        odds = fold.logs[0, shown, 1] - fold.logs[0, shown, 0]
        assert np.corrcoef(odds, seen[k].sum(axis=1))[0, 1] > 0.999
        assert (fold.Z is None) is (n_target == 7)
        assert fold.n_seen == (7 if n_target == 7 else None)


def answered(logs, truth):
    evidence = Evidence(Fold(logs[:, : len(truth)], truth), logs[:, :0])
    return Answered(None, [], logs, evidence)


VIEW_MEMBERS = [Member("m", view, False, lambda *_: None) for view in VIEWS]


@pytest.mark.parametrize(("n", "truth", "expected"), [(12, 0, True), (12, 1, False), (9, 0, False)])
def test_labels_overrule_a_belief_in_other_shares(n, truth, expected):
    """The belief shifts log-odds to the second class; the labeled rows are of one class."""
    plain = Verdict(np.ones(3), None, np.zeros(3))
    matched = replace(plain, log_odds=np.array([0.0, 1.0]), unmatched=plain)
    told = answered(np.log(np.full((3, n, 2), 0.5)), np.full(n, truth))
    against = contradiction(VIEW_MEMBERS, told, matched, told)
    assert ("labeled rows" in against) is expected
    if expected:
        assert against in explain(replace(plain, contradiction=against), [], [])


def test_agreement_of_views_in_closed_form():
    """Three views, certain of 0.8, 0.8 and 0.2: pairs agree by 0.68, 0.32 and 0.32."""
    first = np.array([0.8, 0.8, 0.2])
    logs = np.log(np.stack([first, 1.0 - first], axis=1))[:, None]
    assert agreement_of_views(VIEW_MEMBERS, logs) == pytest.approx((0.68 + 2 * 0.32) / 3)


@pytest.mark.parametrize("given", [False, True])
def test_views_that_contradict_each_other_overrule_an_estimate_only(given):
    agreeing = np.log(np.tile([0.8, 0.2], (3, 5, 1)))
    contradicting = agreeing.copy()
    contradicting[1] = contradicting[1, :, ::-1]
    plain = Verdict(np.ones(3), None, np.zeros(3))
    matched = replace(plain, unmatched=None if given else plain)
    one, other = (answered(logs, np.zeros(0, int)) for logs in (agreeing, contradicting))
    assert bool(contradiction(VIEW_MEMBERS, one, matched, other)) is not given
    assert not contradiction(VIEW_MEMBERS, other, matched, one)
