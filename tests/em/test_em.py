"""EM against scikit-learn, closed forms and its own invariances."""

from __future__ import annotations

import io
import itertools
import os
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from mixda import MixdaError, Mixture, fit_labeled_mixture, fit_mixture
from mixda.em._steps import Parameters, SuffStats, e_step, m_step
from mixda.mixture import log_gaussians


def blobs(n=600, d=3, k=4, seed=0, scale=4.0):
    rng = np.random.default_rng(seed)
    means = scale * rng.standard_normal((k, d))
    y = rng.integers(k, size=n)
    return means[y] + rng.uniform(0.3, 1.5, (k, d))[y] * rng.standard_normal((n, d)), y


def start_of(X, k):
    return Mixture(np.full(k, 1 / k), X[:k], np.full((k, X.shape[1]), X.std()))


def sklearn_from(start, X, n_iter):
    model = GaussianMixture(
        start.n_components,
        covariance_type="diag",
        tol=0.0,
        reg_covar=0.0,
        max_iter=n_iter,
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=start.stds**-2.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def assert_close(p, q, tol):
    np.testing.assert_allclose(p.weights, q.weights, rtol=0, atol=tol)
    np.testing.assert_allclose(p.means, q.means, rtol=0, atol=tol)
    np.testing.assert_allclose(p.stds, q.stds, rtol=0, atol=tol)


# --- against scikit-learn and closed forms ---------------------------------------------------


@pytest.mark.parametrize("n_iter", [1, 7, 40])
@pytest.mark.parametrize("shape", [(600, 3, 4), (120, 300, 3)])
def test_same_iterates_as_sklearn(n_iter, shape):
    X, _ = blobs(*shape)
    start = start_of(X, shape[2])
    ours = fit_mixture(X, init=start, min_std=1e-9, max_iter=n_iter, tol=0.0)
    theirs = sklearn_from(start, X, n_iter)
    np.testing.assert_allclose(ours.weights, theirs.weights_, atol=1e-6)
    np.testing.assert_allclose(ours.means, theirs.means_, atol=1e-6)
    np.testing.assert_allclose(ours.stds**2, theirs.covariances_, atol=1e-6)
    assert ours.score(X) >= theirs.score(X) - 1e-9


def test_one_component():
    X, _ = blobs()
    p = fit_mixture(X)
    np.testing.assert_allclose(p.means[0], X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(p.stds[0], X.std(axis=0), atol=1e-12)


def test_kmeans_start_against_sklearn():
    for seed in range(3):
        X, _ = blobs(seed=seed, n=300)
        theirs = GaussianMixture(4, covariance_type="diag", n_init=3, random_state=seed).fit(X)
        ours = fit_mixture(X, 4, n_init=3, random_state=seed)
        assert ours.score(X) >= theirs.score(X) - 1e-3  # sklearn's own tolerance


def test_likelihood_never_decreases():
    X, _ = blobs()
    for floor in (1e-6, 1.0):  # a floor of 1 is above most standard deviations of the blobs
        start = start_of(X, 4)
        path = [
            fit_mixture(X, init=start, max_iter=n, tol=0.0, min_std=floor).score(X)
            for n in range(1, 15)
        ]
        assert np.diff(path).min() > -1e-10


# --- statistics ------------------------------------------------------------------------------


def test_statistics():
    X, _ = blobs(n=90)
    weight = np.random.default_rng(1).uniform(0.1, 2.0, 90)
    p = start_of(X, 4)
    parameters = Parameters(np.log(p.weights), p.means, p.stds)
    r = p.responsibilities(X) * weight[:, None]
    whole = e_step(X, weight, parameters)
    np.testing.assert_allclose(whole.n_k, r.sum(axis=0))
    np.testing.assert_allclose(whole.sum_x, np.einsum("nk,nd->kd", r, X), atol=1e-10)
    np.testing.assert_allclose(whole.sum_xx, np.einsum("nk,nd->kd", r, X**2))
    assert whole.loglik == pytest.approx(weight @ p.log_prob(X))
    assert whole.weight == pytest.approx(weight.sum())
    a, b, c = (e_step(X[i::3], weight[i::3], parameters) for i in range(3))
    for merged in (reduce(SuffStats.merge, (c, a, b)), a.merge(b.merge(c))):
        np.testing.assert_allclose(merged.sum_xx, whole.sum_xx, rtol=1e-12)
        assert merged.loglik == pytest.approx(whole.loglik, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_statistics(weighted):
    rng = np.random.default_rng(0)
    means = rng.standard_normal((5, 300))
    X = means[rng.integers(5, size=70)] + rng.standard_normal((70, 300))
    weight = rng.uniform(0.1, 2.0, 70) if weighted else np.ones(70)
    p = Mixture(np.full(5, 0.2), means, np.ones((5, 300)))
    parameters = Parameters(np.log(p.weights), p.means, p.stds)
    stats = e_step(X, weight if weighted else None, parameters)
    r = p.responsibilities(X) * weight[:, None]
    assert np.count_nonzero(r > 1e-30) < r.size / 3  # so the sparse products are the ones tested
    np.testing.assert_allclose(stats.sum_x, np.einsum("nk,nd->kd", r, X), atol=1e-11)
    np.testing.assert_allclose(stats.sum_xx, np.einsum("nk,nd->kd", r, X**2), rtol=1e-11)


def test_steps_pickle():
    X, _ = blobs(n=50)
    p = start_of(X, 4)
    parameters = Parameters(np.log(p.weights), p.means, p.stds)
    here = e_step(X, None, parameters)
    there = pickle.loads(pickle.dumps(e_step))(X, None, pickle.loads(pickle.dumps(parameters)))
    np.testing.assert_array_equal(here.sum_xx, pickle.loads(pickle.dumps(there)).sum_xx)


@pytest.mark.parametrize("weighted", [False, True])
def test_chunk_size_does_not_matter(weighted):
    X, _ = blobs(n=740, d=5)
    weight = np.random.default_rng(0).uniform(0, 3, 740) if weighted else None
    one, many = (
        fit_mixture(X, 4, sample_weight=weight, chunk_size=size, random_state=0, tol=0, max_iter=30)
        for size in (740, 20)
    )
    assert_close(one, many, 1e-8)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor makes one thread")
def test_threads(monkeypatch):
    used = []
    monkeypatch.setattr(
        "mixda._core.parallel.ThreadPoolExecutor", lambda n: used.append(n) or ThreadPoolExecutor(n)
    )
    X, _ = blobs(n=40_000, d=16)  # large enough for the pool of threads
    one, two, again = (fit_with(threads, X) for threads in (1, 2, 2))
    assert used == [2, 2]
    assert_close(one, two, 1e-12)
    assert two == again


def fit_with(threads, X):
    with threadpool_limits(threads):
        return fit_mixture(X, 4, random_state=0, max_iter=3)


def test_large_offset():
    X, y = blobs(scale=2.0)
    X = np.round(X * 2**20) / 2**20  # exact after the shift, so only arithmetic differs
    plain, moved = (fit_mixture(Z, 4, random_state=0) for Z in (X, X + 1e7))
    np.testing.assert_allclose(moved.stds, plain.stds, rtol=1e-7)
    np.testing.assert_allclose(moved.means - 1e7, plain.means, atol=1e-6)
    plain, moved = (fit_labeled_mixture(Z, y, 2, random_state=0) for Z in (X, X + 1e7))
    np.testing.assert_allclose(moved.stds, plain.stds, rtol=1e-7)


# --- weights, floor, starts ------------------------------------------------------------------


def test_integer_weights_are_repetitions():
    X, _ = blobs(n=200)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    options = {"init": start_of(X, 4), "max_iter": 20, "tol": 0.0}
    repeated = fit_mixture(np.repeat(X, weight, axis=0), **options)
    for scale in (1, 1e-30, 1e30):
        assert_close(fit_mixture(X, sample_weight=weight * scale, **options), repeated, 1e-9)


def test_zero_weight():
    X, y = blobs(n=100)
    far = np.vstack([X, np.full((5, 3), 1e9)])
    weight = np.r_[np.ones(100), np.zeros(5)]
    assert_close(
        fit_mixture(far, 3, sample_weight=weight, random_state=0),
        fit_mixture(X, 3, sample_weight=np.ones(100), random_state=0),
        0.0,
    )
    p = fit_labeled_mixture(far, np.r_[y, [9] * 5], sample_weight=weight)
    assert p.classes[-1] == 9
    assert p.class_proportions[-1] == 0.0


@pytest.mark.parametrize("n_jobs", [None, 1])
def test_zero_weight_and_n_components(n_jobs):
    with pytest.raises(MixdaError, match=r"n_components=3 .*1 sample"):
        fit_mixture([[0.0], [1.0], [2.0]], 3, sample_weight=[1, 0, 0], n_jobs=n_jobs)


def test_auto_floor():
    X = np.array([[0.0, 5.0, 0.0], [2.0, 5.0, 200.0]])  # standard deviations 1, 0, 100
    stds = fit_labeled_mixture(X, [0, 1]).stds  # one sample per class: everything at the floor
    mean = 101.0 / 3.0
    np.testing.assert_allclose(stds, np.tile(1e-3 * np.array([mean, mean, 100.0]), (2, 1)))
    constant = np.full((4, 2), [3.0, -7.0])
    np.testing.assert_allclose(fit_mixture(constant).stds, 1e-6 * (1.0 + 7.0))
    np.testing.assert_allclose(fit_mixture(constant + 1e7).stds, 1e-6 * (1.0 + 1e7 + 3.0))


def test_min_std():
    X, _ = blobs()
    assert fit_mixture(X, 4, min_std=0.7, random_state=0).stds.min() == 0.7
    floor = np.array([9.0, 1e-3, 8.0])
    stds = fit_mixture(X, 4, min_std=floor, random_state=0).stds
    assert (stds >= floor).all()
    assert stds[:, 1].max() < 8.0


def test_reproducible():
    X, y = blobs()
    before = X.copy()
    assert fit_mixture(X, 4, random_state=3) == fit_mixture(X, 4, random_state=3)
    p, q = (fit_labeled_mixture(X, y, 3, random_state=3, n_init=2) for _ in range(2))
    assert p == q
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("n_components", [5, "bic"])
@pytest.mark.parametrize("gaps", [False, True])
def test_systematic_init(n_components, gaps):
    """The seed and the order of the rows have no effect; the fit is as good as a random start."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) + 4.0 * rng.integers(0, 2, size=(200, 3))
    if gaps:
        X[rng.random(X.shape) < 0.05] = np.nan
    y = rng.integers(0, 2, 200)
    order = rng.permutation(200)
    fits = [
        fit_labeled_mixture(Z, c, n_components, init="systematic", n_init=2, random_state=seed)
        for seed, (Z, c) in enumerate([(X, y), (X, y), (X[order], y[order])])
    ]
    assert np.array_equal(fits[0].means, fits[1].means)
    assert np.allclose(np.sort(fits[0].means, axis=0), np.sort(fits[2].means, axis=0))
    ours = fit_mixture(X, n_components, init="systematic").score(X)
    theirs = [fit_mixture(X, n_components, random_state=seed).score(X) for seed in range(5)]
    assert ours > min(theirs) - 1e-9


def test_systematic_means_of_few_rows():
    X = np.repeat([[0.0], [1.0]], 3, axis=0)
    p = fit_mixture(X, 4, init="systematic")
    assert np.isfinite(p.log_prob(X)).all()


def test_n_init():
    X, _ = blobs(k=8, n=400)
    few, many = (fit_mixture(X, 8, n_init=n, random_state=0).score(X) for n in (1, 8))
    assert many >= few - 1e-12


def test_empty_component():
    X, _ = blobs()
    start = Mixture([0.5, 0.5, 0.0], [X[0], [1e6] * 3, X[1]], np.ones((3, 3)))
    p = fit_mixture(X, init=start)
    assert p.n_components == 3
    assert (p.weights > 0).all()
    np.testing.assert_allclose(p.means[1], 1e6)
    assert np.isfinite(p.log_prob(X)).all()


@pytest.mark.parametrize("k", [1, 2, 4])
def test_bic(k):
    centers = 20.0 * np.eye(4)[:k]
    X = np.repeat(centers, 80, axis=0) + np.random.default_rng(k).standard_normal((80 * k, 4))
    assert fit_mixture(X, "bic", n_init=3, random_state=0).n_components == k


def test_bic_max_components():
    X, _ = blobs()
    assert fit_mixture(X, "bic", max_components=2, random_state=0).n_components <= 2
    few = fit_labeled_mixture(X[:5], [0, 0, 0, 0, 1], "bic", random_state=0)
    assert few.n_components <= 5  # never more than a class has samples
    assert few.labels.sum(axis=0)[1] == 1


# --- labeled --------------------------------------------------------------------------------


def test_labeled():
    X, y = blobs()
    p = fit_labeled_mixture(X, y, class_prior="empirical")
    for c in range(4):
        np.testing.assert_allclose(p.means[c], X[y == c].mean(axis=0))
        np.testing.assert_allclose(p.stds[c], X[y == c].std(axis=0))
        assert p.weights[c] == pytest.approx((y == c).mean())
    np.testing.assert_array_equal(p.labels, np.eye(4))
    uniform = fit_labeled_mixture(X, y, 3, class_prior="uniform", random_state=0)
    np.testing.assert_allclose(uniform.class_proportions, 0.25)
    assert uniform.n_components == 12


def test_class_prior_of_weights():
    p = fit_labeled_mixture([[0.0], [1.0], [9.0]], [0, 0, 1], sample_weight=[1, 1, 6])
    np.testing.assert_allclose(p.weights, [0.25, 0.75])


@pytest.mark.parametrize(
    "names", [["ok", "slip", "wear", "leak"], [30, 7, -2, 100], [0.5, 1.5, 2.5, 9.0]]
)
@pytest.mark.parametrize("container", [list, np.array, pd.Series, pd.Categorical])
def test_any_kind_of_class(names, container):
    X, y = blobs()
    labels = [names[i] for i in y]
    p = fit_labeled_mixture(pd.DataFrame(X), container(labels), random_state=0)
    assert p.classes.tolist() == sorted(names)
    assert np.mean(p.predict(X) == np.array(labels)) > 0.9


def test_absent_classes():
    X, y = blobs()
    p = fit_labeled_mixture(X, y, 2, classes=[5, 3, 0, 1, 2, 4], random_state=0)
    assert p.classes.tolist() == [5, 3, 0, 1, 2, 4]
    assert p.labels.shape == (8, 6)
    np.testing.assert_array_equal(p.labels.sum(axis=0), [0, 2, 2, 2, 2, 0])
    np.testing.assert_allclose(p.class_proportions[1], (y == 3).mean())


def test_distinct_samples_limit_components():
    X = np.array([[0.0], [0.0], [1.0], [5.0], [-0.0]])
    p = fit_labeled_mixture(X, ["a", "a", "a", "b", "a"], 10, random_state=0)
    assert p.labels.sum(axis=0).tolist() == [2, 1]  # {0, 1} and {5}
    assert p.predict([[5.0]]).tolist() == ["b"]


# --- awkward and bad input -------------------------------------------------------------------


@pytest.mark.parametrize(
    "X",
    [
        np.ones((1, 1)),
        np.full((1, 3), 1e7),
        np.full((20, 3), 0.1),
        np.repeat([[0.0, 1.0], [3.0, 1.0]], 15, axis=0),
        np.c_[np.arange(12.0), np.full(12, 0.1)],
        np.r_[np.zeros(30), 1e-9][:, None],
    ],
)
@pytest.mark.parametrize("k", [1, 5, "bic"])
def test_degenerate_data(X, k):
    k = min(k, len(X)) if k != "bic" else k
    p = fit_mixture(X, k, n_init=2, random_state=0)
    assert np.isfinite(p.log_prob(X)).all()
    assert (p.weights > 0).all()
    q = fit_labeled_mixture(X, np.arange(len(X)) % 3, k, random_state=0)
    assert np.isfinite(q.predict_proba(X)).all()


def test_many_features():
    X, y = blobs(n=60, d=2048, k=3)
    p = fit_labeled_mixture(X, y, 2, random_state=0)
    assert np.isfinite(p.log_prob(100 * X)).all()
    assert np.mean(p.predict(X) == y) == 1.0


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[np.nan], [np.nan]], "feature 0"),
        ([[0.0], [np.inf]], "infinite"),
        ([0.0, 1.0], "dimension"),
        ([[[0.0]]], "dimension"),
        (np.empty((0, 2)), "empty"),
        (np.empty((2, 0)), "empty"),
        ([["a"], ["b"]], "number"),
        ([[1e200], [-1e200]], "overflow"),
    ],
)
def test_bad_samples(X, message):
    with pytest.raises(MixdaError, match=message):
        fit_mixture(X)
    with pytest.raises(MixdaError, match=message):
        fit_labeled_mixture(X, [0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 5}, "n_components=5 .*4 sample"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": "aic"}, "n_components"),
        ({"n_components": 1.5}, "n_components"),
        ({"sample_weight": [1, 1, 1]}, "sample_weight .*length 3"),
        ({"sample_weight": [1, 1, 1, -1]}, "sample_weight .*-1"),
        ({"sample_weight": [0, 0, 0, 0]}, "sample_weight .*sum of 0"),
        ({"sample_weight": [1, 1, 1, np.nan]}, "NaN"),
        ({"min_std": 0.0}, "min_std.*positive"),
        ({"min_std": -1.0}, "min_std.*positive"),
        ({"min_std": "small"}, "min_std"),
        ({"min_std": [1.0, 2.0, 3.0]}, "min_std"),
        ({"min_std": None}, "min_std"),
        ({"n_init": 0}, "n_init"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"chunk_size": 0}, "chunk_size"),
        ({"max_components": 0}, "max_components"),
        ({"random_state": "seed"}, "random_state"),
        ({"init": "k-means"}, "init"),
        ({"init": Mixture([1.0], [[0.0]], [[1.0]])}, "init has 1 features"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(MixdaError, match=message):
        fit_mixture(np.arange(8.0).reshape(4, 2), **options)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([0, 1], {}, "length 2"),
        ([[0], [1], [0]], {}, "shape"),
        ([0, 1, np.nan], {}, "NaN"),
        (np.array(["a", 1, None], dtype=object), {}, "strings or of numbers"),
        ([0, 1, 1], {"class_prior": "balanced"}, "class_prior"),
        ([0, 1, 1], {"classes": [0, 2]}, "not among"),
        ([0, 1, 1], {"classes": ["0", "1"]}, "both"),
        ([0, 1, 1], {"classes": [0, 1, 1]}, r"classes .*\[0, 1, 1\]"),
    ],
)
def test_bad_classes(y, options, message):
    with pytest.raises(MixdaError, match=message):
        fit_labeled_mixture([[0.0], [1.0], [2.0]], y, **options)


# --- the density kernel and progress ---------------------------------------------------------


@pytest.mark.parametrize("std", [1e-7, 1e-5, 1e-3, 1.0, 1e3])
def test_densities_of_small_stds(std):
    rng = np.random.default_rng(0)
    means = rng.standard_normal((4, 6))
    stds = np.full((4, 6), std)
    stds[0] = 1.0  # one wide component among narrow ones
    X = means[[0, 1, 2, 3, 3]] + stds[[0, 1, 2, 3, 3]] * rng.standard_normal((5, 6))
    literal = -0.5 * (((X[:, None] - means) / stds) ** 2 + np.log(2 * np.pi)) - np.log(stds)
    np.testing.assert_allclose(log_gaussians(X, means, stds), literal.sum(axis=2), rtol=1e-8)


def test_verbose(monkeypatch, capsys):
    X, y = blobs(n=60)
    monkeypatch.setattr("mixda._core.progress.LineClock._seen", float("-inf"))  # new work
    fit_mixture(X, 2, verbose=True, random_state=0)
    assert capsys.readouterr() == ("", "")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    clock = SimpleNamespace(monotonic=itertools.count(1).__next__)  # a second between updates
    monkeypatch.setattr("mixda._core.progress.time", clock)
    fit_labeled_mixture(X, y, verbose=True, random_state=0)
    assert "1/100 0/4 mixtures done, mean log-likelihood -" in terminal.getvalue()


def test_m_step():
    stats = SuffStats(np.array([2.0, 0.0]), np.ones((2, 1)), np.ones((2, 1)), 0.0, 2.0)
    before = Parameters(np.log([0.5, 0.5]), np.full((2, 1), 3.0), np.ones((2, 1)))
    after = m_step(stats, np.array([0.1]), before)
    np.testing.assert_allclose(after.means, [[0.5], [3.0]])
    np.testing.assert_allclose(after.stds, [[0.5], [1.0]])  # 1/2 - (1/2)²; the empty one stays
    np.testing.assert_array_equal(stats.sum_x, 1.0)


@pytest.mark.parametrize("scale", [1e-70, 1e-200])
def test_underflow(scale):
    X = scale * np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(MixdaError, match="rescale"):
        fit_mixture(X, 2)
    with pytest.raises(MixdaError, match="rescale"):
        fit_labeled_mixture(X, np.arange(20) % 2)


def test_constant_class():
    X = np.array([[0.0], [1e-70], [5.0], [6.0]])
    assert fit_labeled_mixture(X, [0, 0, 1, 1], random_state=0).predict(X).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("min_std", [1e-200, 1e200])
def test_extreme_min_std(min_std):
    with pytest.raises(MixdaError, match="min_std"):
        fit_mixture([[0.0], [1.0]], 1, min_std=min_std)
