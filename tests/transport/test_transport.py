"""Transport: distances and plans against POT, closed forms and invariances."""

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixda import Mixture, barycenter, mw2, smw2, transport_plan
from mixda.transport import barycentric_map, solve_exact, squared_distances

from ..oracles import smw2_cost, smw2_squared
from ..strategies import families, permuted, random_mixture

fast = settings(max_examples=40)


def parts(p):
    return p.weights, p.means, p.stds, p.labels


@fast
@given(families(2, nc=3), st.floats(0.0, 50.0))
def test_value_equals_linear_program(pair, beta):
    p, q = pair
    expected = smw2_squared(*parts(p), *parts(q), beta)
    assert smw2(p, q, beta=beta, squared=True) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert smw2(p, q, beta=beta) == pytest.approx(expected**0.5, rel=1e-9, abs=1e-9)


@fast
@given(families(2))
def test_mw2_equals_pot(pair):
    p, q = pair
    covariances = [np.stack([np.diag(s**2) for s in m.stds]) for m in pair]
    expected = ot.gmm.gmm_ot_loss(p.means, q.means, *covariances, p.weights, q.weights)
    assert mw2(p, q, squared=True) == pytest.approx(float(expected), rel=1e-7, abs=1e-9)


@fast
@given(families(2, nc=2), st.booleans())
def test_plan_is_optimal(pair, labeled):
    p, q = pair
    r = transport_plan(p, q, beta="max" if labeled else 0.0)
    assert np.allclose(r.plan.sum(axis=1), p.weights)
    assert np.allclose(r.plan.sum(axis=0), q.weights)
    assert r.value == pytest.approx((r.plan * r.cost).sum())
    u, v = r.potentials
    assert (u[:, None] + v <= r.cost + 1e-9 * (1 + r.cost.max())).all()
    assert u @ p.weights + v @ q.weights == pytest.approx(r.value, rel=1e-9, abs=1e-9)


@fast
@given(families(2, uniform=True, same_size=True))
def test_assignment_equals_linear_program(pair):
    p, q = pair
    r = transport_plan(p, q)
    assert r.value == pytest.approx(ot.emd2(p.weights, q.weights, r.cost), abs=1e-12)
    u, v = r.potentials
    assert (u[:, None] + v <= r.cost + 1e-9).all()
    assert u.mean() + v.mean() == pytest.approx(r.value, abs=1e-9)


@fast
@given(families(2, nc=2), st.randoms())
def test_distance_axioms(pair, random):
    p, q = pair
    assert mw2(p, p) == 0.0
    assert smw2(p, p) == 0.0
    assert smw2(p, q) == pytest.approx(smw2(q, p), rel=1e-9, abs=1e-9)
    order = list(range(p.n_components))
    random.shuffle(order)
    assert smw2(permuted(p, order), q) == pytest.approx(smw2(p, q), rel=1e-9, abs=1e-9)
    assert smw2(permuted(p, order), p) == pytest.approx(0.0, abs=1e-7)


@fast
@given(families(3, nc=2))
def test_triangle_inequality(trio):
    p, q, r = trio
    assert smw2(p, r, beta=3.0) <= smw2(p, q, beta=3.0) + smw2(q, r, beta=3.0) + 1e-9


def test_one_component():
    p = Mixture([1.0], [[0.0, 0.0]], [[1.0, 2.0]])
    q = Mixture([1.0], [[3.0, 0.0]], [[1.0, 6.0]])
    assert mw2(p, q) == 5.0


def test_equal_deviations():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(7, 3)), rng.normal(size=(9, 3))
    p = Mixture(np.full(7, 1 / 7), x, np.ones_like(x))
    q = Mixture(np.full(9, 1 / 9), y, np.ones_like(y))
    assert mw2(p, q, squared=True) == pytest.approx(ot.emd2([], [], ot.dist(x, y)))


def test_translation():
    p = random_mixture(np.random.default_rng(0), 5, 3)
    q = Mixture(p.weights, p.means + np.array([3.0, 0.0, 4.0]), p.stds)
    assert mw2(p, q) == pytest.approx(5.0)


def test_beta_max():
    rng = np.random.default_rng(0)
    p, q = random_mixture(rng, 4, 2, 3), random_mixture(rng, 5, 2, 3)
    r = transport_plan(p, q, beta="max")
    assert r.beta == pytest.approx(transport_plan(p, q).cost.max())
    expected = smw2_cost(p.means, p.stds, p.labels, q.means, q.stds, q.labels, r.beta)
    assert np.allclose(r.cost, expected)


def test_classes_match_by_name():
    p = Mixture([1.0], [[0.0]], [[1.0]], [[0.0, 1.0]], ["a", "b"])
    q = Mixture([1.0], [[0.0]], [[1.0]], [[1.0, 0.0]], ["b", "c"])
    assert smw2(p, q, beta=1.0) == 0.0
    with pytest.raises(ValueError, match="numbers as classes and others strings"):
        smw2(p, Mixture([1.0], [[0.0]], [[1.0]], [[1.0, 0.0]], [1, 2]), beta=1.0)


@pytest.mark.parametrize(("reg", "reg_m"), [(0.05, None), (0.05, 1.0), (0.2, 0.1)])
def test_entropic_and_unbalanced_equal_pot(reg, reg_m):
    rng = np.random.default_rng(0)
    p, q = random_mixture(rng, 5, 2), random_mixture(rng, 7, 2)
    r = transport_plan(p, q, reg=reg, reg_m=reg_m)
    cost = r.cost / r.cost.max()
    if reg_m is None:
        expected = ot.sinkhorn(
            p.weights, q.weights, cost, reg, method="sinkhorn_log", stopThr=1e-12
        )
    else:
        expected = ot.unbalanced.sinkhorn_unbalanced(
            p.weights, q.weights, cost, reg, reg_m, reg_type="kl", stopThr=1e-14, numItermax=10**5
        )
    assert np.allclose(r.plan, expected, atol=1e-6)
    assert r.n_iter > 0


def test_small_entropy():
    rng = np.random.default_rng(1)
    p, q = random_mixture(rng, 4, 2), random_mixture(rng, 5, 2)
    exact = transport_plan(p, q).value
    values = [transport_plan(p, q, reg=reg).value for reg in (0.3, 0.03, 0.003)]
    assert values[0] > values[1] > values[2] >= exact - 1e-9
    assert values[2] == pytest.approx(exact, rel=1e-2)


def test_warm_start_changes_nothing():
    rng = np.random.default_rng(0)
    p, q = random_mixture(rng, 40, 3), random_mixture(rng, 50, 3)
    cold = transport_plan(p, q)
    warm = transport_plan(p, q, warm_start=cold.potentials)
    assert warm.value == pytest.approx(cold.value, rel=1e-12)


def test_two_thousand_components():
    rng = np.random.default_rng(0)
    p, q = random_mixture(rng, 2000, 3), random_mixture(rng, 2000, 3)
    r = transport_plan(p, q)
    u, v = r.potentials
    assert u @ p.weights + v @ q.weights == pytest.approx(r.value, rel=1e-9)
    assert (r.cost - u[:, None] - v).min() > -1e-9


@fast
@given(families(2, nc=2))
def test_map_minimizes_distance(pair):
    p, q = pair
    plan = transport_plan(p, q, beta=2.0).plan
    moved = barycentric_map(p, q, plan)

    def objective(m, s, v):
        return (plan * smw2_cost(m, s, v, q.means, q.stds, q.labels, 2.0)).sum()

    best = objective(moved.means, moved.stds, moved.labels)
    rng = np.random.default_rng(0)
    for _ in range(3):
        m, s = (x + 0.1 * rng.standard_normal(x.shape) for x in (moved.means, moved.stds))
        v = moved.labels + 0.1 * rng.standard_normal(moved.labels.shape)
        assert objective(m, s, v) >= best - 1e-12


@fast
@given(families(2, nc=2))
def test_map_onto_itself(pair):
    b = barycenter(pair).mixture
    unlabeled = Mixture(b.weights, b.means, b.stds)
    moved = barycentric_map(b, unlabeled, transport_plan(b, unlabeled).plan)
    assert smw2(moved, b, beta=1.0) == pytest.approx(0.0, abs=1e-6)
    swapped = [Mixture(p.weights, p.means, p.stds, p.labels[:, ::-1]) for p in pair]
    other = barycenter(swapped).mixture
    assert np.allclose(other.labels, b.labels[:, ::-1], atol=1e-9)
    assert np.allclose(other.means, b.means)


def test_map_with_masses_of_plan():
    p = Mixture([0.5, 0.5], [[0.0], [9.0]], [[1.0], [1.0]], np.eye(2))
    q = Mixture([0.9, 0.1], [[1.0], [8.0]], [[1.0], [1.0]])
    plan = transport_plan(p, q, reg=0.01, reg_m=0.01).plan  # nearly the nearest component
    moved = barycentric_map(p, q, plan, weights="plan")
    assert np.allclose(moved.weights, plan.sum(axis=1) / plan.sum())
    assert moved.class_proportions[0] > 0.6
    assert np.array_equal(barycentric_map(p, q, plan).weights, p.weights)
    with pytest.raises(ValueError, match=r"weights.*'target'"):
        barycentric_map(p, q, plan, weights="target")


def test_map_divides_by_row_mass():
    p = Mixture([0.5, 0.5], [[0.0], [1.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])
    q = Mixture([1.0], [[4.0]], [[2.0]])
    moved = barycentric_map(p, q, np.array([[0.25], [0.0]]))  # unbalanced; one row sends nothing
    assert moved.means.ravel().tolist() == [4.0, 1.0]
    assert moved.stds.ravel().tolist() == [2.0, 1.0]
    assert np.array_equal(moved.labels, p.labels)


def test_weights_matter():
    p = Mixture([0.9, 0.1], [[0.0], [10.0]], [[1.0], [1.0]])
    q = Mixture([0.1, 0.9], [[0.0], [10.0]], [[1.0], [1.0]])
    assert mw2(p, q, squared=True) == pytest.approx(0.8 * 100.0)


def test_distances_of_near_points():
    a = np.array([[1e8, 1.0], [1e8 + 1.0, 2.0]])
    assert np.array_equal(squared_distances(a, a).diagonal(), [0.0, 0.0])
    assert squared_distances(a, a)[0, 1] == pytest.approx(2.0, rel=1e-12)


def test_components_without_mass():
    p = Mixture([1.0, 0.0], [[0.0], [5.0]], [[1.0], [1.0]])
    q = Mixture([0.5, 0.5], [[1.0], [2.0]], [[1.0], [1.0]])
    r = transport_plan(p, q)
    assert np.allclose(r.plan, [[0.5, 0.5], [0.0, 0.0]])
    assert barycentric_map(p, q, r.plan).means.ravel().tolist() == [1.5, 5.0]


def test_unsolved_program_raises(monkeypatch):
    monkeypatch.setattr("mixda.transport._exact._MAX_PIVOTS", 3)
    rng = np.random.default_rng(0)
    with (
        pytest.warns(UserWarning, match="numItermax"),
        pytest.raises(RuntimeError, match="not solved"),
    ):
        solve_exact(rng.dirichlet(np.ones(60)), rng.dirichlet(np.ones(70)), rng.random((60, 70)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta": -1.0}, "beta must be"),
        ({"beta": "most"}, "beta must be"),
        ({"beta": np.nan}, "beta must be"),
        ({"reg": -1.0}, "reg must be"),
        ({"reg_m": 1.0}, "reg_m=1.0"),
        ({"reg": 0.1, "reg_m": 0.0}, "reg_m must be a positive number"),
        ({"beta": 1.0}, "beta=1.0"),
    ],
)
def test_bad_arguments(arguments, message):
    p = Mixture([1.0], [[0.0]], [[1.0]])
    with pytest.raises(ValueError, match=message):
        transport_plan(p, p, **arguments)


def test_different_features():
    with pytest.raises(ValueError, match=r"features.*\[1, 2\]"):
        mw2(Mixture([1.0], [[0.0]], [[1.0]]), Mixture([1.0], [[0.0, 1.0]], [[1.0, 1.0]]))


@pytest.mark.parametrize("scale", [1e-50, 1e-12, 1e-8, 1e50])
def test_plans_do_not_depend_on_the_unit(scale):
    def mixtures(unit):
        rng = np.random.default_rng(1)
        return [
            Mixture(
                rng.dirichlet(np.ones(K)),
                unit * rng.normal(size=(K, 3)),
                unit * rng.uniform(0.1, 1.0, (K, 3)),
            )
            for K in (12, 15)
        ]

    p, q = mixtures(1.0)
    small_p, small_q = mixtures(scale)
    expected = transport_plan(p, q)
    found = transport_plan(small_p, small_q)
    np.testing.assert_allclose(mw2(small_p, small_q) / scale, mw2(p, q), rtol=1e-12)
    np.testing.assert_allclose(found.plan, expected.plan, atol=1e-12)
    duals = [side @ w for side, w in zip(found.potentials, (p.weights, q.weights), strict=True)]
    np.testing.assert_allclose(sum(duals), found.value, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-10, 1e-7, 1.0, 1e5])
def test_assignment_potentials_are_feasible(scale):
    rng = np.random.default_rng(0)
    p, q = (random_mixture(rng, 20, 3, uniform=True) for _ in range(2))
    p, q = (Mixture(m.weights, scale * m.means, scale * m.stds) for m in (p, q))
    found = transport_plan(p, q)
    u, v = found.potentials
    slack = (found.cost - u[:, None] - v) / found.cost.max()
    assert slack.min() > -1e-12
    assert np.abs(slack[found.plan > 0]).max() < 1e-12


@pytest.mark.parametrize(
    "warm_start", ["x", (np.zeros(2), np.zeros(3)), (np.full(2, np.nan), np.zeros(2))]
)
def test_bad_warm_start(warm_start):
    p = Mixture([0.3, 0.7], [[0.0], [1.0]], [[1.0], [1.0]])
    with pytest.raises(ValueError, match="warm_start"):
        transport_plan(p, p, warm_start=warm_start)


def test_sinkhorn_warns():
    p = Mixture([0.3, 0.7], [[0.0], [1.0]], [[1.0], [1.0]])
    q = Mixture([0.6, 0.4], [[0.0], [2.0]], [[1.0], [1.0]])
    with pytest.warns(UserWarning, match="reg"):
        transport_plan(p, q, reg=1e-300)


def test_large_entropy():
    p = Mixture([0.3, 0.7], [[0.0], [1.0]], [[1.0], [1.0]])
    q = Mixture([0.6, 0.4], [[0.0], [2.0]], [[1.0], [1.0]])
    plan = transport_plan(p, q, reg=1e10).plan
    np.testing.assert_allclose(plan, np.outer(p.weights, q.weights), atol=1e-8)


@pytest.mark.parametrize("wrong", [{"reg": "a"}, {"reg": np.inf}, {"beta": None}])
def test_numbers_are_required(wrong):
    p = Mixture([1.0], [[0.0]], [[1.0]], [[1.0]])
    with pytest.raises(ValueError, match="must be a non-negative number"):
        transport_plan(p, p, **wrong)


def test_not_a_mixture():
    with pytest.raises(ValueError, match=r"Mixture.*ndarray"):
        mw2(Mixture([1.0], [[0.0]], [[1.0]]), np.ones(3))


def test_boolean_and_string_classes():
    p = Mixture([1.0], [[0.0]], [[1.0]], [[1.0, 0.0]], [False, True])
    q = Mixture([1.0], [[0.0]], [[1.0]], [[1.0, 0.0]], ["a", "b"])
    with pytest.raises(ValueError, match="convert one"):
        smw2(p, q, beta=1.0)
