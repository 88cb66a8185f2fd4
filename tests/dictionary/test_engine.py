"""Loss, plans, gradients and steps of the dictionary against torch's autograd and dense algebra."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

from mixda.dictionary import Engine, State, coordinate_gradient, project_simplex
from mixda.dictionary._optimizers import Block, through_softmax
from mixda.dictionary._quadratic import NormalEquations, minimize_on_simplex
from mixda.transport import LabelWeight, features

from ..oracles import algorithm_2_loss_torch

C, K = 3, 5  # atoms and their components
D, NC = 2, 3  # features and classes of the fixture `domains`


def engine_and_state(domains, rng, beta=2.0):
    sources, target = domains
    clouds = [features(q) for q in (*sources, target)]
    engine = Engine(
        clouds,
        [*(q.labels for q in sources), None],
        [q.weights for q in (*sources, target)],
        C,
        K,
        LabelWeight(beta),
    )
    points = np.hstack([rng.standard_normal((C * K, D)), rng.uniform(0.5, 1.5, (C * K, D))])
    state = State(
        points - engine.center,
        rng.dirichlet(np.ones(NC), C * K),
        rng.dirichlet(np.ones(C), 3),
        np.full((C, K), 1.0 / K),
    )
    return engine, state


@pytest.mark.parametrize("seed", range(6))
def test_equals_literal_algorithm_2(domains, seed):
    torch = pytest.importorskip("torch")
    engine, state = engine_and_state(domains, np.random.default_rng(seed))
    reconstructions = engine.evaluate(state).reconstructions

    parts = (state.points + engine.center).reshape(C, K, 2 * D)
    tensors = {
        "means": [torch.tensor(z[:, :D], requires_grad=True) for z in parts],
        "stds": [torch.tensor(z[:, D:], requires_grad=True) for z in parts],
        "logits": [
            torch.tensor(np.log(v), requires_grad=True) for v in state.labels.reshape(C, K, NC)
        ],
    }
    lam = torch.tensor(state.coordinates, requires_grad=True)
    starts = []
    for row in state.coordinates:  # the engine starts at the atom with the largest coordinate
        first = parts[np.argmax(row)]
        starts.append((first[:, :D], first[:, D:], state.labels.reshape(C, K, NC)[np.argmax(row)]))
    sources, target = domains
    listed = [(q.weights, q.means, q.stds, q.labels) for q in (*sources, target)]
    loss, details = algorithm_2_loss_torch(
        **tensors, lam=lam, domains=listed, starts=starts, beta=2.0, n_iter=10
    )
    loss.backward()

    for r, oracle in zip(reconstructions, details, strict=True):
        assert r.loss == pytest.approx(oracle["value"], rel=1e-6)
        assert np.allclose(r.plan.toarray(), oracle["plan"], atol=1e-6)
        for permutation, theirs in zip(r.columns.T % K, oracle["plans"], strict=True):
            assert np.allclose(np.eye(K)[permutation] / K, theirs, atol=1e-6)
    assert sum(r.loss for r in reconstructions) == pytest.approx(loss.item(), rel=1e-6)
    points, labels = engine.gradient(state, reconstructions, state.coordinates)
    expected = np.hstack(
        [np.vstack([t.grad.numpy() for t in tensors[name]]) for name in ("means", "stds")]
    )
    assert np.allclose(2.0 * points, expected, atol=1e-6)
    logits = np.vstack([t.grad.numpy() for t in tensors["logits"]])
    assert np.allclose(2.0 * through_softmax(labels, state.labels), logits, atol=1e-6)
    along = np.eye(C) - 1.0 / C  # the simplex; across it the gradient depends on the origin
    coordinates = 2.0 * coordinate_gradient(state.coordinates, reconstructions)
    assert np.allclose(coordinates @ along, lam.grad.numpy() @ along, atol=1e-6)


def test_hessian(domains):
    rng = np.random.default_rng(0)
    engine, state = engine_and_state(domains, rng)
    fixed = engine.evaluate(state).reconstructions
    step = rng.standard_normal(state.points.shape)
    moved = replace(state, points=state.points + step)
    difference = (
        engine.gradient(moved, fixed, state.coordinates)[0]
        - engine.gradient(state, fixed, state.coordinates)[0]
    )
    equations = engine.normal_equations(fixed, state.coordinates)
    H, P = dense_equations(equations, np.ones(len(equations.weights)))
    assert np.allclose(H @ step, difference)
    gradient = engine.gradient(state, fixed, state.coordinates)[0]
    assert np.allclose(H @ state.points - P @ engine.points, gradient)
    assert np.allclose(equations.right("float64").toarray(), P)


def dense_equations(equations, factors):
    """H = Mᵀ diag(factor b) M and P = Mᵀ ω with dense matrices."""
    maps = np.zeros((len(equations.lam), equations.shape[0]))
    np.put_along_axis(maps, equations.columns, equations.lam, axis=1)
    plan = np.zeros((len(maps), equations.shape[1]))
    plan[equations.plan[0], equations.plan[1]] = equations.plan[2]
    return maps.T @ ((factors * equations.weights)[:, None] * maps), maps.T @ plan


def test_evaluation_reuses_products_while_atoms_rest(domains):
    rng = np.random.default_rng(0)
    engine, state = engine_and_state(domains, rng)
    first = engine.evaluate(state)
    moved = replace(state, coordinates=rng.dirichlet(np.ones(C), 3))
    again, fresh = engine.evaluate(moved, products=first.products), engine.evaluate(moved)
    assert [r.loss for r in again.reconstructions] == [r.loss for r in fresh.reconstructions]


def test_state_is_read_only(domains):
    _, state = engine_and_state(domains, np.random.default_rng(0))
    with pytest.raises(ValueError, match="read-only"):
        state.points[0] = 0.0
    with pytest.raises(AttributeError):
        state.weights = state.weights


def test_updated_weights_lower_the_loss(domains):
    sources, _ = domains
    q = sources[1]
    engine = Engine([features(q)], [q.labels], [q.weights], C, K, LabelWeight(2.0))
    _, state = engine_and_state(domains, np.random.default_rng(0))
    state = replace(state, coordinates=state.coordinates[:1])
    losses = []
    for _ in range(20):
        reconstructions = engine.evaluate(state).reconstructions
        losses.append(reconstructions[0].loss)
        state = replace(state, weights=engine.updated_weights(state, reconstructions, 0.3))
    assert (np.diff(losses) <= 1e-9).all()
    assert losses[-1] < losses[0]
    assert np.allclose(state.weights.sum(axis=1), 1.0)


def test_block_step(domains):
    """With damping → 0 and settled coordinates the gradient in the atoms vanishes after a step."""
    engine, state = engine_and_state(domains, np.random.default_rng(3))
    optimizer = Block(damping=1e-9)
    for _ in range(60):
        fixed = engine.evaluate(state).reconstructions
        new, atoms_moved, _ = optimizer.step(engine, state, fixed)
        if atoms_moved:
            break
        assert np.array_equal(new.points, state.points)
        state = new
    before, _ = engine.gradient(state, fixed, new.coordinates)
    after, _ = engine.gradient(new, fixed, new.coordinates)
    assert atoms_moved
    assert np.abs(after).max() <= 1e-6 * np.abs(before).max()


@pytest.mark.parametrize("seed", range(5))
def test_minimize_on_simplex(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 4))
    quadratic, linear = A.T @ A + 0.1 * np.eye(4), rng.standard_normal(4)
    minimizer = minimize_on_simplex(quadratic, linear)
    expected = scipy.optimize.minimize(
        lambda x: x @ quadratic @ x - 2 * linear @ x,
        np.full(4, 0.25),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-12},
    ).x
    assert np.allclose(minimizer, expected, atol=1e-5)
    assert minimizer.sum() == pytest.approx(1.0)


def test_project_simplex():
    rng = np.random.default_rng(0)
    rows = 2 * rng.standard_normal((50, 5))
    projected = project_simplex(rows)
    assert np.allclose(projected.sum(axis=1), 1.0)
    assert (projected >= 0).all()
    others = rng.dirichlet(np.ones(5), 200)
    nearest = ((rows - projected) ** 2).sum(axis=1)
    assert (((rows[:, None] - others) ** 2).sum(axis=2) >= nearest[:, None] - 1e-12).all()
    assert np.allclose(project_simplex(np.ones((1, 4))), 0.25)


@pytest.mark.parametrize("classes", [1, 3, 12])
@pytest.mark.parametrize("empty", [False, True])
def test_damped_step(classes, empty):
    """The blocks solve the same system as numpy does for the whole matrix."""
    rng = np.random.default_rng(classes)
    n, L = 12, 3  # components per atom, domains
    group = n // classes  # atoms are aligned within a class only, so that blocks are small
    within = [
        np.concatenate([g * group + rng.permutation(group) for g in range(classes)])
        for _ in range(L * C)
    ]
    columns = np.vstack([np.stack(within[l * C : l * C + C], axis=1) for l in range(L)])
    lam = np.repeat(rng.dirichlet(np.ones(C), L), n, axis=0)
    lam[:n, 0] = 0.0  # one domain without the first atom
    plan = rng.integers(L * n, size=50), rng.permutation(50), rng.random(50)
    shape = (C * n, 50)
    equations = NormalEquations(columns + np.arange(C) * n, lam, rng.random(L * n), plan, shape)
    factors = np.repeat([0.0, 0.0, 0.0] if empty else [2.0, 0.0, 1.0], n)
    Z, Q = rng.standard_normal((C * n, 9)), rng.standard_normal((50, 9))
    steps = equations.solve(0.3, [np.ones(L * n), factors])
    for step, f in zip(steps, (np.ones(L * n), factors), strict=True):
        H, P = dense_equations(equations, f)
        mu = 0.3 * np.trace(H) / len(H)
        expected = np.linalg.solve(H + mu * np.eye(len(H)), mu * Z + P @ Q) if mu > 0 else Z
        assert np.allclose(step(Z, Q), expected)
        own, cross = step.products(Z @ Z.T, Z @ Q.T, Q @ Q.T)
        assert np.allclose(own, expected @ expected.T)
        assert np.allclose(cross, expected @ Q.T)
    assert steps[0].contraction.n_entries <= classes * (C * group) ** 2
