"""Explanations add up to the log-odds, and name what was changed on purpose."""

from dataclasses import replace

import numpy as np
import pytest

import mixda
from mixda import Mixture
from mixda.model import AdaptedModel, Domain
from mixda.rules import Affine, Chain, Linear, Pool, Posterior, ReLU, Softmax

RNG = np.random.default_rng(3)
NAMES = ("flow", "pressure", "temperature", "torque")
_FEATURES = {"preset": "paper", "scale": "sources", "classifier": "product"}
_FULL = {"target_fit": 0.0, "random_state": 0}  # the whole shift is reconstructed
METHODS = {
    "map": lambda: mixda.GMMDaDiL(scale="sources", preset="paper", **_FULL),
    "product": lambda: mixda.GMMDaDiL(**_FEATURES, **_FULL),
    "wbt": lambda: mixda.GMMWBT(**_FEATURES, random_state=0),
    "lda": lambda: mixda.GMMDaDiL(encoder="lda", random_state=0),
    "source": lambda: mixda.SourceOnly(random_state=0),
}


def draw(n, shift):
    y = RNG.integers(3, size=n)
    X = RNG.normal(size=(n, 4)) + 4.0 * np.eye(4)[y]
    return X * [1.0, 10.0, 0.1, 1.0] + shift, np.array(["broken", "ok", "worn"])[y]


@pytest.fixture(scope="module")
def models():
    parts = [draw(200, 0.0), draw(200, 0.0), draw(200, [0.0, 0.0, 0.0, 6.0])]  # torque moves
    X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    ids = np.repeat([0, 1, -1], 200)
    fitted = {name: make().fit(X, y, sample_domain=ids) for name, make in METHODS.items()}
    return {name: model.to_model().with_reference(parts[-1][0]) for name, model in fitted.items()}


@pytest.mark.parametrize("name", METHODS)
def test_contributions_add_up(models, name):
    model = models[name]
    for x in draw(10, [0.0, 0.0, 0.0, 6.0])[0]:
        why = model.explain(x)
        proba = model.predict_proba(x[None])[0]
        first, second = np.sort(proba)[::-1][:2]
        total = why.baseline + sum(part.log_odds for part in why.contributions)
        assert why.log_odds == pytest.approx(total, rel=1e-9, abs=1e-9)
        if second > 1e-10:
            assert why.log_odds == pytest.approx(np.log(first / second), rel=1e-6, abs=1e-9)
        assert why.label == model.predict(x[None])[0]
        assert why.probability == pytest.approx(first)
        assert sorted(part.feature for part in why.contributions) == sorted(model.feature_names)


@pytest.mark.parametrize("name", ["map", "product"])
def test_missing_values(models, name):
    model = models[name]
    x = draw(1, [0.0, 0.0, 0.0, 6.0])[0][0]
    x[1] = np.nan
    why = model.explain(x)
    first, second = np.sort(model.predict_proba(x[None])[0])[::-1][:2]
    assert why.log_odds == pytest.approx(np.log(first / second), rel=1e-6)
    missing = next(part for part in why.to_json()["contributions"] if part["value"] is None)
    assert missing["feature"] == "x1"
    assert (missing["log_odds"] == 0) == (name == "map")  # integrated out there


def test_mixtures_are_exact(models):
    assert models["map"].explain(draw(1, 0.0)[0]).method == "exact"
    assert models["product"].explain(draw(1, 0.0)[0]).method == "shapley"


@pytest.mark.parametrize("name", METHODS)
def test_votes_of_members_add_up(models, name):
    model = models[name]
    x = draw(1, [0.0, 0.0, 0.0, 6.0])[0]
    why = model.explain(x)
    if name not in ("product", "wbt", "lda"):
        assert why.members == ()
        return
    assert {vote.name for vote in why.members} == {
        "classifier of the sources",
        "mixture of the target",
    }
    assert sum(vote.log_odds for vote in why.members) == pytest.approx(why.log_odds, rel=1e-9)


def test_committee():
    """A pool is explained by its members exactly, and by features up to the order of these."""
    one = simple_model()
    head = Chain((Linear(np.array([[1.0, -1.0], [0.5, 0.0]]), np.array([0.1, 0.0])), Softmax()))
    pool = Pool(
        (one.encoder,), (Posterior(one.labeled_target), head), [0, 0], [1.5, 0.5], [0, 1], 0.05
    )
    model = replace(one, rule=pool, method="AutoMSDA", settings={"experts": ["mixture", "linear"]})
    for x in RNG.normal(3.0, 5.0, size=(5, 2)):
        why = model.explain(x)
        proba = np.sort(model.predict_proba(x[None])[0])
        exact = pytest.approx(np.log(proba[1] / proba[0]), rel=1e-9)
        assert why.log_odds == exact
        assert why.baseline + sum(part.log_odds for part in why.contributions) == exact
        assert sum(vote.log_odds for vote in why.members) == exact
        assert {vote.name for vote in why.members} == {"mixture", "linear", "class proportions"}
        assert why.method == "shapley"
        assert "Shapley" in why.note
    # the linear member: weight 0.5, smoothed probabilities of its own
    z = one.encoder(x[None])
    own = 0.95 * head(z)[0] + 0.025
    vote = next(vote for vote in why.members if vote.name == "linear")
    sign = 1.0 if why.label == "b" else -1.0
    assert vote.log_odds == pytest.approx(0.5 * sign * np.log(own[1] / own[0]))


def simple_model():
    """Two Gaussians that differ in the second feature only, standardized by the encoder."""
    mixture = Mixture([0.5, 0.5], [[0.0, 0.0], [0.0, 2.0]], np.ones((2, 2)), np.eye(2), ["a", "b"])
    encoder = Affine(np.array([1.0, 1.0]), np.array([1.0, 3.0]))
    unlabeled = Mixture(mixture.weights, mixture.means, mixture.stds)
    return AdaptedModel(
        ("u", "v"),
        np.array(["a", "b"]),
        "GMMWBT",
        Chain((encoder, Posterior(mixture))),
        encoder,
        (Domain("lab", mixture),),
        Domain("plant", unlabeled),
        labeled_target=mixture,
    )


def test_closed_form():
    # z = (x - 1) / [1, 3]; log-odds of b are 2 z_2 - 2
    why = simple_model().explain([5.0, 7.0])
    assert why.label == "b"
    assert why.log_odds == pytest.approx(2.0)
    assert why.baseline == pytest.approx(0.0)
    assert why.contributions[0].feature == "v"
    assert why.contributions[0].log_odds == pytest.approx(2.0)
    assert why.contributions[1].log_odds == pytest.approx(0.0)
    assert why.neighbors[0].label == "b"
    assert why.neighbors[0].distance == pytest.approx(np.sqrt(16 / 2))


def test_against(models):
    x = draw(1, 0.0)[0]
    proba = models["map"].predict_proba(x)[0]
    last = models["map"].classes[proba.argmin()]
    assert models["map"].explain(x, against=last).against == last
    with pytest.raises(mixda.MixdaError, match=r"against.*'rusty'"):
        models["map"].explain(x, against="rusty")


def test_one_row_only(models):
    with pytest.raises(mixda.MixdaError, match=r"row.*2 rows"):
        models["map"].explain(draw(2, 0.0)[0])


def test_typical_row_is_needed(models):
    bare = replace(models["lda"], reference=None)
    with pytest.raises(mixda.MixdaError, match="with_reference"):
        bare.explain(draw(1, 0.0)[0])


@pytest.mark.parametrize("name", ["map", "product", "wbt", "source"])
def test_shifted_sensor_is_named_first(models, name):
    shifts = models[name].shifts(1)
    assert {shift.feature for shift in shifts} == {"x3"}
    assert np.mean([s.target - s.source for s in shifts]) == pytest.approx(6.0, abs=1.0)
    labels = [shift.label for shift in shifts]
    assert labels == ([None] if name == "source" else ["broken", "ok", "worn"])


def test_shift_in_user_units():
    moved = Mixture([0.5, 0.5], [[0.0, 1.0], [0.0, 3.0]], np.ones((2, 2)), np.eye(2), ["a", "b"])
    shift = replace(simple_model(), labeled_target=moved).shifts(1)[1]
    assert (shift.label, shift.feature) == ("b", "v")
    assert (shift.source, shift.target, shift.size) == pytest.approx((7.0, 10.0, 1.0))


def test_shifts_need_a_linear_encoder(models):
    model = models["map"]
    with pytest.raises(mixda.MixdaError, match="encoder"):
        replace(model, encoder=Chain((model.encoder, ReLU()))).shifts()


def test_outlier_is_flagged(models):
    assert models["map"].explain([1e3] * 4).outlier


def test_estimator_explains():
    X, y = draw(150, 0.0)
    estimator = METHODS["map"]().fit(X, y, sample_domain=np.repeat([0, 1, -1], 50))
    assert estimator.explain(X[0]).label == estimator.predict(X[:1])[0]
