"""Files as plants and hospitals have them, from check to report."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mixda import AdaptedModel
from mixda.cli import run

LABEL = ["--label", "state"]


def domain(name, n=90):
    rng = np.random.default_rng(sum(map(ord, name)))
    y = np.arange(n) % 3
    X = (
        3.0 * np.eye(3)[y]
        + {"a": 0.0, "b": 0.5, "c": -0.5, "t": 0.3}[name]
        + rng.standard_normal((n, 3))
    )
    frame = pd.DataFrame(X, columns=["speed", "load", "heat"])
    return frame.assign(state=np.array(["ok", "worn", "broken"])[y])


def junk(frame, name):
    """Ten columns that must not matter: text, ids, dates and gaps."""
    rng, n = np.random.default_rng(sum(map(ord, name)) + 1), len(frame)
    return frame.assign(
        serial=np.arange(n) + 7000,
        part_id=rng.choice(10**8, n, replace=False),
        uuid=[f"{name}{k:08x}" for k in rng.choice(10**8, n, replace=False)],
        timestamp=1_700_000_000 + 60 * np.arange(n),
        day=pd.date_range("2024-01-01", periods=n).astype(str),
        site=f"site {name}",
        site_code=ord(name),
        remark=[f"remark {k}" for k in rng.integers(0, 10**6, n)],
        machine=rng.choice(["M1", "M2"], n),
        noise=np.where(rng.random(n) < 0.5, np.nan, rng.standard_normal(n)),
    )


@pytest.fixture
def files(tmp_path):
    def write(change=lambda frame, name: frame):
        for name in "abct":
            change(domain(name), name).to_csv(tmp_path / f"{name}.csv", index=False)
        sources = [str(tmp_path / f"{name}.csv") for name in "abc"]
        return [*sources, "--target", str(tmp_path / "t.csv")]

    return write


def accuracy(files, tmp_path, *options):
    model, out = str(tmp_path / "m.mixda"), str(tmp_path / "p.csv")
    words = ["adapt", *files, *LABEL, "--method", "source", "-q", "-o", model, *options]
    assert run(words) == 0
    assert run(["predict", model, str(tmp_path / "t.csv"), "-q", "-o", out]) == 0
    truth = pd.read_csv(tmp_path / "t.csv")["state"]
    return (pd.read_csv(out)["label"] == truth).mean()


def test_junk_columns_leave_the_accuracy(files, tmp_path):
    clean = accuracy(files(), tmp_path)
    assert clean > 0.85
    assert accuracy(files(junk), tmp_path) > clean - 0.03
    model = AdaptedModel.load(tmp_path / "m.mixda")
    assert set(model.columns.names) == {"speed", "load", "heat", "machine", "noise"}
    assert "serial" in model.settings["left_out"]


def test_model_reads_raw_tables(files, tmp_path, capsys):
    arguments = files(junk)
    accuracy(arguments, tmp_path)
    model = AdaptedModel.load(tmp_path / "m.mixda")
    frame = pd.read_csv(tmp_path / "t.csv")
    frame.loc[0, "machine"], frame.loc[1, "machine"] = None, "M9"
    proba = model.predict_proba(frame)
    assert np.isfinite(proba).all()
    frame.to_csv(tmp_path / "new.csv", index=False)
    words = [tmp_path / "m.mixda", tmp_path / "new.csv", "--keep", "machine", "-o"]
    assert run(["predict", *map(str, [*words, tmp_path / "q.csv"]), "-q"]) == 0
    written = pd.read_csv(tmp_path / "q.csv")
    np.testing.assert_allclose(written[["p_broken", "p_ok", "p_worn"]], proba, atol=1e-12)
    assert "no value in machine" in written["note"][0]
    capsys.readouterr()
    assert run(["info", str(tmp_path / "m.mixda"), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert "machine=M1" in info["features"]
    assert info["left out"]["day"] == "it is a timestamp"


def test_commands_after_adapt_read_raw_tables(files, tmp_path, capsys):
    accuracy(files(junk), tmp_path)
    model, rows = str(tmp_path / "m.mixda"), str(tmp_path / "t.csv")
    capsys.readouterr()
    assert run(["monitor", model, rows, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_rows"] == 90  # gaps and categories cost none
    assert run(["explain", model, rows, "--row", "3", "--json"]) == 0
    features = {part["feature"] for part in json.loads(capsys.readouterr().out)["contributions"]}
    assert "machine=M1" in features
    assert run(["update", model, rows, "-q", "-o", str(tmp_path / "u.mixda")]) == 0


def test_gaps_cost_no_rows(files, tmp_path):
    def gaps(frame, name):
        rng = np.random.default_rng(ord(name))
        return frame.mask(rng.random(frame.shape) < 0.1).assign(state=frame["state"])

    arguments = files(gaps)
    kept = accuracy(arguments, tmp_path)
    model = AdaptedModel.load(tmp_path / "m.mixda")
    assert [d.n_samples for d in model.sources] == [90, 90, 90]
    accuracy(arguments, tmp_path, "--missing", "drop")
    dropped = AdaptedModel.load(tmp_path / "m.mixda")
    assert sum(d.n_samples for d in dropped.sources) < 220
    assert kept > 0.75
    words = ["adapt", *arguments, *LABEL, "--missing", "error", "-o", str(tmp_path / "e.mixda")]
    assert run(words) == 2


def test_check_command(files, tmp_path, capsys):
    arguments = files(junk)
    page = tmp_path / "check.html"
    assert run(["check", *arguments, *LABEL, "--json", "-o", str(page)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {f["code"] for f in report["findings"]} >= {"identifier", "timestamp", "site-code"}
    assert "serial" in page.read_text(encoding="utf-8")
    assert run(["check", *arguments, *LABEL]) == 0
    assert "it is a timestamp" in capsys.readouterr().out


def test_blockers_stop_unless_forced(files, tmp_path, capsys):
    def spell(frame, name):
        return frame.replace({"state": {"ok": "OK"}}) if name == "a" else frame

    arguments = files(spell)
    assert run(["check", *arguments, *LABEL]) == 2
    out = tmp_path / "m.mixda"
    words = ["adapt", *arguments, *LABEL, "--method", "source", "-o", str(out)]
    capsys.readouterr()
    assert run(words) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "'OK' and 'ok'" in printed
    assert "--force" in printed
    assert not out.exists()
    assert run([*words, "-q", "--force"]) == 0
    assert len(AdaptedModel.load(out).classes) == 4
    assert AdaptedModel.load(out).settings["checks"][0]["code"] == "label-spelling"
    capsys.readouterr()
    assert run(["info", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checks"][0]["severity"] == "blocker"
    assert run(["info", str(out)]) == 0
    assert "blocker: classes 'OK' and 'ok'" in capsys.readouterr().out
    assert run(["report", str(out), "-q", "-o", str(tmp_path / "r.html")]) == 0
    assert "'OK' and 'ok'" in html.unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert run([*words, "-q", "--rename-label", "OK=ok"]) == 0
    assert len(AdaptedModel.load(out).classes) == 3


def test_label_column_of_one_file(files, tmp_path):
    def rename(frame, name):
        return frame.rename(columns={"state": "type"}) if name == "b" else frame

    arguments = files(rename)
    assert accuracy(arguments, tmp_path, "--label", "b.csv:type") > 0.85


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ordinal", "grade"], "--ordinal"),
        (["--rename-label", "ok"], "--rename-label"),
        (["--target-shares", "ok=2"], "--target-shares"),
        (["--columns", "sped"], "did you mean 'speed'"),
    ],
)
def test_mistakes(files, tmp_path, capsys, options, message):
    out = str(tmp_path / "m.mixda")
    assert run(["adapt", *files(), *LABEL, *options, "-o", out]) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert message in printed
    assert not Path(out).exists()


@pytest.mark.data
@pytest.mark.skipif("MIXDA_DATA" not in os.environ, reason="needs MIXDA_DATA")
def test_heart_disease_hospitals(tmp_path, capsys):
    """Raw attributes with their gaps, up to all of a column, without a preparatory script."""
    data = np.load(Path(os.environ["MIXDA_DATA"], "heart_disease_4hospitals.npz"))
    names = [str(name) for name in data["doms"]]
    for k, name in enumerate(names):
        rows = data["d"] == k
        frame = pd.DataFrame(data["X_raw13_with_nan"][rows], columns=data["raw_names"])
        frame = frame.assign(diagnosis=data["cls"][data["y"][rows]])
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    *sources, target = [str(tmp_path / f"{name}.csv") for name in names]
    task = [*sources, "--target", target, "--label", "diagnosis"]
    model, out = str(tmp_path / "m.mixda"), str(tmp_path / "p.csv")
    assert run(["check", *task]) == 0
    assert "mostly" not in capsys.readouterr().err
    assert run(["adapt", *task, "--method", "source", "-q", "-o", model]) == 0
    assert run(["predict", model, target, "-q", "-o", out]) == 0
    report = ["report", model, "--data", target, "--label", "diagnosis", "-q"]
    assert run([*report, "-o", str(tmp_path / "r.html")]) == 0
    truth = pd.read_csv(target)["diagnosis"]
    assert (pd.read_csv(out)["label"] == truth).mean() > 0.7
    # dropping rows leaves nothing of one hospital, and one row of the target
    assert run(["adapt", *task, "--missing", "drop", "-q", "-o", model]) == 2
