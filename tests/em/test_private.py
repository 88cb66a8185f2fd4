"""Differential privacy: the accountant, the sensitivity, the noise, and an attack."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from mixda import MixdaError, fit_private_mixture
from mixda.em import _private, gaussian_budget, gaussian_delta

BOUNDS = np.array([[-5.0, 5.0], [-5.0, 5.0]])


def blobs(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + 2.0 * (2 * y[:, None] - 1), np.array(["a", "b"])[y]


@pytest.mark.parametrize(("mu", "epsilon"), [(0.3, 0.5), (1.0, 1.0), (2.5, 3.0), (0.2, 1.0)])
def test_delta(mu, epsilon):
    """Against the definition: the mass by which one density exceeds e^epsilon times the other."""

    def excess(x):
        return max(norm.pdf(x, mu) - np.exp(epsilon) * norm.pdf(x), 0.0)

    threshold = epsilon / mu + mu / 2
    expected = quad(excess, threshold, threshold + 40.0, epsabs=1e-14, points=[threshold + 1])[0]
    assert gaussian_delta(mu, epsilon) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_budget(epsilon, delta):
    mu = gaussian_budget(epsilon, delta)
    assert gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-4)
    assert gaussian_delta(1.01 * mu, epsilon) > delta


@pytest.mark.parametrize("radius", [0.3, 0.7, 5.0])
def test_sensitivity(radius):
    """Removing a row moves what a pass publishes by at most mu standard deviations of its noise."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(20, 2)), rng.uniform(-100, 100, size=(20, 2))])
    Z = _private._scaled(X, *BOUNDS.T, radius)
    codes = rng.integers(2, size=40)
    state = _private._Gaussians(
        np.ones((2, 3)),
        rng.uniform(-1, 1, (2, 3, 2)),
        rng.uniform(0.1, 1, (2, 3, 2)),
        np.ones((2, 3, 1)),
    )
    mu, shares = 0.7, (_private._COUNT_SHARE, _private._MEAN_SHARE, _private._SQUARE_SHARE)
    assert sum(shares) == pytest.approx(1.0)
    scales = [s / (mu * np.sqrt(w)) for s, w in zip((1.0, radius, radius), shares, strict=True)]
    whole = _private._sums(Z, codes, state, 2, 3)
    for i in range(len(Z)):
        kept = np.arange(len(Z)) != i
        parts = _private._sums(Z[kept], codes[kept], state, 2, 3)
        moved = [((a - b) / s).ravel() for a, b, s in zip(whole, parts, scales, strict=True)]
        assert np.linalg.norm(np.concatenate(moved)) <= mu * (1 + 1e-9)


@pytest.mark.parametrize("k", [1, 2])
def test_budget_is_spent(monkeypatch, k):
    """The budgets of the passes add up, in squares, to that of epsilon and delta."""
    spent, release = [], _private._release

    def record(*arguments):
        spent.append(arguments[5])
        return release(*arguments)

    monkeypatch.setattr(_private, "_release", record)
    X, y = blobs()
    fit_private_mixture(X, y, k, bounds=BOUNDS, classes=["a", "b"], epsilon=2.0, n_passes=3)
    assert len(spent) == (1 if k == 1 else 4)
    assert np.sum(np.square(spent)) == pytest.approx(gaussian_budget(2.0, 1e-5) ** 2)


def test_without_noise(monkeypatch):
    """Closed form: the moments of each class."""
    monkeypatch.setattr(_private, "_secret_normal", np.zeros)
    X, y = blobs()
    p = fit_private_mixture(
        X, y, bounds=2 * BOUNDS, classes=["a", "b"], epsilon=100.0, clip_norm=2.0
    )
    for k, name in enumerate("ab"):
        np.testing.assert_allclose(p.means[k], X[y == name].mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(p.stds[k], X[y == name].std(axis=0), rtol=1e-2)
    assert p.info["n_samples"] == len(X)
    np.testing.assert_allclose(p.class_proportions, [np.mean(y == "a"), np.mean(y == "b")])


def test_components():
    """Two blobs without classes are found again."""
    X, _ = blobs(20_000)
    options = {"bounds": BOUNDS, "epsilon": 10.0, "n_passes": 8, "random_state": 0}
    p = fit_private_mixture(X, None, 2, **options)
    assert not p.is_labeled
    np.testing.assert_allclose(np.sort(p.means[:, 0]), [-2.0, 2.0], atol=0.4)


def test_noise():
    """It has the standard deviation that the formula says, and no seed reproduces it."""
    X, _ = blobs(300)
    fits = [fit_private_mixture(X, bounds=BOUNDS, epsilon=1.0, random_state=0) for _ in range(120)]
    counts = np.array([p.info["n_samples"] for p in fits])
    expected = 1.0 / (gaussian_budget(1.0, 1e-5) * np.sqrt(_private._COUNT_SHARE))
    assert counts.std() == pytest.approx(expected, rel=0.25)
    assert len({p.means.tobytes() for p in fits}) == 120


def test_membership_attack():
    """An attacker who knows all other rows cannot tell whether an outlier is one of them.

    For any test of this, TPR <= e^epsilon FPR + delta; with 200 fits of each, up to chance.
    """
    X, _ = blobs(60)
    outlier, epsilon, n = np.array([[5.0, -5.0]]), 1.0, 200

    def scores(rows):
        fits = (fit_private_mixture(rows, bounds=BOUNDS, epsilon=epsilon) for _ in range(n))
        return np.array([p.info["n_samples"] * (p.means[0, 0] - p.means[0, 1]) for p in fits])

    without, having = scores(X), scores(np.vstack([X, outlier]))
    for level in (0.1, 0.25, 0.5, 0.75):
        threshold = np.quantile(without, 1 - level)
        hits = (having > threshold).mean()
        assert hits <= np.exp(epsilon) * level + 1e-5 + 3 * np.sqrt(0.25 / n)


def test_nothing_but_noisy_sums():
    """Rows outside the bounds, and the numbers of rows, are not in the file."""
    X, y = blobs(500)
    p = fit_private_mixture(X, y, 2, bounds=BOUNDS, classes=["a", "b", "never"], epsilon=0.5)
    assert p.classes.tolist() == ["a", "b", "never"]
    assert set(p.info) == {"n_samples", "privacy"}
    assert np.abs(p.means).max() <= 5.0
    assert np.isfinite(p.log_prob(X)).all()


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"bounds": [[0.0, 1.0]]}, "bounds"),
        ({"bounds": [[0.0, 1.0], [2.0, 1.0]]}, "bounds"),
        ({"y": ["a"] * 500}, "classes"),
    ],
)
def test_errors(given, match):
    X, _ = blobs(500)
    with pytest.raises(MixdaError, match=match):
        fit_private_mixture(X, **{"bounds": BOUNDS, "epsilon": 1.0, **given})
