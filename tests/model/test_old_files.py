"""Files that earlier versions wrote still load and predict what they predicted then."""

from pathlib import Path

import numpy as np
import pytest

import mixda

FOLDER = Path(__file__).parent / "written_by_0.1.0"


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("mixture-0.1.0.gmm", "mixture"),
        ("dadil-0.1.0.mixda", "dadil"),
        ("auto-0.1.0.mixda", "auto"),
    ],
)
def test_predicts_as_before(file, key):
    with np.load(FOLDER / "expected-0.1.0.npz") as expected:
        loaded = mixda.load(FOLDER / file)
        np.testing.assert_allclose(loaded.predict_proba(expected["X"]), expected[key], atol=1e-12)


def test_trust():
    trust = mixda.load(FOLDER / "auto-0.1.0.mixda").trust
    assert isinstance(trust, mixda.model.Trust)
    assert trust.low <= trust.accuracy <= trust.high


def test_former_names_of_rules(tmp_path):
    """The files hold the rule Smooth as Doubt; a new file holds it under its new name."""
    model = mixda.load(FOLDER / "auto-0.1.0.mixda")
    assert '"kind": "Doubt"' in header(FOLDER / "auto-0.1.0.mixda")
    model.save(tmp_path / "m.mixda", allow_exposed_rows=True)
    assert '"kind": "Smooth"' in header(tmp_path / "m.mixda")
    assert '"Doubt"' not in header(tmp_path / "m.mixda")
    assert mixda.rules.Doubt is mixda.rules.Smooth


def header(path):
    with np.load(path) as archive:
        return str(archive["header"])
