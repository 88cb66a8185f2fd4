"""The attack: open a file, and look for rows of the data in all of its arrays."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

import mixda
from mixda import MixdaError, fit_labeled_mixture, fit_mixture
from mixda.mixture import smallest_component
from mixda.model import Reference
from mixda.rules import Pool


def domains(n=40, d=4, seed=0):
    """Two sources and a target with an outlier each, one class of five rows, no equal values."""
    rng = np.random.default_rng(seed)
    X, y, ids = [], [], []
    for k in (0, 1, -1):
        codes = np.repeat([0, 1, 2], [n // 2, n - n // 2 - 5, 5])
        Z = rng.normal(size=(n, d)) + 2.0 * np.eye(3, d)[codes] + 0.5 * k
        Z[0] += rng.uniform(20, 30, d)
        X.append(Z)
        y.append(codes)
        ids.append(np.full(n, k))
    return np.vstack(X), np.concatenate(y), np.concatenate(ids)


def spaces(model, X):
    """The rows as given, and in every space of features that the rules of a model map them to."""
    found = [X]

    def visit(rule, Z):
        if isinstance(rule, Pool):
            for place, view in enumerate(rule.views):
                inner = visit(view, Z)
                for k in np.flatnonzero(rule.view == place):
                    visit(rule.members[k], inner)
            return Z
        for step in getattr(rule, "steps", ()):
            Z = visit(step, Z)
        if not hasattr(rule, "steps"):
            Z = rule(Z)
        probabilities = np.allclose(Z.sum(axis=1), 1.0) and Z.min() >= 0
        if Z.shape[1] > 1 and not probabilities:
            found.append(Z)
        return Z

    visit(model.rule, X)
    if model.encoder is not None:
        visit(model.encoder, X)
    return found


def n_exposed(path, clouds):
    """Rows that occur in an array of the file, in any of the spaces, up to rounding."""
    with np.load(path) as file:
        # `values` of rank maps are normal scores, the same for all data
        names = [name for name in file.files if not name.endswith(".steps.0.values")]
        arrays = [file[name] for name in names if file[name].dtype.kind == "f"]
    exposed = np.zeros(len(clouds[0]), dtype=bool)
    for Z in clouds:
        scale = Z.std(axis=0) + 1e-300
        for array in arrays:
            turned = (array, np.moveaxis(array, -1, -2)) if array.ndim > 1 else ()
            for rows in (part for part in turned if part.size and part.shape[-1] == Z.shape[1]):
                tree = cKDTree(rows.reshape(-1, Z.shape[1]).astype(float) / scale)
                exposed |= tree.query(Z / scale, p=np.inf)[0] < 1e-6
    return int(exposed.sum())


METHODS = {
    "source": lambda: mixda.SourceOnly(),
    "wbt": lambda: mixda.GMMWBT(random_state=0),
    "dadil": lambda: mixda.GMMDaDiL(n_iter=5, random_state=0),
    "otda": lambda: mixda.GMMOTDA(random_state=0),
    "lda": lambda: mixda.GMMWBT(encoder="lda", random_state=0),
    "empirical": lambda: mixda.DaDiL(n_epochs=2, random_state=0),
    "auto": lambda: mixda.AutoMSDA(max_folds=2, random_state=0),
}


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("method", METHODS)
def test_models(tmp_path, method, gaps):
    X, y, ids = domains()
    whole = X.copy()
    if gaps:
        X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
        if method in ("auto", "empirical"):
            pytest.skip("filled before the fit, as those of source")
    model = METHODS[method]().fit(X, y, sample_domain=ids).to_model().with_reference(X[ids < 0])
    model.save(tmp_path / "m.mixda")
    filled = model.impute(X)
    clouds = spaces(model, filled) + ([] if gaps else spaces(model, whole))
    assert n_exposed(tmp_path / "m.mixda", clouds) == 0


def test_attack_works(tmp_path):
    """Without the protection, the attack finds the outliers and other rows."""
    X, y, ids = domains()
    estimator = mixda.GMMWBT(n_components=8, min_component_rows=1, random_state=0)
    estimator.fit(X, y, sample_domain=ids)
    with pytest.raises(MixdaError, match=r"min_component_rows=5.*allow_exposed_rows"):
        estimator.save(tmp_path / "m.mixda")
    assert not (tmp_path / "m.mixda").exists()
    estimator.save(tmp_path / "m.mixda", allow_exposed_rows=True)
    assert n_exposed(tmp_path / "m.mixda", spaces(estimator.to_model(), X)) > 5


def test_updates(tmp_path):
    X, y, ids = domains()
    estimator = mixda.GMMDaDiL(n_iter=3, random_state=0)
    estimator.fit(X, y, sample_domain=ids)
    rng = np.random.default_rng(5)
    new = np.vstack([rng.normal(size=(30, 4)), [[40.0, 41.0, 42.0, 43.0]]])
    estimator.partial_fit(new)
    estimator.save(tmp_path / "m.mixda")
    assert n_exposed(tmp_path / "m.mixda", spaces(estimator.to_model(), new)) == 0
    updated = mixda.monitoring.update(estimator.to_model(), new)
    updated.save(tmp_path / "u.mixda")
    assert n_exposed(tmp_path / "u.mixda", spaces(updated, new)) == 0
    few = mixda.monitoring.update(estimator.to_model(), new[-2:])
    with pytest.raises(MixdaError, match=r"target.*averages 2 row"):
        few.save(tmp_path / "f.mixda")


def test_values(tmp_path):
    """Quantiles of the reference and of rank maps are not values of rows, even in small data."""
    for n in (5, 11, 21, 101):
        X = np.random.default_rng(n).normal(size=(n, 3))
        reference = Reference.from_rows(X, np.ones((n, 1)), 0)
        assert not np.isin(reference.quantiles, X).any()


@pytest.mark.parametrize("seed", range(3))
def test_values_behind_gaps(seed):
    """The mean of a feature averages enough values, not only enough rows."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(30, 3)), rng.normal(size=(30, 3)) + 9.0])
    X[31:, 2] = np.nan  # one value of the second cluster is left
    exposed = fit_mixture(X, 2, random_state=0)
    assert np.isclose(exposed.means[:, 2], X[30, 2], rtol=1e-2).any()  # EM converges slowly to it
    assert smallest_component(exposed) == pytest.approx(1.0, abs=0.1)
    p = fit_mixture(X, 2, random_state=0, min_component_rows=5)
    assert p.n_components == 2
    mean = np.nanmean(X[:, 2])
    assert np.isclose(p.means[:, 2], mean).any()  # of all values instead
    assert smallest_component(p) >= 5


def test_few_values():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.repeat(["a", "b"], 20)
    X[3:20, 2] = np.nan  # three values in class a take those of all rows
    p = fit_labeled_mixture(X, y, 1, min_component_rows=5)
    assert p.means[0, 2] == pytest.approx(np.nanmean(X[:, 2]))
    X[24:, 2] = np.nan  # seven values in all
    assert smallest_component(fit_labeled_mixture(X, y, 1, min_component_rows=5)) == 7
    X[2:, 2] = np.nan
    with pytest.raises(MixdaError, match=r"feature 2 has 2 value.*min_component_rows=5"):
        fit_labeled_mixture(X, y, 1, min_component_rows=5)
