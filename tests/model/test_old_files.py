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
def test_file_of_an_earlier_version_predicts_as_it_did(file, key):
    with np.load(FOLDER / "expected-0.1.0.npz") as expected:
        loaded = mixda.load(FOLDER / file)
        np.testing.assert_allclose(loaded.predict_proba(expected["X"]), expected[key], atol=1e-12)
