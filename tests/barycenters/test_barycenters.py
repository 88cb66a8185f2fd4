"""Barycenters: Algorithm 1 against its literal transcription, POT, closed forms and invariances."""

import itertools

import numpy as np
import ot
import pytest
import scipy.optimize
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mixda import Mixture, barycenter, mw2, smw2, transport_plan
from mixda.barycenters import resample

from ..oracles import algorithm_1
from ..strategies import families, permuted, random_mixture

fast = settings(max_examples=30)
lambdas = st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3).map(
    lambda x: np.array(x) / np.sum(x)
)


def triple(p):
    return p.means, p.stds, p.labels


@fast
@given(families(3, nc=2), lambdas, st.integers(1, 6), st.booleans(), st.integers(1, 3))
def test_equals_literal_algorithm_1(inputs, lam, K, labeled, rounds):
    if not labeled:
        inputs = [Mixture(p.weights, p.means, p.stds) for p in inputs]
    start = random_mixture(
        np.random.default_rng(K), K, inputs[0].n_features, 2 if labeled else None, uniform=True
    )

    def literal(n_iter):
        atoms, weights = [triple(p) for p in inputs], [p.weights for p in inputs]
        return algorithm_1(atoms, weights, lam, K, *triple(start), 3.0, n_iter=n_iter, tol=0.0)

    for n_iter in range(1, rounds):  # components that coincide make the next plans ambiguous
        M, S, *_ = literal(n_iter)
        points = np.hstack([M, S])
        distances = ((points[:, None] - points) ** 2).sum(axis=2) + np.eye(K)
        assume(distances.min() > 1e-6)
    M, S, V, plans, losses = literal(rounds)
    result = barycenter(inputs, lam, beta=3.0, init=start, max_iter=rounds, tol=-np.inf)
    n = len(result.history)  # the engine stops when its plans come out again
    assert np.allclose(result.history, losses[:n], rtol=1e-6, atol=1e-6)
    assert np.allclose(losses[n:], result.history[-1], rtol=1e-6, atol=1e-6)
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(result.plans, plans, strict=True))
    assert np.allclose(result.mixture.means, M, atol=1e-6)
    assert np.allclose(result.mixture.stds, S, atol=1e-6)
    if labeled:
        assert np.allclose(result.mixture.labels, V, atol=1e-6)


@fast
@given(families(3, nc=3), lambdas, st.one_of(st.none(), st.integers(1, 9)))
def test_objective_never_increases(inputs, lam, K):
    for init in ("random", "input"):
        result = barycenter(inputs, lam, K, init=init, random_state=0, tol=0.0)
        assert (np.diff(result.history) <= 1e-9 * (1 + result.history[0])).all()
        assert result.converged
    best = sum(
        x * smw2(result.mixture, p, beta=result.beta, squared=True)
        for x, p in zip(lam, inputs, strict=True)
    )
    assert best <= result.history[-1] * (1 + 1e-9) + 1e-9


def exact_objective(inputs, lam, beta):
    """The multi-marginal program over all tuples of components, as one dense linear program."""
    points = [np.hstack([p.means, p.stds, np.sqrt(beta) * p.labels]) for p in inputs]
    tuples = list(itertools.product(*(range(len(z)) for z in points)))
    costs, columns = [], []
    for t in tuples:
        picked = [z[i] for z, i in zip(points, t, strict=True)]
        mean = sum(x * z for x, z in zip(lam, picked, strict=True))
        costs.append(sum(x * ((z - mean) ** 2).sum() for x, z in zip(lam, picked, strict=True)))
        columns.append(np.concatenate([np.eye(len(z))[i] for z, i in zip(points, t, strict=True)]))
    weights = np.concatenate([p.weights for p in inputs])
    return scipy.optimize.linprog(costs, A_eq=np.array(columns).T, b_eq=weights).fun


@pytest.mark.parametrize("seed", range(8))
def test_free_support_is_optimal(seed):
    rng = np.random.default_rng(seed)
    uniform = seed % 2 == 0
    sizes = [4, 4, 4] if uniform else rng.integers(2, 6, 3)
    inputs = [random_mixture(rng, K, 2, 2, uniform=uniform) for K in sizes]
    lam = rng.dirichlet(np.full(3, 3.0))
    best = exact_objective(inputs, lam, 3.0)
    values = [
        barycenter(inputs, lam, beta=3.0, component_weights=w).history[-1]
        for w in ("free", "start")
    ]
    assert best * (1 - 1e-9) <= values[0] <= 1.002 * best
    assert values[0] <= values[1] * (1 + 1e-9)


def test_free_support_merged():
    rng = np.random.default_rng(1)
    inputs = [random_mixture(rng, 5, 2, 2) for _ in range(3)]
    values = []
    for K in (2, 5, 9, 100):
        result = barycenter(inputs, n_components=K, component_weights="free")
        values.append(result.history[-1])
        assert result.mixture.n_components <= min(K, 13)  # 5 + 5 + 5 - 3 + 1
    assert values == sorted(values, reverse=True)
    assert values[1] < barycenter(inputs, n_components=5).history[-1]


def test_best_of_all_starts():
    rng = np.random.default_rng(4)
    inputs = [random_mixture(rng, 5, 2, uniform=True) for _ in range(3)]
    each = [barycenter(inputs, init=p).history[-1] for p in inputs]
    result = barycenter(inputs, component_weights="start")
    assert result.history[-1] == pytest.approx(min(each), rel=1e-9)
    again = barycenter(inputs[::-1], component_weights="start")
    assert again.mixture == result.mixture


@fast
@given(families(3, nc=3), st.integers(0, 2))
def test_one_hot_coordinates(inputs, c):
    result = barycenter(inputs, np.eye(3)[c]).mixture
    assert smw2(result, inputs[c], beta=1.0) == pytest.approx(0.0, abs=1e-6)


@fast
@given(families(3, nc=2), lambdas)
def test_translation(inputs, lam):
    shift = np.arange(1.0, 1.0 + inputs[0].n_features)
    moved = [Mixture(p.weights, p.means + shift, p.stds, p.labels) for p in inputs]
    b, c = barycenter(inputs, lam).mixture, barycenter(moved, lam).mixture
    assert np.allclose(b.means + shift, c.means, atol=1e-8)
    assert np.allclose(b.stds, c.stds, atol=1e-8)


@fast
@given(families(3, nc=4), lambdas)
def test_labels_and_weights(inputs, lam):
    for weights in ("free", "start"):
        b = barycenter(inputs, lam, component_weights=weights).mixture
        assert (b.labels >= 0).all()
        assert np.allclose(b.labels.sum(axis=1), 1.0)
    assert any(np.array_equal(b.weights, p.weights) for p in inputs)


@fast
@given(families(3, nc=3), lambdas)
def test_converged(inputs, lam):
    result = barycenter(inputs, lam, beta="max", max_iter=20)  # which may increase the objective
    if result.converged and len(result.history) > 1:
        before, last = result.history[-2:]
        again = barycenter(inputs, lam, beta="max", init=result.mixture, max_iter=1).history[0]
        resting_objective = abs(last - before) <= 1e-9 * last
        resting_plans = abs(again - last) <= 1e-6 * (1.0 + last)  # same plans, same barycenter
        assert resting_objective or resting_plans


def test_weights_nearly_sum_to_one():
    p = Mixture([1.0], [[1e6]], [[1.0]])
    for thirds in ([0.3333333] * 3, np.full(3, 1 / 3, dtype=np.float32)):
        assert barycenter([p, p, p], thirds).mixture.means[0, 0] == pytest.approx(1e6, rel=1e-12)
        q = Mixture(thirds, [[1e6], [1e6], [1e6]], np.ones((3, 1)))
        assert q.moments()[0][0] == pytest.approx(1e6, rel=1e-12)


def test_missing_class_in_first_input():
    def pair(a, b, shift):
        means = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])[[a, b]] + shift
        return Mixture([0.5, 0.5], means, np.ones((2, 2)), np.eye(3)[[a, b]], ["a", "b", "c"])

    inputs = [pair(0, 1, 0.0), pair(1, 2, 0.5), pair(0, 2, 1.0)]  # none is complete
    result = barycenter(inputs).mixture
    assert set(result.labels.argmax(axis=1)) == {0, 1, 2}
    assert result.n_components == 6  # all inputs together


def test_feature_names_must_agree():
    p = Mixture([1.0], [[0.0, 5.0]], [[1.0, 1.0]], feature_names=["x", "y"])
    q = Mixture([1.0], [[5.0, 0.0]], [[1.0, 1.0]], feature_names=["y", "x"])
    for verb in (smw2, lambda a, b: barycenter([a, b])):
        with pytest.raises(ValueError, match=r"'x'.*'y'.*marginal"):
            verb(p, q)
    result = barycenter([p, q.marginal(["x", "y"])]).mixture
    assert result.feature_names == ("x", "y")
    assert np.allclose(result.means, [[0.0, 5.0]])


def test_huge_beta():
    p, q = (random_mixture(np.random.default_rng(i), 3, 2, 2) for i in (0, 1))
    with pytest.raises(ValueError, match=r"beta=1e\+20.*'auto'"):
        barycenter([p, q], beta=1e20)
    assert barycenter([p, q], beta=1e6).converged


@pytest.mark.parametrize("tol", [np.nan, None, "a"])
def test_bad_tol(tol):
    with pytest.raises(ValueError, match="tol"):
        barycenter([random_mixture(np.random.default_rng(0), 2, 2)], tol=tol)


def test_component_order():
    rng = np.random.default_rng(0)
    p, q = random_mixture(rng, 6, 2, 2), random_mixture(rng, 8, 2, 2)
    b = barycenter([p, q], [0.6, 0.4]).mixture
    c = barycenter([p, permuted(q, rng.permutation(8))], [0.6, 0.4]).mixture
    assert smw2(b, c, beta=1.0) == pytest.approx(0.0, abs=1e-6)


def test_two_gaussians():
    p = Mixture([1.0], [[0.0, 4.0]], [[1.0, 2.0]])
    q = Mixture([1.0], [[8.0, 0.0]], [[5.0, 2.0]])
    b = barycenter([p, q], [0.25, 0.75]).mixture
    assert np.allclose(b.means, [[6.0, 1.0]])
    assert np.allclose(b.stds, [[4.0, 2.0]])


def test_equals_pot_bures():
    rng = np.random.default_rng(0)
    inputs = [random_mixture(rng, 4, 2, uniform=True) for _ in range(2)]
    start, lam = inputs[0], np.array([0.6, 0.4])
    ours = barycenter(inputs, lam, init=start, tol=0.0).mixture
    means, covariances = ot.gmm.gmm_barycenter_fixed_point(
        [p.means for p in inputs],
        [np.stack([np.diag(s**2) for s in p.stds]) for p in inputs],
        [p.weights for p in inputs],
        start.means.copy(),
        np.stack([np.diag(s**2) for s in start.stds]),
        lam,
        iterations=20,
        barycentric_proj_method="bures",
    )
    assert np.allclose(ours.means, means, atol=1e-6)
    assert np.allclose(ours.stds**2, np.stack([np.diag(c) for c in covariances]), atol=1e-6)


def test_labels_separate_classes():
    # the two classes swap sides between the inputs: only the labels tell which is which
    p = Mixture([0.5, 0.5], [[0.0], [2.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])
    q = Mixture([0.5, 0.5], [[0.2], [2.2]], [[1.0], [1.0]], [[0, 1], [1, 0]])
    b = barycenter([p, q]).mixture
    assert sorted(b.labels.tolist()) == [[0.0, 1.0], [1.0, 0.0]]
    assert np.allclose(barycenter([p, q], beta=0.0).mixture.labels, 0.5)


def test_start_classes_match_by_name():
    p = Mixture([0.5, 0.5], [[0.0], [4.0]], [[1.0], [1.0]], np.eye(2), ["ok", "fault"])
    start = Mixture([0.5, 0.5], [[0.1], [3.9]], [[1.0], [1.0]], np.eye(2)[::-1], ["fault", "ok"])
    assert barycenter([p], init=start, beta=1.0).history[0] == pytest.approx(0.01)
    more = Mixture([0.5, 0.5], [[0.1], [3.9]], [[1.0], [1.0]], np.eye(3)[:2], ["ok", "fault", "x"])
    assert barycenter([p], init=more, beta=1.0).mixture.predict([[0.0]]) == "ok"


def test_zero_weights():
    p = Mixture([0.6, 0.0, 0.4], [[0.0], [2.0], [9.0]], np.ones((3, 1)), np.eye(2)[[1, 0, 0]])
    b = barycenter([p]).mixture
    assert b.weights.tolist() == [0.6, 0.4]
    assert b.means.ravel().tolist() == [0.0, 9.0]


def test_beta_max_and_auto():
    rng = np.random.default_rng(0)
    p, q = random_mixture(rng, 5, 2, 2), random_mixture(rng, 5, 2, 2)
    assert barycenter([p, q], beta="max").beta == "max"
    largest = transport_plan(p, q).cost.max()
    assert barycenter([p, q]).beta == pytest.approx(largest)


def test_random_start():
    rng = np.random.default_rng(0)
    inputs = [random_mixture(rng, 5, 2, 2) for _ in range(2)]
    first, again = (barycenter(inputs, init="random", random_state=3).mixture for _ in range(2))
    assert first == again
    assert np.allclose(first.weights, 0.2)
    assert first != barycenter(inputs, init="random", random_state=4).mixture


@pytest.mark.parametrize("K", [1, 3, 10, 47])
def test_resample_keeps_class_proportions(K):
    p = random_mixture(np.random.default_rng(0), 9, 2)
    labels = np.eye(3)[[0, 1, 2] * 3]
    p = Mixture(p.weights, p.means, p.stds, labels)
    q = resample(p, np.full(K, 1.0 / K))
    assert np.abs(q.class_proportions - p.class_proportions).max() <= 1.0 / K
    assert {tuple(m) for m in q.means} <= {tuple(m) for m in p.means}


def test_more_components():
    rng = np.random.default_rng(0)
    inputs = [random_mixture(rng, 12, 2) for _ in range(2)]
    values = [barycenter(inputs, n_components=K).history[-1] for K in (1, 4, 12)]
    assert values[0] > values[1] > values[2]
    assert barycenter(inputs, n_components=24).mixture.n_components == 24


def test_unlabeled_input():
    rng = np.random.default_rng(0)
    b = barycenter([random_mixture(rng, 3, 2, 2), random_mixture(rng, 3, 2)]).mixture
    assert not b.is_labeled
    p = random_mixture(rng, 3, 2)
    assert mw2(barycenter([p]).mixture, p) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mixtures": []}, "mixtures"),
        ({"weights": [0.5, 0.6]}, "weights.*1.1"),
        ({"weights": [1.0]}, "weights.*2.*1"),
        ({"n_components": 0}, "n_components.*0"),
        ({"beta": "auto-max"}, "beta.*'auto-max'"),
        ({"init": "zeros"}, "init.*'zeros'"),
        ({"component_weights": "equal"}, "component_weights.*'equal'"),
        ({"component_weights": [1.0]}, "component_weights.*1"),
        ({"component_weights": "free", "beta": "max"}, "component_weights.*beta"),
        ({"max_iter": 0}, "max_iter.*0"),
    ],
)
def test_bad_arguments(arguments, message):
    rng = np.random.default_rng(0)
    inputs = [random_mixture(rng, 3, 2, 2), random_mixture(rng, 4, 2, 2)]
    with pytest.raises(ValueError, match=message):
        barycenter(**{"mixtures": inputs, **arguments})


def test_zero_weights_in_random_start():
    p = Mixture([0.5, 0.5], [[0.0], [1.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])
    b = barycenter([p, p], component_weights=[0.0, 1.0], init="random", random_state=0).mixture
    assert b.n_components == 1
    np.testing.assert_allclose(b.labels, [[0.5, 0.5]])


def test_bad_init():
    p = Mixture([1.0], [[0.0]], [[1.0]])
    with pytest.raises(ValueError, match="init"):
        barycenter([p], init=3)
