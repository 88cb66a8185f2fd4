"""No mean of a mixture with `min_component_rows` is a row of the data."""

import numpy as np
import pytest

import mixda
from mixda import MixdaError, fit_labeled_mixture, fit_mixture
from mixda.mixture import smallest_component


def n_exposed(mixture, X):
    """Rows that are a mean of the mixture, up to rounding."""
    gaps = np.abs(np.asarray(X)[:, None] - mixture.means).max(axis=2)
    return int((gaps.min(axis=1) < 1e-6).sum())


@pytest.mark.parametrize("n", [5, 6, 9, 30])
def test_small_classes(n):
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(8 * n, 4)), np.repeat(np.arange(8), n)
    exposed = fit_labeled_mixture(X, y, 3, random_state=0)
    merged = fit_labeled_mixture(X, y, 3, random_state=0, min_component_rows=5)
    assert n_exposed(merged, X) == 0
    assert smallest_component(merged) >= 5 - 1e-3
    if n < 30:
        assert n_exposed(exposed, X) > 0  # the attack works without the protection
        assert smallest_component(exposed) < 2


@pytest.mark.parametrize("seed", range(5))
def test_outlier(seed):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(1000, 3)), [[40.0, 50.0, 60.0]]])
    assert n_exposed(fit_mixture(X, 8, random_state=seed), X) == 1
    assert n_exposed(fit_mixture(X, 8, random_state=seed, min_component_rows=5), X) == 0


def test_repeated_row():
    """A component of equal rows is one row, however often it occurs."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(50, 2)), np.full((20, 2), 9.0)])
    assert n_exposed(fit_mixture(X, 2, random_state=0), X) == 20
    for floor in ("auto", 0.5):  # a large floor must not hide that they are equal
        p = fit_mixture(X, 2, random_state=0, min_component_rows=5, min_std=floor)
        assert n_exposed(p, X) == 0


def test_merging_keeps_the_moments():
    X = np.random.default_rng(3).normal(size=(60, 2)) * [1.0, 7.0]
    options = {"random_state": 0, "min_std": 1e-9}
    for before, after in zip(
        fit_mixture(X, 20, **options).moments(),
        fit_mixture(X, 20, min_component_rows=10, **options).moments(),
        strict=True,
    ):
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)


def test_heavy_row():
    """A weight does not make many rows of one."""
    X = np.vstack([np.random.default_rng(0).normal(size=(50, 2)), [[30.0, 30.0]]])
    weight = np.append(np.ones(50), 20.0)
    p = fit_mixture(X, 2, sample_weight=weight, random_state=0, min_component_rows=3)
    assert p.n_components == 1
    with pytest.raises(MixdaError, match="min_component_rows=5"):
        fit_mixture(X, 2, sample_weight=weight, random_state=0, min_component_rows=5)


@pytest.mark.parametrize(
    "rows", [np.arange(8.0).reshape(4, 2), np.ones((9, 2))], ids=["few", "equal"]
)
def test_too_small(rows):
    X = np.vstack([rows, np.random.default_rng(0).normal(size=(20, 2))])
    y = ["rare"] * len(rows) + ["common"] * 20
    with pytest.raises(MixdaError, match=r"'rare'.*min_component_rows=5"):
        fit_labeled_mixture(X, y, 3, min_component_rows=5)
    p = fit_labeled_mixture(X, y, 3, min_component_rows=5, allow_exposed_rows=True, random_state=0)
    assert smallest_component(p) < 5


def test_source_is_the_same():
    X = np.random.default_rng(1).normal(size=(40, 3))
    p = fit_mixture(X, 12, random_state=0, min_component_rows=5)
    q = fit_mixture(mixda.chunks.from_arrays(X), 12, random_state=0, min_component_rows=5)
    np.testing.assert_allclose(p.means, q.means, atol=1e-9)
    assert p.info == q.info


def test_save_refuses(tmp_path):
    X = np.random.default_rng(1).normal(size=(40, 3))
    exposed = fit_mixture(X, 20, random_state=0)
    with pytest.raises(MixdaError, match="min_component_rows=5"):
        exposed.save(tmp_path / "p.gmm")
    exposed.save(tmp_path / "p.gmm", allow_exposed_rows=True)
    p = fit_mixture(X, 20, random_state=0, min_component_rows=5)
    p.save(tmp_path / "p.gmm")
    assert mixda.load(tmp_path / "p.gmm").info["smallest_component"] >= 5


@pytest.mark.parametrize("method", [mixda.GMMWBT, mixda.GMMOTDA, mixda.GMMDaDiL, mixda.SourceOnly])
def test_models(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)) + np.repeat(np.arange(3), 30)[:, None]
    y, ids = np.tile([0, 1, 2], 30), np.repeat([0, 1, -1], 30)
    y[np.flatnonzero(ids == 0)[y[ids == 0] == 2][:8]] = 1  # two rows of class 2 are left
    if method is not mixda.SourceOnly:
        y[ids == 0] = np.where(y[ids == 0] == 2, 1, y[ids == 0])
    given = {} if method is mixda.SourceOnly else {"min_component_rows": 5}
    model = method(random_state=0, **given).fit(X, y, sample_domain=ids).to_model()
    Z = X if model.encoder is None else model.encoder(X)
    for domain in (*model.sources, model.target):
        assert n_exposed(domain.mixture, Z) == 0
        assert smallest_component(domain.mixture) >= 5 - 1e-3
