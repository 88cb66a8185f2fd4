"""Inner products that follow a step without being computed anew, against the points themselves."""

from dataclasses import replace

import numpy as np
import pytest

from mixda import Mixture, learn_dictionary
from mixda.dictionary import Engine
from mixda.dictionary._optimizers import Block
from mixda.dictionary._starts import start_from_sources
from mixda.transport import LabelWeight, features


@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-12), ("float32", 1e-6)])
def test_updated_products(dtype, error):
    """After many steps and projections, updates agree with products of the points themselves."""
    sources, target = wide_domains()
    clouds = [features(q) for q in (*sources, target)]
    labels, weights = [*(q.labels for q in sources), None], [q.weights for q in (*sources, target)]
    engine = Engine(clouds, labels, weights, 2, 6, LabelWeight(2.0), dtype)
    state = start_from_sources(engine, sources)
    optimizer, lowest = Block(damping=0.1), np.percentile(state.points, 20, axis=0)
    products, n_updates = None, 0
    for _ in range(30):
        evaluation = engine.evaluate(state, products=products)
        moved, atoms_moved, points_map = optimizer.step(engine, state, evaluation.reconstructions)
        lowest[:150] = -np.inf  # like the means, which the floor leaves alone
        state, products = replace(moved, points=np.maximum(moved.points, lowest)), None
        state = replace(state, points=state.points.astype(dtype))
        if atoms_moved:
            products = engine.updated_products(evaluation.products, points_map, moved.points, state)
        if products is not None and products.n_updates > 0:
            n_updates += 1
            Z, Q = state.points.astype(np.float64), engine.points.astype(np.float64)
            scale = error * (Z**2).sum(axis=1).max()
            assert np.abs(products.points - Z @ Z.T).max() <= scale
            assert np.abs(products.domain_points - Z @ Q.T).max() <= scale
    assert n_updates >= 15


def wide_domains():
    rng = np.random.default_rng(1)
    centers = 2.0 * rng.standard_normal((3, 150))
    domains = []
    for shift in (0.0, 0.5, -0.5):
        means = np.repeat(centers, 2, axis=0) + shift + 0.5 * rng.standard_normal((6, 150))
        stds = rng.uniform(0.5, 1.5, (6, 150))
        labels = np.repeat(np.eye(3), 2, axis=0)
        domains.append(Mixture(rng.dirichlet(np.full(6, 5.0)), means, stds, labels))
    return domains[:2], Mixture(domains[2].weights, domains[2].means, domains[2].stds)


def test_resume_wide(tmp_path, monkeypatch):
    """A resumed run repeats the updates of inner products digit by digit."""
    monkeypatch.setattr("mixda.dictionary._checkpoint._SECONDS_BETWEEN", 0.0)
    sources, target = wide_domains()
    options = {"n_atoms": 2, "n_iter": 15, "tol": -np.inf}
    whole = learn_dictionary(sources, target, **options)
    path = tmp_path / "c.npz"

    def killed(d):
        if len(d.history.loss) == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_dictionary(sources, target, callback=killed, checkpoint=path, **options)
    with np.load(path) as saved:
        assert int(saved["products_n_updates"]) > 0
    resumed = learn_dictionary(sources, target, checkpoint=path, **options)
    assert np.array_equal(resumed.history.loss, whole.history.loss)
    assert resumed.atoms == whole.atoms
