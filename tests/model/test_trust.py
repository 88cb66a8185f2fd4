"""Trust: its numbers, its words, and its JSON of other versions."""

from dataclasses import replace

import pytest

from mixda import AdaptedModel, MixdaError, SourceOnly, selection
from mixda.datasets import make_shifted_toy
from mixda.model import Trust

TRUST = Trust(0.88, 0.8, 0.96, 0.8, False, "It was best.", ({"name": "a"},), {"1": 0.9})


@pytest.fixture(scope="module")
def model():
    task = make_shifted_toy(random_state=2).as_task()
    return SourceOnly().fit(task.X, task.y, sample_domain=task.sample_domain).to_model()


def test_words():
    assert selection.Trust is Trust
    assert "accuracy 88 % (80 % interval: 80–96 %)" in str(TRUST)
    assert str(TRUST).endswith("It was best.")
    assert replace(TRUST, level=None).interval() == "interval: 80–96 %"
    assert replace(TRUST, low=None).interval() == ""
    assert Trust(reason="so").explanation == "so."


@pytest.mark.parametrize(("share", "holds"), [(0.1, True), (0.11, False)])
def test_other_rows(share, holds):
    assert TRUST.holds_for(share) is holds
    assert (TRUST.numbers(share)["accuracy"] == 0.88) is holds
    assert ("accuracy 88 %" in TRUST.sentence_for("plant", share)) is holds
    assert "plant" in TRUST.sentence_for("plant", share)


def test_json_of_other_versions():
    later = {**TRUST.to_json(), "weights": {"a": 1.0}, "notes": ["new"]}
    assert Trust.from_json(later) == TRUST
    assert Trust.from_json({"accuracy": 0.9, "reason": None}) == Trust(0.9)


@pytest.mark.parametrize(
    ("field", "value"),
    [("accuracy", "high"), ("low", 2.0), ("level", True), ("reason", 3), ("candidates", [1])],
)
def test_wrong_fields(field, value):
    with pytest.raises(MixdaError, match=field):
        Trust.from_json({field: value})


def test_in_a_model(model, tmp_path):
    assert model.trust is None
    assert replace(model, trust={}).trust is None
    assert replace(model, trust=TRUST.to_json()).trust == TRUST
    replace(model, trust=TRUST).save(tmp_path / "m.mixda", allow_exposed_rows=True)
    assert AdaptedModel.load(tmp_path / "m.mixda").trust == TRUST
