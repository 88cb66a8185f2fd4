"""Adapting from mixtures alone: the same as from samples, whatever the sites called things."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from mixda import (
    GMMOTDA,
    GMMWBT,
    GMMDaDiL,
    Mixture,
    fit_domains,
    fit_labeled_mixture,
    fit_mixture,
    load,
)
from mixda.chunks import from_arrays
from mixda.datasets import make_toy

TASK = make_toy(60, separation=6.0, target_shift=(-3.0, 3.0), random_state=2).as_task()
X, Y, IDS = TASK.X, TASK.y, TASK.sample_domain
TARGET = X[IDS < 0]
CLASSES = np.array(["fault", "ok"])


def site(k, **options):
    rows = k == IDS
    fitted = fit_labeled_mixture(X[rows], CLASSES[Y[rows]], 2, random_state=0)
    return replace(fitted, feature_names=("u", "v"), **options)


SITES = [site(k, info={"name": f"plant {k}", "n_samples": 120}) for k in (1, 2, 3)]
HALL = replace(fit_mixture(TARGET, 4, random_state=0), feature_names=("u", "v"), info={})

METHODS = [
    GMMWBT(random_state=0),
    GMMWBT(classifier=LogisticRegression(), random_state=0),
    GMMDaDiL(n_iter=5, random_state=0),
    GMMDaDiL(n_iter=5, init="random", random_state=0),
    GMMOTDA(random_state=0),
]
each = pytest.mark.parametrize("estimator", METHODS, ids=repr)


def fitted(estimator, sources=SITES, target=HALL, **parameters):
    return clone(estimator).set_params(**parameters).fit_mixtures(sources, target)


@pytest.mark.parametrize("estimator", METHODS[:-1], ids=repr)
def test_the_same_mixtures_give_the_same_result_as_fit(estimator):
    # an absolute floor, which mixtures of `fit` already respect, and the space of X
    floored = clone(estimator).set_params(min_std=0.05, scale=None, encoder=None)
    if floored.classifier == "auto":  # its other factor is trained on samples, which differ
        floored.set_params(classifier="map")
    names = CLASSES[np.maximum(Y, 0)]
    whole = clone(floored).fit(X, names, sample_domain=IDS)
    parts = fitted(
        floored,
        [replace(p, feature_names=("u", "v")) for p in whole.source_mixtures_],
        replace(whole.unlabeled_mixture_, feature_names=("u", "v")),
    )
    assert parts.target_mixture_.means.tobytes() == whole.target_mixture_.means.tobytes()
    with pytest.warns(UserWarning, match="feature names"):  # scikit-learn's: arrays have none
        assert np.array_equal(parts.predict_proba(X), whole.predict_proba(X))


@each
def test_it_classifies_the_target(estimator):
    parts = fitted(estimator)
    model = parts.to_model()
    if "random" not in repr(estimator.get_params().get("init")):  # five steps from there: nothing
        assert (model.predict(TARGET) == CLASSES[TASK.y_target]).mean() > 0.95
    assert model.feature_names == ("u", "v")
    assert model.target.n_samples is None
    assert sum(domain.n_samples for domain in model.sources) == 360


@each
def test_through_files_nothing_changes(estimator, tmp_path):
    for i, p in enumerate([*SITES, HALL]):
        p.save(tmp_path / f"{i}.gmm", allow_exposed_rows=True)
    *sources, target = [load(tmp_path / f"{i}.gmm") for i in range(4)]
    again, before = fitted(estimator, sources, target).to_model(), fitted(estimator).to_model()
    assert np.array_equal(again.predict_proba(TARGET), before.predict_proba(TARGET))


@each
def test_the_order_of_columns_and_classes_does_not_matter(estimator):
    turned = [
        replace(p.marginal(["v", "u"]), labels=p.labels[:, ::-1], classes=p.classes[::-1])
        for p in SITES[1:]
    ]
    reference, other = fitted(estimator), fitted(estimator, [SITES[0], *turned])
    assert other.classes_.tolist() == ["fault", "ok"]
    expected = reference.to_model().predict_proba(TARGET)
    assert np.array_equal(other.to_model().predict_proba(TARGET), expected)


def test_classes_that_only_some_sites_have_are_united():
    first = replace(SITES[0], classes=np.array(["new", "ok"]))
    model = fitted(GMMWBT(), [first, *SITES[1:]])
    assert model.classes_.tolist() == ["fault", "new", "ok"]
    assert model.to_model().predict_proba(TARGET).shape == (len(TARGET), 3)


def test_labels_of_the_target_are_not_looked_at():
    wrong = replace(HALL, labels=np.tile([[1.0, 0.0]], (4, 1)), classes=["ok", "fault"])
    for estimator in METHODS:
        expected = fitted(estimator).to_model().predict_proba(TARGET)
        found = fitted(estimator, target=wrong).to_model().predict_proba(TARGET)
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("scale", ["domain", "sources"])
def test_scale_takes_the_moments_of_the_mixtures(scale):
    model = fitted(GMMWBT(), scale=scale)
    mean, _ = model.unlabeled_mixture_.moments()
    if scale == "domain":
        for p in (*model.source_mixtures_, model.unlabeled_mixture_):
            np.testing.assert_allclose(p.moments(), [[0, 0], [1, 1]], atol=0.1)  # up to the floor
    rule = model.to_model().encoder
    np.testing.assert_allclose(rule(TARGET).mean(axis=0), mean, atol=0.2)
    assert (model.to_model().predict(TARGET) == CLASSES[TASK.y_target]).mean() > 0.9


def test_sources_of_known_sizes_count_by_them():
    p, q = (
        Mixture([1.0], [[m]], [[1.0]], [[0.5, 0.5]], info={"n_samples": n})
        for m, n in ((0.0, 30), (4.0, 10))
    )
    model = GMMWBT(scale="sources").fit_mixtures([p, q], Mixture([1.0], [[2.0]], [[1.0]]))
    assert model.encoder_.rule().steps[0].mean == pytest.approx([1.0])
    unknown = replace(q, info={})
    model = GMMWBT(scale="sources").fit_mixtures([p, unknown], Mixture([1.0], [[2.0]], [[1.0]]))
    assert model.encoder_.rule().steps[0].mean == pytest.approx([2.0])


@pytest.mark.parametrize("scale", ["domain", "sources"])
@pytest.mark.parametrize("unit", [1.0, 1e4])
def test_a_constant_feature_is_one_in_mixtures_too(scale, unit):
    Z = np.c_[unit * X, np.where(IDS < 0, 0.1, 0.0)]  # a fit gives it 1e-3 of the others' spread
    sites = [fit_labeled_mixture(Z[k == IDS], Y[k == IDS], 2, random_state=0) for k in (1, 2, 3)]
    hall = fit_mixture(Z[IDS < 0], 4, random_state=0)
    model = GMMDaDiL(n_components=2, scale=scale, encoder=None, random_state=0)
    whole, parts = clone(model).fit(Z, Y, sample_domain=IDS), fitted(model, sites, hall)
    for name in ("mean", "scale"):
        expected, found = (getattr(m.encoder_.rule().steps[0], name) for m in (whole, parts))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    for p, q in zip(whole.source_mixtures_, parts.source_mixtures_, strict=True):
        np.testing.assert_allclose(q.stds[:, 2], p.stds[:, 2], rtol=1e-6)
    assert parts.score(Z[IDS < 0], TASK.y_target) > 0.95


def test_a_feature_in_a_larger_unit_is_not_constant():
    Z = X * [1.0, 1e-5]  # far below the spread that a constant feature would get
    known = IDS > 0
    sites = fit_domains(from_arrays(Z[known], Y[known], IDS[known]), 2, standardize=True)
    model = fitted(GMMWBT(scale="sources"), list(sites.values()), replace(HALL, feature_names=None))
    np.testing.assert_allclose(model.encoder_.rule().steps[0].scale, Z[known].std(axis=0))


def test_floors_come_from_the_mixtures():
    thin = [replace(p, stds=np.full_like(p.stds, 1e-9)) for p in SITES]
    model = fitted(GMMWBT(scale=None), thin)
    spread = np.sqrt(np.mean([p.moments()[1] ** 2 for p in (*thin, HALL)], axis=0))
    floor = 0.1 * np.maximum(spread, spread.mean())
    np.testing.assert_allclose(model.source_mixtures_[0].stds, np.tile(floor, (4, 1)))
    assert (fitted(GMMWBT(scale=None), thin, min_std=0.7).source_mixtures_[0].stds == 0.7).all()


def test_the_stream_goes_on_after_it():
    model = fitted(
        GMMDaDiL(n_iter=3, random_state=0),
        target=replace(HALL, feature_names=None),
        sources=[replace(p, feature_names=None) for p in SITES],
    )
    assert model.n_target_seen_ == 400  # unknown: a hundred per component
    model.partial_fit(TARGET)
    assert model.n_target_seen_ == 400 + len(TARGET)
    assert model.score(TARGET, CLASSES[TASK.y_target]) > 0.95


@pytest.mark.parametrize(
    ("parameters", "sources", "target", "sentence"),
    [
        ({"encoder": "lda"}, SITES, HALL, "encoder needs samples"),
        ({}, [], HALL, "at least one source"),
        ({}, [HALL], HALL, "source 0 has no labels"),
        ({}, ["site"], HALL, "a Mixture is needed, got str"),
        (
            {},
            SITES,
            replace(HALL, feature_names=("u", "w")),
            "the target has other features than "
            r"source 0 \(plant 1\) \(one of them lacks 'v'\)",
        ),
        ({}, SITES, replace(HALL, feature_names=None), "the target has no feature names"),
        ({}, [replace(SITES[0], classes=np.array([0, 1])), *SITES[1:]], HALL, "others strings"),
        (
            {},
            [Mixture([1.0], [[0.0, 0.0]], [[1.0, 1.0]], [[1.0]], ["ok"], ["u", "v"])],
            HALL,
            "one class only",
        ),
    ],
)
def test_mistakes_are_answered_in_a_sentence(parameters, sources, target, sentence):
    with pytest.raises(ValueError, match=sentence):
        fitted(GMMWBT(), sources, target, **parameters)


def test_samples_cannot_be_sent_without_samples():
    with pytest.raises(ValueError, match="route='samples' needs samples"):
        GMMOTDA("samples").fit_mixtures(SITES, HALL)


def test_a_fit_notes_the_columns_and_the_number_of_samples():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(TARGET, columns=["u", "v"])
    p = fit_mixture(frame, 2, random_state=0)
    q = fit_labeled_mixture(frame, TASK.y_target, 2, random_state=0)
    assert p.feature_names == q.feature_names == ("u", "v")
    assert p.info["n_samples"] == q.info["n_samples"] == len(frame)
    assert fit_mixture(TARGET, 2).feature_names is None
    assert fit_mixture(pd.DataFrame(TARGET), 2).feature_names is None  # 0 and 1 are no names


@pytest.mark.parametrize("kind", [GMMWBT, GMMDaDiL, GMMOTDA])
def test_the_class_prior_holds_for_given_mixtures_too(kind):
    """Sources of unequal classes: uniform is the same as mixtures that were balanced before."""
    rows = (IDS == 1) & ((Y == 0) | (np.arange(len(Y)) % 4 == 0))
    y = CLASSES[Y[rows]]
    given = fit_labeled_mixture(X[rows], y, 2, random_state=0)
    even = fit_labeled_mixture(X[rows], y, 2, class_prior="uniform", random_state=0)
    target = fit_mixture(TARGET, 4, random_state=0)
    model = kind(class_prior="uniform").fit_mixtures([given], target)
    (used,) = model.source_mixtures_
    np.testing.assert_allclose(used.weights, even.weights, rtol=1e-12)
    (kept,) = kind(class_prior="empirical").fit_mixtures([given], target).source_mixtures_
    assert kept.weights.tolist() == given.weights.tolist()


@pytest.mark.parametrize("scale", ["auto", None])
def test_domain_mixture(scale):
    """A labeled mixture in raw units; constant features have no spread, units do not matter."""
    rng = np.random.default_rng(0)
    y = np.repeat(["ok", "worn"], 40)
    X = rng.normal(size=(80, 3)) + 5.0 * (y == "worn")[:, None]
    X[:, 2] = 7.0
    model = GMMWBT(n_components=1, scale=scale, random_state=0)
    p = model.domain_mixture(X, y)
    np.testing.assert_allclose(p.means, [X[y == k].mean(axis=0) for k in ("ok", "worn")])
    np.testing.assert_allclose(p.stds, [X[y == k].std(axis=0) for k in ("ok", "worn")], atol=1e-12)
    assert p.classes.tolist() == ["ok", "worn"]
    assert p.info["n_samples"] == 80
    assert model.domain_mixture(X, sources=[p]).n_components == 2
    if scale is not None:  # mixed units: fitted as if they were alike
        unit = np.array([1.0, 1e6, 1.0])
        np.testing.assert_allclose(model.domain_mixture(X * unit, y).stds, p.stds * unit)


def test_domain_mixture_floor():
    X = np.random.default_rng(0).normal(scale=3.0, size=(200, 1))
    floors = {None: 6.0, "auto": 6.0 * X.std()}  # `min_std` is in the encoded space
    for scale, floor in floors.items():
        p = GMMWBT(target_components=5, min_std=6.0, scale=scale).domain_mixture(X)
        np.testing.assert_allclose(p.stds, floor)
