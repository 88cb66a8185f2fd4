"""The oracles themselves: closed forms, POT and finite differences, before they judge anything."""

import numpy as np
import pytest

from .oracles import (
    algorithm_1,
    algorithm_2_loss_torch,
    finite_difference_gradient,
    smw2_plan,
    smw2_squared,
    w2_cost,
)


def random_mixture(rng, K, d, nc=None):
    weights = rng.dirichlet(np.full(K, 5.0))
    means, stds = 3.0 * rng.normal(size=(K, d)), rng.uniform(0.3, 2.0, size=(K, d))
    labels = None if nc is None else rng.dirichlet(np.ones(nc), size=K)
    return weights, means, stds, labels


def random_start(rng, K, d, nc):
    return rng.normal(size=(K, d)), np.ones((K, d)), np.full((K, nc), 1.0 / nc)


def test_w2_cost_equals_pot():
    import ot

    rng = np.random.default_rng(0)
    _, m, s, _ = random_mixture(rng, 3, 2)
    _, m2, s2, _ = random_mixture(rng, 4, 2)
    cost = w2_cost(m, s, m2, s2)
    for i in range(3):
        for j in range(4):
            w = ot.gaussian.bures_wasserstein_distance(
                m[i], m2[j], np.diag(s[i] ** 2), np.diag(s2[j] ** 2)
            )
            assert cost[i, j] == pytest.approx(w**2, rel=1e-8)


def test_smw2_plan():
    rng = np.random.default_rng(1)
    p, m, s, _ = random_mixture(rng, 5, 3)
    q, m2, s2, _ = random_mixture(rng, 7, 3)
    cost = w2_cost(m, s, m2, s2)
    plan = smw2_plan(p, q, cost)
    np.testing.assert_allclose(plan.sum(1), p, atol=1e-14)
    np.testing.assert_allclose(plan.sum(0), q, atol=1e-14)
    assert np.sum(plan * cost) < np.sum(np.outer(p, q) * cost)


def test_smw2_closed_form():
    m, s = np.array([[1.0, 2.0]]), np.array([[1.0, 0.5]])
    v, v2 = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    value = smw2_squared([1.0], m, s, v, [1.0], m + 3.0, s + 1.0, v2, beta=10.0)
    assert value == pytest.approx(2 * 9.0 + 2 * 1.0 + 10.0 * 2.0)
    assert smw2_squared([1.0], m, s, None, [1.0], m + 3.0, s + 1.0, v2, 10.0) == pytest.approx(20.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("labeled", [True, False])
def test_algorithm_1_objective(seed, labeled):
    rng = np.random.default_rng(seed)
    d, nc, sizes, K_B = 3, 3, (4, 6, 5), 7
    mixtures = [random_mixture(rng, K, d, nc if labeled else None) for K in sizes]
    M0, S0, V0 = random_start(rng, K_B, d, nc)
    M, S, V, plans, losses = algorithm_1(
        [mixture[1:] for mixture in mixtures],
        [mixture[0] for mixture in mixtures],
        rng.dirichlet(np.ones(3)),
        K_B,
        M0,
        S0,
        V0 if labeled else None,
        beta=2.0,
        n_iter=30,
    )
    assert len(losses) >= 2
    assert losses[-1] < losses[0]
    assert np.all(np.diff(losses) <= 1e-12 * losses[0])
    assert M.shape == S.shape == (K_B, d)
    assert [plan.shape for plan in plans] == [(K_B, K) for K in sizes]
    if labeled:
        np.testing.assert_allclose(V.sum(1), 1.0)
    else:
        assert V is None


def test_algorithm_1_one_hot():
    rng = np.random.default_rng(3)
    K, d, nc = 6, 2, 3
    atoms = [random_mixture(rng, K, d, nc)[1:] for _ in range(3)]
    M, S, V, _, losses = algorithm_1(
        atoms, None, [0.0, 1.0, 0.0], K, *random_start(rng, K, d, nc), beta=5.0
    )
    match = np.argmin(w2_cost(M, S, *atoms[1][:2]), axis=1)
    assert sorted(match) == list(range(K))
    for value, truth in zip((M, S, V), atoms[1], strict=True):
        np.testing.assert_allclose(value, truth[match], atol=1e-12)
    assert losses[-1] == pytest.approx(0.0, abs=1e-12)


def test_algorithm_1_interpolation():
    atoms = [
        (np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]])),
        (np.array([[4.0, 8.0]]), np.array([[3.0, 1.0]]), np.array([[0.0, 1.0]])),
    ]
    start = np.ones((1, 2)), np.ones((1, 2)), np.full((1, 2), 0.5)
    M, S, V, _, losses = algorithm_1(atoms, None, [0.75, 0.25], 1, *start, beta=2.0)
    np.testing.assert_allclose(M, [[1.0, 2.0]])
    np.testing.assert_allclose(S, [[1.5, 1.0]])
    np.testing.assert_allclose(V, [[0.75, 0.25]])
    # variance of two points: lambda (1 - lambda) |z - z'|² with |z - z'|² = 80 + 4 + 2 * 2
    assert losses[-1] == pytest.approx(0.75 * 0.25 * 88.0)


@pytest.fixture
def tiny_problem():
    """Two labeled sources and a target, non-uniform, unequal sizes, three atoms of four."""
    rng = np.random.default_rng(7)
    d, nc, K, n_atoms = 2, 2, 4, 3
    domains = [random_mixture(rng, n, d, nc) for n in (3, 5)] + [random_mixture(rng, 6, d)]
    parameters = {
        "means": rng.normal(size=(n_atoms, K, d)),
        "stds": rng.uniform(0.5, 1.5, size=(n_atoms, K, d)),
        "logits": rng.normal(size=(n_atoms, K, nc)),
        "lam": rng.dirichlet(np.full(n_atoms, 3.0), size=3),
    }
    starts = [random_start(rng, K, d, nc) for _ in domains]
    return parameters, domains, starts


def loss_at(parameters, domains, starts, requires_grad=False):
    torch = pytest.importorskip("torch")
    leaves = {
        name: torch.tensor(value, dtype=torch.float64, requires_grad=requires_grad)
        for name, value in parameters.items()
    }
    means, stds, logits = (list(leaves[name]) for name in ("means", "stds", "logits"))
    loss, details = algorithm_2_loss_torch(
        means, stds, logits, leaves["lam"], domains, starts, beta=3.0, n_iter=4
    )
    return loss, details, leaves


def test_algorithm_2_loss(tiny_problem):
    parameters, domains, starts = tiny_problem
    loss, details, _ = loss_at(parameters, domains, starts)
    logits = parameters["logits"]
    labels = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    atoms = list(zip(parameters["means"], parameters["stds"], labels, strict=True))
    total = 0.0
    for (q, m_q, s_q, v_q), start, lam in zip(domains, starts, parameters["lam"], strict=True):
        M, S, V, _, _ = algorithm_1(atoms, None, lam, 4, *start, beta=3.0, n_iter=4, tol=0.0)
        total += smw2_squared(np.full(4, 0.25), M, S, V, q, m_q, s_q, v_q, beta=3.0)
    assert float(loss) == pytest.approx(total, rel=1e-12)
    assert sum(detail["value"] for detail in details) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("name", ["means", "stds", "logits", "lam"])
def test_algorithm_2_autograd(tiny_problem, name):
    """Plans are re-solved at each perturbed point; being piecewise constant, they do not move."""
    parameters, domains, starts = tiny_problem
    loss, _, leaves = loss_at(parameters, domains, starts, requires_grad=True)
    loss.backward()

    def f(value):
        return float(loss_at({**parameters, name: value}, domains, starts)[0])

    numeric = finite_difference_gradient(f, parameters[name])
    np.testing.assert_allclose(leaves[name].grad.numpy(), numeric, rtol=1e-5, atol=1e-6)


def test_finite_differences():
    x = np.array([[1.0, -2.0], [0.5, 3.0]])
    np.testing.assert_allclose(
        finite_difference_gradient(lambda z: np.sum(z**2), x), 2 * x, atol=1e-8
    )
