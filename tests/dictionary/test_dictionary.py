"""Learned dictionaries: published results, constraints, checkpoints, rejected arguments."""

from dataclasses import replace

import numpy as np
import pytest

from mixda import Mixture, datasets, fit_labeled_mixture, fit_mixture, learn_dictionary, smw2

from ..strategies import random_mixture


@pytest.fixture(scope="module")
def toy():
    """All eight seeds of the paper's toy: sources, target, and the target's samples."""
    problems = []
    for seed in range(8):
        data = datasets.make_toy(random_state=seed)
        X, y = (
            [data.X[data.domain == k] for k in range(4)],
            [data.y[data.domain == k] for k in range(4)],
        )
        sources = [
            fit_labeled_mixture(X[k], y[k], n_components=5, class_prior="uniform", random_state=0)
            for k in range(3)
        ]
        problems.append((sources, fit_mixture(X[3], n_components=10, random_state=0), X, y))
    return problems


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"optimizer": "adam", "init": "random", "n_iter": 200, "tol": -np.inf, "min_std": 0.5**0.5},
    ],
    ids=["default", "as the authors"],
)
def test_toy_reaches_published_results(toy, options):
    # BASELINES §4, eight data seeds: loss below 3, target NLL below 4, target accuracy ≥ 0.99
    for seed, (sources, target, X, y) in enumerate(toy):
        d = learn_dictionary(sources, target, n_atoms=3, random_state=seed, **options)
        assert d.history.loss[-1] < 3
        assert -d.target.score(X[3]) < 4
        assert (d.target.predict(X[3]) == y[3]).mean() >= 0.99
        for l in range(4):
            assert (d.reconstruct(l).predict(X[l]) == y[l]).mean() >= 0.98


@pytest.mark.parametrize("optimizer", ["block", "adam", "gradient"])
@pytest.mark.parametrize("init", ["sources", "random"])
@pytest.mark.parametrize("weights", ["fixed", "learned"])
def test_constraints_at_every_step(toy, optimizer, init, weights):
    sources, target, *_ = toy[0]
    seen = []
    options = {"optimizer": optimizer, "init": init, "component_weights": weights, "min_std": 0.3}
    d = learn_dictionary(
        sources, target, n_iter=15, tol=-np.inf, callback=seen.append, random_state=0, **options
    )
    assert len(seen) == 16
    assert d.history.loss.shape == (16,)
    for s in seen:
        assert np.allclose(s.coordinates.sum(axis=1), 1.0)
        assert (s.coordinates >= 0).all()
        for atom in s.atoms:
            assert (atom.stds >= 0.3 - 1e-12).all()
            assert np.allclose(atom.labels.sum(axis=1), 1.0)
    assert d.history.loss[-1] < d.history.loss[0]
    assert np.allclose(d.history.domain_loss.sum(axis=1), d.history.loss)
    learned = any(np.ptp(atom.weights) > 1e-6 for atom in d.atoms)
    assert learned == (weights == "learned")


@pytest.mark.parametrize("min_std", ["auto", 2.0])  # 2: above most deviations of the start
@pytest.mark.parametrize("n_iter", [1, 10])
def test_history_loss(toy, min_std, n_iter):
    sources, target, *_ = toy[1]
    d = learn_dictionary(sources, target, n_iter=n_iter, min_std=min_std)
    if min_std == 2.0:
        assert all((atom.stds >= 2.0 - 1e-12).all() for atom in d.atoms)
    for l, q in enumerate(sources):
        value = smw2(d.reconstruct(l), q, beta=d.beta, squared=True)
        assert value == pytest.approx(d.history.domain_loss[-1, l], rel=1e-8)
    value = smw2(d.target, target, beta=0.0, squared=True)
    assert value == pytest.approx(d.history.domain_loss[-1, -1], rel=1e-8)


def test_target_fit():
    rng = np.random.default_rng(3)
    sources = [random_mixture(rng, 6, 2, 2) for _ in range(2)]
    target = random_mixture(rng, 6, 2)
    free = learn_dictionary(sources, target, target_fit=0)
    kept = learn_dictionary(sources, target, target_fit=1.0)
    ratios = [
        d.history.domain_loss[:, -1] / d.history.domain_loss[:, :-1].mean(axis=1)
        for d in (free, kept)
    ]
    assert ratios[0][-1] < 0.5  # a private atom follows the target
    assert len(ratios[1]) < len(ratios[0])
    assert 0.5 < ratios[1][-1] <= 1.0  # the last step was shortened
    never = learn_dictionary(sources, target, target_fit=1.0, tol=-1.0, n_iter=12)
    assert len(never.history.loss) == 13
    with pytest.raises(ValueError, match="target_fit"):
        learn_dictionary(sources, target, target_fit=-1.0)


@pytest.mark.parametrize("weights", ["fixed", "learned"])
@pytest.mark.parametrize("optimizer", ["block", "adam", "gradient"])
def test_best_iterate(domains, optimizer, weights):
    sources, target = domains
    seen = []
    d = learn_dictionary(
        sources, target, n_atoms=2, n_iter=25, tol=-np.inf, optimizer=optimizer,
        component_weights=weights, callback=seen.append,
    )  # fmt: skip
    best = seen[int(np.argmin(d.history.loss))]
    assert d.atoms == best.atoms
    assert np.array_equal(d.coordinates, best.coordinates)
    value = smw2(d.target, target, beta=0.0, squared=True)
    assert value == pytest.approx(best.history.domain_loss[-1, -1], rel=1e-8)
    if optimizer == "gradient" and weights == "fixed":
        assert (np.diff(d.history.loss) <= 0).all()
        assert d.history.loss[-1] < 0.95 * d.history.loss[0]


def test_reconstruct_coordinates(toy):
    sources, target, *_ = toy[2]
    d = learn_dictionary(sources, target, n_iter=20)
    for l in range(4):
        a, b = d.reconstruct(l), d.reconstruct(d.coordinates[l])
        assert smw2(a, b, beta=1.0) == pytest.approx(0.0, abs=1e-6)
    assert smw2(d.reconstruct(np.eye(3)[1]), d.atoms[1], beta=1.0) == pytest.approx(0.0, abs=1e-6)


def test_nll(toy):
    sources, target, X, _ = toy[0]
    d = learn_dictionary(sources, target, n_iter=5, samples=X)
    assert d.history.nll.shape == d.history.domain_loss.shape
    assert d.history.nll[-1, -1] == pytest.approx(-d.target.score(X[3]))


@pytest.mark.parametrize("optimizer", ["block", "gradient"])  # Adam amplifies rounding of zeros
def test_float32(toy, optimizer):
    sources, target, *_ = toy[0]
    options = {"n_iter": 10, "optimizer": optimizer, "tol": -np.inf}
    a, b = (
        learn_dictionary(sources, target, precision=p, **options) for p in ("float32", "float64")
    )
    assert np.allclose(a.history.loss, b.history.loss, rtol=1e-4)


@pytest.mark.parametrize("n_atoms", [1, 2, 3, 5, 9])
def test_numbers_of_atoms(toy, n_atoms):
    sources, target, X, y = toy[0]
    d = learn_dictionary(sources, target, n_atoms=n_atoms, n_components=7, n_iter=15)
    assert len(d.atoms) == n_atoms
    assert d.atoms[0].n_components == 7
    assert (d.target.predict(X[3]) == y[3]).mean() >= 0.95


def test_rotated_toy():
    # BASELINES §4: at 120 degrees the authors' recipe has 0.56 with a loss of about 2
    for seed in range(3):
        data = datasets.make_toy(separation=6, span=120, random_state=seed)
        X = [data.X[data.domain == k] for k in range(4)]
        y = [data.y[data.domain == k] for k in range(4)]
        sources = [
            fit_labeled_mixture(X[k], y[k], n_components=5, random_state=0) for k in range(3)
        ]
        d = learn_dictionary(sources, fit_mixture(X[3], n_components=10, random_state=0))
        assert (d.target.predict(X[3]) == y[3]).mean() >= 0.97


def test_target_labels_are_ignored(toy):
    sources, target, *_ = toy[0]
    wrong = np.eye(2)[np.zeros(target.n_components, dtype=int)]
    labeled = Mixture(target.weights, target.means, target.stds, wrong)
    a = learn_dictionary(sources, target, n_iter=5)
    b = learn_dictionary(sources, labeled, n_iter=5)
    assert a.atoms == b.atoms
    assert np.array_equal(a.coordinates, b.coordinates)


def test_random_state(toy):
    sources, target, *_ = toy[0]
    options = {"init": "random", "n_iter": 5, "optimizer": "adam"}
    a, b = (learn_dictionary(sources, target, random_state=7, **options) for _ in range(2))
    assert a.atoms == b.atoms
    assert a.atoms != learn_dictionary(sources, target, random_state=8, **options).atoms


def test_callback_and_tol_stop(toy):
    sources, target, *_ = toy[0]
    d = learn_dictionary(sources, target, callback=lambda d: len(d.history.loss) == 3)
    assert len(d.history.loss) == 3
    assert len(learn_dictionary(sources, target, tol=0.5, n_iter=100).history.loss) < 20


@pytest.mark.parametrize("optimizer", ["block", "adam"])
def test_resume(toy, tmp_path, monkeypatch, optimizer):
    monkeypatch.setattr("mixda.dictionary._checkpoint._SECONDS_BETWEEN", 0.0)
    sources, target, *_ = toy[0]
    options = {"optimizer": optimizer, "n_iter": 12, "tol": -np.inf}
    whole = learn_dictionary(sources, target, **options)

    def killed(d):
        if len(d.history.loss) == 7:
            raise KeyboardInterrupt

    path = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        learn_dictionary(sources, target, callback=killed, checkpoint=path, **options)
    assert path.exists()
    swapped = [replace(q, labels=q.labels[:, ::-1]) for q in sources]
    for others, more in ((sources[::-1], {}), (swapped, {}), (sources, {"min_std": 0.1})):
        with pytest.raises(ValueError, match="other data or settings"):
            learn_dictionary(others, target, checkpoint=path, **options, **more)
    lengths = []
    resumed = learn_dictionary(
        sources, target, checkpoint=path, callback=lambda d: lengths.append(len(d.history.loss)),
        **options,
    )  # fmt: skip
    assert lengths[0] == 7
    assert resumed.atoms == whole.atoms
    assert np.array_equal(resumed.history.loss, whole.history.loss)
    assert not path.exists()
    path.write_text("something else")
    with pytest.raises(ValueError, match="not a checkpoint"):
        learn_dictionary(sources, target, checkpoint=path, **options)


def test_source_without_a_class(toy):
    sources, target, X, y = toy[0]
    half = fit_labeled_mixture(X[0][y[0] == 0], y[0][y[0] == 0], n_components=5, classes=[0, 1])
    d = learn_dictionary([half, *sources[1:]], target)
    assert d.target.classes.tolist() == [0, 1]
    assert np.mean(d.target.predict(X[-1]) == y[-1]) > 0.97


def _translated(shift, classes=(0, 1, 2)):
    """Three corners of a square of side 10, each with two components of its class, shifted."""
    corners = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    means = np.vstack([corners[c] + np.array([[0.0, 0.0], [0.0, 1.0]]) for c in classes]) + shift
    labels, K = np.eye(3)[np.repeat(classes, 2)], len(means)
    return Mixture(np.full(K, 1 / K), means, np.full((K, 2), 0.5), labels, [0, 1, 2])


@pytest.mark.parametrize("optimizer", ["block", "adam", "gradient"])
@pytest.mark.parametrize(
    "present",
    [
        [(0, 1), (0, 1, 2), (0, 1, 2), (0, 1, 2)],
        [(0, 1), (0, 1), (0, 1), (0, 1, 2)],
        [(1, 2), (0, 2), (0, 1), (0, 1, 2)],
        [(0, 1), (1, 2)],
    ],
    ids=["one lacks a class", "most lack it", "each lacks another", "all lack one"],
)
def test_missing_class_keeps_its_labels(optimizer, present):
    # all domains are translations of each other, so atoms may be translations too, each class with
    # a third of the components; a source that lacks a class is then fitted without a loss
    shifts = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
    sources = [_translated(shift, own) for shift, own in zip(shifts, present, strict=False)]
    target = _translated([3.0, 2.0])
    unlabeled = replace(target, labels=None, classes=None)
    d = learn_dictionary(sources, unlabeled, optimizer=optimizer, tol=-np.inf)
    for mixture in (*d.atoms, d.target):
        assert np.allclose(mixture.weights @ mixture.labels, 1 / 3, atol=0.01)
    assert np.array_equal(d.target.predict(target.means), np.repeat([0, 1, 2], 2))
    # the minimum is zero; block and Adam reach 1e-3 of the start, plain gradients are slower
    assert d.history.loss[-1] < (0.1 if optimizer == "gradient" else 1e-3) * d.history.loss[0]


def test_class_of_no_source(toy):
    sources, target, *_ = toy[0]
    wider = [replace(p, labels=np.eye(3)[p.labels.argmax(1)], classes=[0, 1, 2]) for p in sources]
    d, expected = learn_dictionary(wider, target), learn_dictionary(sources, target)
    assert np.allclose(d.target.labels[:, :2], expected.target.labels)
    assert np.allclose(d.coordinates, expected.coordinates)


@pytest.mark.parametrize("unit", [2.0**-33, 2.0**-23, 2.0**17])  # no rounding, so no new ties
def test_unit_invariance(toy, unit):
    sources, target, *_ = toy[0]

    def scaled(p):
        return replace(p, means=unit * p.means, stds=unit * p.stds)

    expected = learn_dictionary(sources, target, n_iter=10)
    d = learn_dictionary([scaled(p) for p in sources], scaled(target), n_iter=10)
    assert np.allclose(d.coordinates, expected.coordinates, atol=1e-6)
    assert np.allclose(d.history.loss / unit**2, expected.history.loss, rtol=1e-6)


def test_floor_and_names(toy):
    sources, target, *_ = toy[0]
    named = [replace(p, feature_names=("x", "y")) for p in (*sources, target)]
    wide = replace(named[0], stds=np.where(np.arange(2) < 1, 1e6, 0.01) * np.ones((10, 2)))
    d = learn_dictionary([wide, *named[1:-1]], named[-1], min_std=0.01, precision="float32")
    assert min(atom.stds.min() for atom in d.atoms) >= 0.01
    assert d.target.feature_names == ("x", "y")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sources": []}, "sources"),
        ({"n_atoms": 0}, "n_atoms.*0"),
        ({"n_components": 0}, "n_components.*0"),
        ({"n_iter": 0}, "n_iter.*0"),
        ({"optimizer": "sgd"}, "optimizer.*'sgd'"),
        ({"init": "zeros"}, "init.*'zeros'"),
        ({"beta": -1.0}, "beta.*-1.0"),
        ({"damping": 0.0}, "damping.*0.0"),
        ({"learning_rate": np.nan}, "learning_rate.*nan"),
        ({"min_std": -1.0}, "min_std.*-1.0"),
        ({"precision": "float16"}, "precision.*'float16'"),
        ({"component_weights": "free"}, "component_weights.*'free'"),
        ({"samples": [np.zeros((3, 2))]}, "samples.*3.*1"),
    ],
)
def test_bad_arguments(domains, arguments, message):
    sources, target = domains
    with pytest.raises(ValueError, match=message):
        learn_dictionary(**{"sources": sources, "target": target, **arguments})


def test_bad_domains(domains):
    sources, target = domains
    with pytest.raises(ValueError, match="source 1"):
        learn_dictionary([sources[0], target], target)
    with pytest.raises(ValueError, match=r"features.*\[1, 2\]"):
        learn_dictionary(sources, Mixture([1.0], [[0.0]], [[1.0]]))
    d = learn_dictionary(sources, target, n_iter=1)
    with pytest.raises(ValueError, match=r"domain=3.*3 domains"):
        d.reconstruct(3)
    with pytest.raises(ValueError, match="domain"):
        d.reconstruct([0.5, 0.5, 0.5])


def _two_sources_and_a_target():
    rng = np.random.default_rng(0)
    p, q = random_mixture(rng, 4, 2, 2), random_mixture(rng, 5, 2, 2)
    return [p, q], Mixture(p.weights, p.means + 1.0, p.stds)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"learning_rate": "a"}, "learning_rate"),
        ({"learning_rate": np.inf}, "learning_rate"),
        ({"damping": 1e-300}, "damping.*1e-300"),
        ({"min_std": None}, "min_std"),
        ({"min_std": np.ones(2)}, "min_std"),
        ({"beta": None}, "beta"),
        ({"beta": np.ones(2)}, "beta"),
        ({"samples": [np.ones((3, 1))] * 3}, "samples.* 1 .* 2 "),
    ],
)
def test_bad_numbers(wrong, message):
    sources, target = _two_sources_and_a_target()
    with pytest.raises(ValueError, match=message):
        learn_dictionary(sources, target, n_iter=2, **wrong)


def test_divergence():
    sources, target = _two_sources_and_a_target()
    options = {"n_iter": 60, "tol": -np.inf, "optimizer": "adam", "learning_rate": 1e200}
    with pytest.raises(ValueError, match="learning_rate"):
        learn_dictionary(sources, target, **options)


def test_unwritable_checkpoint(tmp_path):
    sources, target = _two_sources_and_a_target()
    with pytest.raises(ValueError, match=r"c\.npz"):
        learn_dictionary(sources, target, n_iter=2, checkpoint=tmp_path / "none" / "c.npz")


def test_incomplete_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("mixda.dictionary._checkpoint._SECONDS_BETWEEN", 0.0)
    sources, target = _two_sources_and_a_target()
    path, options = tmp_path / "c.npz", {"n_iter": 5, "tol": -np.inf}

    def kill(dictionary):
        if path.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_dictionary(sources, target, checkpoint=path, callback=kill, **options)
    with np.load(path) as archive:
        kept = {name: archive[name] for name in archive.files if name != "columns"}
    np.savez(path, **kept)
    with pytest.raises(ValueError, match="not a checkpoint"):
        learn_dictionary(sources, target, checkpoint=path, **options)
