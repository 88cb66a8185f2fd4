"""Mixture: validation, densities against scikit-learn and scipy, sampling, files."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import norm

from mixda import MixdaError, Mixture
from mixda.mixture import log_gaussians

from ..strategies import mixtures, random_mixture


@settings(max_examples=40)
@given(mixtures(nc=3))
def test_density_equals_sklearn(p):
    X = np.random.default_rng(0).normal(size=(20, p.n_features))
    model = p.to_sklearn()
    assert np.allclose(p.log_prob(X), model.score_samples(X))
    assert np.allclose(p.responsibilities(X), model.predict_proba(X))
    assert np.allclose(p.predict_proba(X), model.predict_proba(X) @ p.labels)
    assert p.score(X) == pytest.approx(model.score(X))
    back = Mixture.from_sklearn(model)
    assert np.allclose(back.stds, p.stds)
    assert np.array_equal(back.means, p.means)


def test_sklearn_covariance_types():
    from sklearn.mixture import GaussianMixture

    X = np.random.default_rng(0).normal(size=(50, 3))
    spherical = GaussianMixture(2, covariance_type="spherical", random_state=0).fit(X)
    assert np.allclose(Mixture.from_sklearn(spherical).log_prob(X), spherical.score_samples(X))
    with pytest.raises(ValueError, match=r"covariance_type.*'full'"):
        Mixture.from_sklearn(GaussianMixture(2).fit(X))
    with pytest.raises(ValueError, match="not fitted"):
        Mixture.from_sklearn(GaussianMixture(2, covariance_type="diag"))


def test_many_features_do_not_underflow():
    rng = np.random.default_rng(0)
    p = random_mixture(rng, 4, 2048, 2)
    far = 1e3 * rng.standard_normal((5, 2048))
    for X in (p.means, far):
        assert np.isfinite(p.log_prob(X)).all()
        assert np.allclose(p.predict_proba(X).sum(axis=1), 1.0)
    assert (p.predict(p.means) == p.labels.argmax(axis=1)).all()


def test_density_far_from_center():
    means = np.array([[0.0, 5.0], [1e4, -3.0]])
    stds = np.full((2, 2), 1e-5)
    X = means[[1, 0, 1]] + np.array([[1e-5, 0.0], [0.0, 0.0], [0.0, -2e-5]])
    expected = norm.logpdf(X[:, None, :], means, stds).sum(axis=2)
    assert np.allclose(log_gaussians(X, means, stds), expected, rtol=1e-7)


def test_sample():
    p = Mixture(
        [0.2, 0.8], [[-50.0], [50.0]], [[1.0], [3.0]], [[1.0, 0.0], [0.25, 0.75]], ["a", "b"]
    )
    X, y = p.sample(20000, random_state=0)
    right = X[:, 0] > 0
    # tolerances: four standard errors of the estimates at this sample size
    assert right.mean() == pytest.approx(0.8, abs=4 * 0.4 / 20000**0.5)
    assert X[right].std() == pytest.approx(3.0, abs=4 * 3.0 / (2 * 16000) ** 0.5)
    assert (y[right] == "b").mean() == pytest.approx(0.75, abs=4 * 0.44 / 16000**0.5)
    assert set(y[~right]) == {"a"}
    again = p.sample(20000, random_state=0)
    assert np.array_equal(X, again[0])
    assert np.array_equal(y, again[1])
    assert Mixture([1.0], [[0.0]], [[1.0]]).sample(3, 0)[1] is None


def test_frozen_comparable_hashable_picklable():
    p = Mixture([1.0], [[0.0]], [[1.0]], [[0.5, 0.5]])
    q = Mixture([1.0], [[0.0]], [[1.0]], [[0.5, 0.5]])
    assert p == q
    assert hash(p) == hash(q)
    assert p != Mixture([1.0], [[0.0]], [[1.0]])
    assert p != "p"
    assert pickle.loads(pickle.dumps(p)) == p
    with pytest.raises(AttributeError):
        p.weights = np.ones(1)
    with pytest.raises(ValueError, match="read-only"):
        p.means[0] = 3.0
    mine = np.zeros((1, 1))
    r = Mixture([1.0], mine, [[1.0]])
    mine[0] = 7.0
    assert r.means[0, 0] == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.6], [[0.0], [1.0]], [[1.0], [1.0]]), "weights.*1.1"),
        (([1.5, -0.5], [[0.0], [1.0]], [[1.0], [1.0]]), "weights.*-0.5"),
        (([1.0], [[0.0], [1.0]], [[1.0], [1.0]]), "weights.*2.*1"),
        (([1.0], [[0.0]], [[-1.0]]), "stds.*-1"),
        (([1.0], [[0.0]], [[1.0, 1.0]]), "stds.*1, 2"),
        (([1.0], [[np.nan]], [[1.0]]), "means.*NaN"),
        (([1.0], [[0.0]], [[np.inf]]), "stds.*infinite"),
        (([1.0], [0.0], [1.0]), "means.*2 dimension"),
        (([], np.empty((0, 2)), np.empty((0, 2))), "means.*0, 2"),
        (([1.0], [["a"]], [[1.0]]), "means.*numbers"),
        (([1.0], [[0.0]], [[1.0]], [[0.4, 0.4]]), "labels"),
        (([1.0], [[0.0]], [[1.0]], [[1.5, -0.5]]), "labels"),
        (([1.0], [[0.0]], [[1.0]], [[1.0], [0.0]]), "labels.*2, 1"),
        (([1.0], [[0.0]], [[1.0]], [[0.5, 0.5]], ["a"]), r"classes.*2.*\['a'\]"),
        (([1.0], [[0.0]], [[1.0]], [[0.5, 0.5]], ["a", "a"]), "classes.*2.*'a', 'a'"),
        (
            ([1.0], [[0.0]], [[1.0]], [[0.5, 0.5]], np.array(["a", 3], dtype=object)),
            "classes",
        ),
        (([1.0], [[0.0]], [[1.0]], None, ["a"]), "classes.*labels"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        Mixture(*arguments)


def test_bad_questions():
    p = Mixture([1.0], [[0.0]], [[1.0]])
    with pytest.raises(ValueError, match="no labels"):
        p.predict([[0.0]])
    with pytest.raises(ValueError, match=r"X has 2 features.* 1 "):
        p.log_prob([[0.0, 1.0]])
    with pytest.raises(ValueError, match="NaN"):
        p.log_prob([[np.inf]])
    with pytest.raises(ValueError, match=r"n_samples.*0"):
        p.sample(0)
    with pytest.raises(ValueError, match="min_std"):
        Mixture([1.0], [[0.0]], [[0.0]]).log_prob([[0.0]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1e100]], "X.*1e.100"),
        ([[0.0], [1.0, 2.0]], "X.*lengths"),
        (sparse.csr_matrix([[1.0]]), "X.*sparse"),
        (np.ma.array([[1.0], [2.0]], mask=[[0], [1]]), "X.*masked"),
    ],
)
def test_bad_samples(X, message):
    with pytest.raises(ValueError, match=message):
        Mixture([1.0], [[0.0]], [[1.0]]).log_prob(X)


def test_tiny_deviations_have_no_density():
    with pytest.raises(ValueError, match="min_std"):
        Mixture([1.0], [[0.0]], [[1e-200]]).log_prob([[0.0]])


@pytest.mark.parametrize("classes", [[1.0, np.nan], [b"a", b"b"], [1j, 2], [[1], [2, 3]]])
def test_classes_are_strings_or_finite_numbers(classes):
    with pytest.raises(ValueError, match="classes"):
        Mixture([1.0], [[0.0]], [[1.0]], [[0.5, 0.5]], classes)


def test_read_only_views_are_copied():
    owner = np.array([[0.0], [1.0]])
    view = owner.view()
    view.flags.writeable = False
    p = Mixture([0.5, 0.5], view, np.ones((2, 1)))
    owner[0] = 99.0
    assert p.means[0, 0] == 0.0


def test_moments():
    p = random_mixture(np.random.default_rng(0), 4, 3)
    mean, std = p.moments()
    X, _ = p.sample(200_000, random_state=1)
    np.testing.assert_allclose(mean, X.mean(axis=0), atol=0.03)  # 2 / √200000 is 0.005
    np.testing.assert_allclose(std, X.std(axis=0), rtol=0.02)


@settings(max_examples=25)
@given(p=mixtures(d=3, nc=2), seed=st.integers(0, 2**32 - 1))
def test_affine_map(p, seed):
    rng = np.random.default_rng(seed)
    mean, scale = rng.normal(size=3), rng.uniform(0.2, 3.0, 3) * rng.choice([-1, 1], 3)
    X = rng.normal(size=(5, 3))
    q = p.affine(mean, scale)
    Z = (X - mean) / scale
    volume = np.log(np.abs(scale)).sum()
    np.testing.assert_allclose(q.log_prob(Z), p.log_prob(X) + volume, atol=1e-8)
    np.testing.assert_allclose(q.predict_proba(Z), p.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(q.moments()[0], (p.moments()[0] - mean) / scale, atol=1e-9)


def test_marginal():
    p = replace(random_mixture(np.random.default_rng(0), 3, 3, 2), feature_names=("a", "b", "c"))
    q = p.marginal(["c", "a"])
    assert q.feature_names == ("c", "a")
    mean, std = p.moments()
    np.testing.assert_allclose(q.moments(), [mean[[2, 0]], std[[2, 0]]])
    assert p.marginal(["a", "b", "c"]) == p
    with pytest.raises(ValueError, match=r"'d'.*'a', 'b', 'c'"):
        p.marginal(["d"])
    with pytest.raises(ValueError, match="feature_names"):
        replace(p, feature_names=None).marginal(["a"])


def test_names_and_info():
    p = Mixture([1.0], [[0.0, 1.0]], [[1.0, 1.0]], feature_names=["a", "b"], info={"n_samples": 3})
    assert p == replace(p, info={})
    assert p != replace(p, feature_names=("b", "a"))
    assert pickle.loads(pickle.dumps(p)).info == {"n_samples": 3}
    with pytest.raises(ValueError, match=r"feature_names.*2.*'a', 'a'"):
        replace(p, feature_names=("a", "a"))
    with pytest.raises(ValueError, match=r"info.*JSON"):
        replace(p, info={"f": print})
    with pytest.raises(ValueError, match=r"scale.*zero"):
        p.affine([0.0, 0.0], [1.0, 0.0])


@pytest.mark.parametrize("names", [1, 2.5, ("a", "a"), ("a",)])
def test_bad_feature_names(names):
    with pytest.raises(MixdaError, match="feature_names"):
        Mixture([1.0], [[0.0, 1.0]], [[1.0, 1.0]], feature_names=names)
