"""Estimators on data of any size: chunk sources, Dask collections, predictions by partition."""

import numpy as np
import pytest

import mixda
from mixda import MixdaError, chunks


def _domain(n, shift, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=n)
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    return centers[codes] + rng.normal(size=(n, 2)) + shift, np.array(["a", "b", "c"])[codes]


DOMAINS = {0: _domain(3000, 0.0, 1), 1: _domain(2500, 1.0, 2), -1: _domain(3500, 2.0, 3)}
X = np.vstack([part for part, _ in DOMAINS.values()])
Y = np.concatenate([y for _, y in DOMAINS.values()])
IDS = np.repeat(list(DOMAINS), [len(y) for _, y in DOMAINS.values()])
TARGET = DOMAINS[-1]


def rows(**options):
    return {k: chunks.from_arrays(*part, rows=1000) for k, part in DOMAINS.items()}


@pytest.mark.parametrize("name", ["GMMDaDiL", "GMMWBT", "GMMOTDA", "SourceOnly"])
def test_sample_and_streams(name):
    kind = getattr(mixda, name)
    model = kind(random_state=0).fit(chunks.Domains(rows(), max_rows=500))
    whole = kind(random_state=0).fit(X, Y, sample_domain=IDS)
    agreement = (model.predict(TARGET[0]) == whole.predict(TARGET[0])).mean()
    assert agreement > 0.98
    saved = model.to_model(["lab", "line", "plant"])
    assert [d.n_samples for d in (*saved.sources, saved.target)][-1] == 3500
    assert saved.settings["rows_used"] == [499, 498, 500]


def test_mixtures_use_all_rows():
    """EM from the mixture of a sample reaches the likelihood of EM over all rows."""
    model = mixda.GMMDaDiL(random_state=0).fit(chunks.Domains(rows(), max_rows=300))
    Z = model.encoder_.transform(TARGET[0])
    refined = model.unlabeled_mixture_
    assert refined.info["n_samples"] == 3500
    best = mixda.fit_mixture(Z, refined.n_components, n_init=5, random_state=0)
    sampled = mixda.fit_mixture(Z[:300], refined.n_components, random_state=0)
    means = [mixture.log_prob(Z).mean() for mixture in (sampled, refined, best)]
    assert means[1] > means[2] - 0.01 > means[0]


def test_target_labels_are_not_read():
    hidden = np.where(IDS < 0, "never", Y)
    source = chunks.from_arrays(X, hidden, IDS)
    names = {"0": 0, "1": 1, "-1": -1}
    model = mixda.GMMWBT(random_state=0).fit(source, sample_domain=names)
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_small_sources_equal_arrays():
    model = mixda.GMMWBT(random_state=0).fit(rows())
    whole = mixda.GMMWBT(random_state=0).fit(X, Y, sample_domain=IDS)
    np.testing.assert_allclose(
        model.predict_proba(TARGET[0]), whole.predict_proba(TARGET[0]), atol=1e-8
    )


def test_dask_in_dask_out():
    da = pytest.importorskip("dask.array")
    y = np.where(IDS < 0, "", Y)
    lazy = [da.from_array(part, chunks=(1000, *part.shape[1:])) for part in (X, y, IDS)]
    model = mixda.GMMWBT(random_state=0).fit(lazy[0], lazy[1], sample_domain=lazy[2])
    predicted = model.predict(lazy[0])
    assert predicted.chunks == lazy[1].chunks
    np.testing.assert_array_equal(predicted.compute(), model.predict(X))
    assert model.predict_proba(lazy[0]).compute().shape == (len(X), 3)


def test_prediction_by_partition():
    model = mixda.GMMWBT(random_state=0).fit(rows())
    parts = list(model.predict(chunks.from_arrays(TARGET[0], rows=1000)))
    assert [len(part) for part in parts] == [1000, 1000, 1000, 500]
    np.testing.assert_array_equal(np.concatenate(parts), model.predict(TARGET[0]))
    with pytest.raises(MixdaError, match="features"):
        model.predict(chunks.from_arrays(TARGET[0][:, :1]))


def test_auto_and_its_checkpoint(tmp_path):
    folder = tmp_path / "kept"
    model = mixda.AutoMSDA(random_state=0, max_rows=30, checkpoint=folder)
    data = chunks.Domains(rows(), max_rows=200)
    first = model.fit(data).predict_proba(TARGET[0])
    assert model.score(*TARGET) > 0.98
    assert any(path.suffix == ".gmm" for path in folder.iterdir())
    assert [d.n_samples for d in model.to_model().sources] == [3000, 2500]
    np.testing.assert_array_equal(model.fit(data).predict_proba(TARGET[0]), first)


def test_gaps_in_streams():
    holes = {k: (part.copy(), y) for k, (part, y) in DOMAINS.items()}
    for part, _ in holes.values():
        part[::10, 0] = np.nan
    sources = {k: chunks.from_arrays(*part) for k, part in holes.items()}
    for classifier in ("map", "product"):
        model = mixda.GMMWBT(classifier=classifier, random_state=0)
        model.fit(chunks.Domains(sources, max_rows=500))
        assert model.score(*TARGET) > 0.98


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((chunks.from_arrays(X, Y, IDS), None, [0, 1]), "sample_domain"),
        ((chunks.from_arrays(X, Y), Y), "y must be None"),
        (({0: chunks.from_arrays(X, Y)}, Y), "y and sample_domain"),
    ],
)
def test_rejects(arguments, word):
    with pytest.raises(MixdaError, match=word):
        mixda.GMMWBT().fit(*arguments)
