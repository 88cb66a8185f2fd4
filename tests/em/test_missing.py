"""EM and mixtures with missing values: closed forms, a literal EM, and invariances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mixda import MixdaError, Mixture, chunks, fit_domains, fit_labeled_mixture, fit_mixture
from mixda.em._steps import Parameters, e_step

NAN = np.nan


def with_gaps(X, share, seed=0):
    rng = np.random.default_rng(seed)
    X = X.copy()
    X[rng.random(X.shape) < share] = NAN
    return X


def blobs(n=400, seed=0):
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0.0, 0.0], [6.0, 6.0, -6.0]])
    y = rng.integers(2, size=n)
    return means[y] + rng.standard_normal((n, 3)), y


def literal_em(X, p, n_iter, floor):
    """Loop over rows and components, with the density of the observed features of each row."""
    weights, means, stds = p.weights.copy(), p.means.copy(), p.stds.copy()
    n, d = X.shape
    for _ in range(n_iter):
        r = np.empty((n, len(weights)))
        for i, x in enumerate(X):
            seen = ~np.isnan(x)
            for k in range(len(weights)):
                r[i, k] = weights[k]
                if seen.any():
                    cov = np.diag(stds[k, seen] ** 2)
                    r[i, k] *= multivariate_normal.pdf(x[seen], means[k, seen], cov)
        r /= r.sum(axis=1, keepdims=True)
        for k in range(len(weights)):
            for j in range(d):
                seen = ~np.isnan(X[:, j])
                first = np.where(seen, X[:, j], means[k, j])
                m = r[:, k] @ first / r[:, k].sum()
                second = np.where(
                    seen, (X[:, j] - m) ** 2, (means[k, j] - m) ** 2 + stds[k, j] ** 2
                )
                means[k, j] = m
                stds[k, j] = np.sqrt(max(r[:, k] @ second / r[:, k].sum(), floor**2))
        weights = r.mean(axis=0)
    return weights, means, stds


def test_equals_literal_em():
    X = with_gaps(blobs(60)[0], 0.3)
    start = Mixture([0.4, 0.6], [[0.5, 0, 1], [4, 5, -4]], np.full((2, 3), 2.0))
    p = fit_mixture(X, init=start, max_iter=5, tol=0.0, min_std=0.01)
    weights, means, stds = literal_em(X, start, 5, 0.01)
    np.testing.assert_allclose(p.weights, weights, atol=1e-10)
    np.testing.assert_allclose(p.means, means, atol=1e-10)
    np.testing.assert_allclose(p.stds, stds, atol=1e-10)


def test_one_component_is_the_observed_moments():
    # the fixed point of one Gaussian is the mean and deviation of the observed values
    X = with_gaps(blobs()[0], 0.3)
    p = fit_mixture(X, 1, tol=0.0, max_iter=200)
    np.testing.assert_allclose(p.means[0], np.nanmean(X, axis=0), rtol=1e-9)
    np.testing.assert_allclose(p.stds[0], np.nanstd(X, axis=0), rtol=1e-9)


def test_likelihood_never_decreases():
    X = with_gaps(blobs()[0], 0.4)
    scores = [fit_mixture(X, 3, max_iter=i, tol=0.0, random_state=0).score(X) for i in range(1, 12)]
    assert np.diff(scores).min() > -1e-12


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_recovers_the_mixture(share):
    X, _ = blobs(4000)
    p = fit_mixture(with_gaps(X, share), 2, random_state=0)
    order = p.means[:, 0].argsort()
    np.testing.assert_allclose(p.means[order], [[0, 0, 0], [6, 6, -6]], atol=0.15)
    np.testing.assert_allclose(p.stds, 1.0, atol=0.1)


def test_rows_without_any_value_do_not_matter():
    X = with_gaps(blobs(200)[0], 0.2)
    start = Mixture([0.5, 0.5], [[0, 0, 0], [6, 6, -6]], np.ones((2, 3)))
    options = {"init": start, "tol": 0.0, "max_iter": 300, "min_std": 0.01}
    p = fit_mixture(X, **options)
    q = fit_mixture(np.vstack([X, np.full((50, 3), NAN)]), **options)
    np.testing.assert_allclose(p.means, q.means, atol=1e-6)
    np.testing.assert_allclose(p.weights, q.weights, atol=1e-6)


def test_marginal_density():
    p = Mixture([0.3, 0.7], [[0.0, 1.0], [2.0, -1.0]], [[1.0, 2.0], [0.5, 1.0]], np.eye(2))
    alone = Mixture([0.3, 0.7], [[1.0], [-1.0]], [[2.0], [1.0]], np.eye(2))
    X = np.array([[NAN, 0.3], [NAN, -2.0]])
    np.testing.assert_allclose(p.log_prob(X), alone.log_prob(X[:, 1:]), rtol=1e-12)
    np.testing.assert_allclose(p.predict_proba(X), alone.predict_proba(X[:, 1:]), rtol=1e-12)
    empty = np.full((1, 2), NAN)
    np.testing.assert_allclose(p.predict_proba(empty), [[0.3, 0.7]])
    np.testing.assert_allclose(p.log_prob(empty), [0.0], atol=1e-15)


def test_marginal_density_of_distant_components():
    # 1e5 deviations from the center, where products would cancel
    p = Mixture([0.5, 0.5], [[0.0, 0.0], [1e6, 5.0]], [[1.0, 1.0], [10.0, 1e-6]])
    alone = p.weights, p.means[:, :1], p.stds[:, :1]
    X = np.array([[1e6 + 3.0, NAN]])
    np.testing.assert_allclose(p.log_prob(X), Mixture(*alone).log_prob(X[:, :1]), rtol=1e-12)


def test_impute_is_the_conditional_mean():
    p = Mixture([0.5, 0.5], [[0.0, 1.0], [0.0, 5.0]], np.ones((2, 2)))
    X = [[0.0, NAN], [7.0, 2.0]]
    np.testing.assert_allclose(p.impute(X), [[0.0, 3.0], [7.0, 2.0]])
    assert np.isnan(X[0][1])


def test_complete_rows_are_fitted_as_before():
    X, y = blobs()
    gapless = fit_labeled_mixture(X, y, 2, random_state=0)
    assert gapless == fit_labeled_mixture(X.copy(), y, 2, random_state=0)
    stats = e_step(X, None, Parameters(np.zeros(1), np.zeros((1, 3)), np.ones((1, 3))))
    masked = e_step(
        np.vstack([X, [[NAN, 0.0, 0.0]]]),
        np.r_[np.ones(len(X)), 0.0],
        Parameters(np.zeros(1), np.zeros((1, 3)), np.ones((1, 3))),
    )
    np.testing.assert_allclose(masked.sum_xx, stats.sum_xx)
    np.testing.assert_allclose(masked.loglik, stats.loglik)


def test_feature_missing_in_one_class():
    X, y = blobs()
    X[y == 1, 2] = NAN
    p = fit_labeled_mixture(X, y, 1, random_state=0)
    k = int(np.asarray(p.labels)[:, 1].argmax())
    assert p.means[k, 2] == pytest.approx(np.nanmean(X[:, 2]))
    assert p.stds[k, 2] == pytest.approx(np.nanstd(X[:, 2]))


def test_feature_missing_everywhere():
    with pytest.raises(MixdaError, match="feature 1 of X has no value"):
        fit_mixture([[0.0, NAN], [1.0, NAN]])
    with pytest.raises(MixdaError, match="infinite"):
        fit_mixture([[0.0, NAN], [np.inf, 1.0]])


def test_sources_of_rows_agree():
    X, y = blobs(500)
    X = with_gaps(X, 0.2)
    whole = fit_labeled_mixture(X, y, 2, random_state=0)
    source = chunks.from_arrays(X, y, rows=100)
    parts = fit_labeled_mixture(source, n_components=2, random_state=0)
    np.testing.assert_allclose(whole.means, parts.means, atol=1e-9)
    domains = fit_domains(chunks.from_arrays(X, y, y.astype(str)), random_state=0)
    assert set(domains) == {"0", "1"}


def test_bic_and_weights():
    X = with_gaps(blobs()[0], 0.2)
    p = fit_mixture(X, "bic", random_state=0, sample_weight=np.ones(len(X)))
    assert p.n_components == 2


def test_better_than_mean_imputation():
    # class 1 lies on both sides of class 0, which is where the mean of a feature is
    rng = np.random.default_rng(0)
    cluster = rng.integers(-1, 2, size=2000)
    y = np.abs(cluster)
    gaps = with_gaps(3.0 * cluster[:, None] + rng.standard_normal((2000, 3)), 0.3)
    filled = np.where(np.isnan(gaps), np.nanmean(gaps, axis=0), gaps)
    exact, imputed = (
        (fit_labeled_mixture(X, y, 2, random_state=0).predict(X) == y).mean()
        for X in (gaps, filled)
    )
    assert exact > imputed + 0.03
