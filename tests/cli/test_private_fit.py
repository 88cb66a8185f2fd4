"""``mixda fit --epsilon`` on a file."""

import json

import numpy as np
import pytest

import mixda
from mixda.cli import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3000)
    X = rng.normal(size=(3000, 2)) + 3.0 * y[:, None]
    rows = [f"{a:.5f},{b:.5f},{('ok', 'worn')[k]}" for (a, b), k in zip(X, y, strict=True)]
    (tmp_path / "lab.csv").write_text("\n".join(["speed,load,state", *rows]))
    (tmp_path / "bounds.json").write_text('{"speed": [-6, 9], "load": [-6, 9]}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ["fit", "lab.csv", "--label", "state", "-o", "lab.gmm"]
PRIVATE = ["--epsilon", "3", "--bounds", "bounds.json", "--classes", "ok,worn"]


def test_private(folder, capsys):
    assert run([*FIT, *PRIVATE, "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["written"]
    p = mixda.load("lab.gmm")
    assert written[0]["rows"] == p.info["n_samples"]
    assert p.info["privacy"]["epsilon"] == 3.0
    assert p.feature_names == ("speed", "load")
    np.testing.assert_allclose(p.means, [[0.0, 0.0], [3.0, 3.0]], atol=0.5)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (PRIVATE[:2], "--bounds"),
        (PRIVATE[2:], "--epsilon"),
        (PRIVATE[:4], "--classes"),
        ([*PRIVATE, "--columns", "speed"], "--columns"),
        ([*PRIVATE[:2], "--bounds", "lab.csv"], "JSON"),
        ([*PRIVATE, "--components", "bic"], "--components"),
    ],
)
def test_errors(folder, capsys, given, match):
    assert run([*FIT, *given]) == 2
    assert match in capsys.readouterr().err
    assert not (folder / "lab.gmm").exists()
