"""Drift is found and named, same rows stay quiet, and updates help where the target moved."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import fisher_exact, ks_2samp

import mixda
from mixda.model import AdaptedModel, Reference
from mixda.monitoring import _monitor, monitor, update
from mixda.rules import Posterior

RNG = np.random.default_rng(0)
SHIFTS = (0.0, 0.4, 0.8)  # two sources and a target
NAMES = ("flow", "pressure", "temperature")
RAW = {"encoder": None, "scale": "sources", "class_prior": "uniform"}  # mixtures over columns


def draw(n, shift=0.0, share=0.5, rng=RNG):
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + np.outer(y, [5.0, 50.0, 0.0])
    X[:, 1] += 10.0 * shift
    return X, np.array(["ok", "worn"])[y]


def fitted(method=mixda.GMMDaDiL, n=400, seed=0, **options):
    rng = np.random.default_rng(seed)
    parts = [draw(n, shift, rng=rng) for shift in SHIFTS]
    X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    ids = np.repeat([0, 1, -1], n)
    over_mixtures = method in (mixda.GMMDaDiL, mixda.GMMWBT, mixda.GMMOTDA)
    estimator = method(random_state=0, **(RAW if over_mixtures else {}), **options)
    estimator.fit(X, y, sample_domain=ids)
    model = replace(estimator.to_model(), feature_names=NAMES)
    return model, parts[-1][0]


@pytest.fixture(scope="module")
def model():
    bare, target = fitted()
    return bare.with_reference(target)


def test_same_distribution_is_quiet(model):
    drift = monitor(model, draw(300, SHIFTS[-1])[0])
    assert not drift.alarm
    assert drift.reasons == ()
    assert drift.basis == "rows"


@pytest.mark.parametrize("n", [10, 50, 400])
def test_false_alarms(model, n):
    rng = np.random.default_rng(n)
    alarms = [monitor(model, draw(n, SHIFTS[-1], rng=rng)[0]).alarm for _ in range(60)]
    assert sum(alarms) <= 3  # 1 in 20


@pytest.mark.parametrize("column", range(3))
def test_moved_column_is_named_first(model, column):
    X, _ = draw(300, SHIFTS[-1])
    X[:, column] += X[:, column].std()
    drift = monitor(model, X)
    assert drift.alarm
    assert drift.columns[0].name == NAMES[column]
    assert [change.name for change in drift.columns if change.alarm] == [NAMES[column]]
    assert NAMES[column] in drift.reasons[0]
    assert drift.columns[0].size == pytest.approx(1.0, abs=0.3)


def test_spread_is_noticed(model):
    X, _ = draw(300, SHIFTS[-1])
    X[:, 2] *= 3.0  # around a mean of zero
    assert monitor(model, X).columns[0].name == "temperature"


def test_class_share_is_noticed(model):
    drift = monitor(model, draw(300, SHIFTS[-1], share=0.9)[0])
    worn = drift.classes[1]
    assert worn.name == "worn"
    assert worn.alarm
    assert worn.size == pytest.approx(0.4, abs=0.1)


def test_outliers_are_noticed(model):
    X, _ = draw(300, SHIFTS[-1])
    X[:60, 2] += 50.0
    drift = monitor(model, X)
    assert drift.outliers.alarm
    assert drift.outliers.now == pytest.approx(0.2, abs=0.01)


def test_lower_confidence_is_noticed(model):
    X = draw(300, SHIFTS[-1])[0]
    X[:200, :2] = [2.5, 33.0]  # halfway between the classes
    drift = monitor(replace(model, trust={"accuracy": 0.9}), X)
    assert drift.confidence.alarm
    assert drift.accuracy == pytest.approx(0.9 + drift.confidence.size)


def test_few_reference_rows():
    """The mixture was fitted to 60 rows, so fewer of these are outliers than of other rows."""
    bare, target = fitted(n=60, min_component_rows=1)
    rng = np.random.default_rng(0)
    new = [draw(200, SHIFTS[-1], rng=rng)[0] for _ in range(20)]
    truth = np.mean([bare.outliers(X).mean() for X in new])
    model = bare.with_reference(target)
    rate = model.reference.n_outliers / 60
    assert bare.outliers(target).mean() < truth / 2
    assert truth / 2 < rate < 2 * truth
    assert sum(monitor(model, X).alarm for X in new) <= 1


@pytest.mark.parametrize(("old", "new"), [(100, 160), (100, 40), (0, 30), (390, 300)])
def test_rates_are_compared_beyond_five_points(old, new):
    """Fisher's test sees only what exceeds five points."""
    n = 400
    moved = old + 20 if new > old else old - 20
    p = _monitor._fisher(old, new, n, n)
    assert p == pytest.approx(fisher_exact([[moved, n - moved], [new, n - new]])[1])
    inside = old + np.sign(new - old) * 19
    assert _monitor._fisher(old, inside, n, n) == 1.0


def test_rates_at_the_margin_raise_few_alarms():
    rng, n = np.random.default_rng(0), 300
    for p in (0.0, 0.1, 0.5, 0.8):
        pairs = rng.binomial(n, [p, p + 0.05], size=(400, 2))
        assert np.mean([_monitor._fisher(*pair, n, n) <= 0.05 for pair in pairs]) <= 0.07


def test_p_values_are_those_of_kolmogorov_and_smirnov():
    X, new = RNG.normal(size=(200, 1)), RNG.normal(size=(150, 1)) + 0.5
    reference = Reference.from_rows(X, np.ones((200, 1)), 0)
    gaps = [np.mean(new <= q) - np.mean(q >= X) for q in reference.quantiles[0]]
    exact = ks_2samp(X[:, 0], new[:, 0]).statistic
    assert np.max(np.abs(gaps)) <= exact  # so tests at the quantiles are conservative
    assert np.max(np.abs(gaps)) > 0.8 * exact


def test_reference_given_as_rows(model):
    bare, target = replace(model, reference=None), draw(400, SHIFTS[-1])[0]
    assert not monitor(bare, draw(300, SHIFTS[-1])[0], reference=target).alarm
    assert monitor(bare, draw(300, 2.0)[0], reference=target).alarm


def test_mixture_as_reference(model):
    bare = replace(model, reference=None)
    drift = monitor(bare, draw(300, SHIFTS[-1])[0])
    assert drift.basis == "mixture"
    assert (drift.classes, drift.outliers, drift.confidence) == ((), None, None)
    rng = np.random.default_rng(1)
    quiet = [draw(100, SHIFTS[-1], rng=rng)[0] for _ in range(60)]
    assert sum(monitor(bare, X).alarm for X in quiet) <= 8  # 1 in 20; more: one in a thousand
    moved = monitor(bare, draw(300, 2.0)[0])
    assert moved.alarm
    assert moved.columns[0].name == "pressure"


def test_rare_value_is_noticed(model):
    """Quantiles from 5 to 95 % do not see a value that 1 % or 4 % of the rows have."""
    X = draw(1000, SHIFTS[-1])[0]
    X[:, 2] = 0.0
    X[:10, 2] = 1.0
    flagged, new = model.with_reference(X), X.copy()
    new[:200, 2] = 1.0
    assert monitor(flagged, new).columns[0].name == "temperature"


def test_encoded_model_needs_reference_rows():
    def method(random_state):
        return mixda.GMMDaDiL(encoder="lda", random_state=random_state)

    bare, target = fitted(method)
    with pytest.raises(mixda.MixdaError, match="reference"):
        monitor(bare, target)
    assert not monitor(bare.with_reference(target), target).alarm


@pytest.mark.parametrize("level", [-0.1, 1.5, "low"])
def test_level_is_checked(model, level):
    with pytest.raises(mixda.MixdaError, match="level"):
        monitor(model, draw(30)[0], level=level)


def test_json(model):
    contents = json.loads(json.dumps(monitor(model, draw(100, 2.0)[0]).to_json()))
    assert contents["alarm"] is True
    assert contents["columns"][0]["name"] == "pressure"


def test_reference_is_saved(model, tmp_path):
    model.save(tmp_path / "m.mixda", allow_exposed_rows=True)
    loaded = AdaptedModel.load(tmp_path / "m.mixda")
    X = draw(100, 1.0)[0]
    assert monitor(loaded, X).to_json() == monitor(model, X).to_json()


def test_reference_holds_no_row(model):
    target = fitted()[1]
    assert not np.isin(model.reference.quantiles, target).any()


def test_forged_reference(model):
    other = Reference.from_rows(np.ones((9, 1)), np.ones((9, 1)), 0)
    with pytest.raises(mixda.MixdaError, match="reference"):
        replace(model, reference=other)


@pytest.mark.parametrize("method", [mixda.GMMDaDiL, mixda.GMMWBT, mixda.SourceOnly, mixda.AutoMSDA])
def test_update(method, tmp_path):
    bare, target = fitted(method, n=200)
    model = bare.with_reference(target)
    X, y = draw(300, 2.0)
    updated = update(model, X)
    assert np.mean(updated.predict(X) == y) >= np.mean(model.predict(X) == y) - 0.01
    assert not monitor(updated, draw(300, 2.0)[0]).alarm
    assert updated.trust is None or updated.trust.accuracy is None
    updated.save(tmp_path / "m.mixda", allow_exposed_rows=True)
    assert updated.shifts(1)[0].feature == "pressure"  # moved by us, in a committee too
    for one in (model, updated):
        why = one.explain(X[0])
        total = why.baseline + sum(part.log_odds for part in why.contributions)
        assert total == pytest.approx(why.log_odds, rel=1e-9)
        if why.members:
            votes = sum(vote.log_odds for vote in why.members)
            assert votes == pytest.approx(why.log_odds, rel=1e-9)
    again = update(AdaptedModel.load(tmp_path / "m.mixda"), X)
    assert len(again.settings["updates"]) == 2
    assert np.mean(again.predict(X) == updated.predict(X)) > 0.99


def test_update_keeps_scales_matched_to_class_shares():
    """An update with the rows of the fit changes nothing."""
    parts = [draw(200, shift, rng=np.random.default_rng(k)) for k, shift in enumerate(SHIFTS[:2])]
    target = draw(200, 3.0, share=0.1, rng=np.random.default_rng(9))
    X, y = (np.concatenate(part) for part in zip(*parts, target, strict=True))
    ids = np.repeat([0, 1, -1], 200)
    model = mixda.AutoMSDA(target_shares={"ok": 0.9}, random_state=0)
    model = model.fit(X, y, sample_domain=ids).to_model().with_reference(target[0])
    assert "class proportions" in model.trust.reason
    again = update(model, target[0]).rule(target[0])
    np.testing.assert_allclose(again, model.rule(target[0]), atol=1e-9)


def test_update_brings_accuracy_back():
    def method(random_state):
        return mixda.GMMDaDiL(classifier="map", random_state=random_state, **RAW)

    model, _ = fitted(method)
    X, y = draw(400, 6.0)  # one class comes to lie where the other was
    updated = update(model, X)
    assert np.mean(model.predict(X) == y) < 0.9
    assert np.mean(updated.predict(X) == y) > 0.98
    assert isinstance(updated.labeled_target, mixda.Mixture)
    kept = update(model, X, share=0.1)
    assert not np.allclose(kept.target.mixture.means, updated.target.mixture.means)


@pytest.mark.parametrize("method", [mixda.GMMDaDiL, mixda.GMMWBT, mixda.GMMOTDA])
def test_update_repeats_the_method(method):
    """On the rows of the fit, an update finds the labeled mixture of the fit again."""
    model, target = fitted(method, n=200)
    again = update(model, target)
    assert again.settings["updates"][-1]["repeated"] is True
    X = draw(200, SHIFTS[-1])[0]
    assert np.mean(again.predict(X) == model.predict(X)) > 0.99
    shares = [m.labeled_target.class_proportions for m in (again, model)]
    np.testing.assert_allclose(*shares, atol=0.05)


def test_update_keeps_labels_of_the_source_domains(model):
    updated = update(model, draw(100, 1.0)[0])
    assert all(
        new.mixture == old.mixture for new, old in zip(updated.sources, model.sources, strict=True)
    )
    assert Posterior(updated.labeled_target).mixture.n_features == 3


def test_share_needs_a_dictionary():
    model, _ = fitted(mixda.GMMWBT, n=100)
    with pytest.raises(mixda.MixdaError, match=r"share.*0\.5"):
        update(model, draw(50)[0], share=0.5)
