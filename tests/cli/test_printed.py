"""What commands print: help, tables, JSON, completion, the demo."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("pyarrow", reason="the command line needs the cli extra")

import mixda
from mixda.cli import run

from .four_domains import SHIFTS, make_domain, sources

GOLDEN = Path(__file__).parent / "golden"
COMMANDS = [
    *("", "check", "fit", "adapt", "predict", "report", "label", "explain", "monitor", "update"),
    *("info", "demo"),
]


def check_golden(name, printed):
    """Compare with the file; MIXDA_GOLDEN=write writes it instead, to be looked at."""
    printed = "".join(line.rstrip() + "\n" for line in printed.splitlines())
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("MIXDA_GOLDEN") == "write":
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command, capsys, plain):
    assert run([*filter(None, [command]), "--help"]) == 0
    printed = capsys.readouterr().out
    assert "Example" in printed
    check_golden(f"help-{command or 'mixda'}", printed)


@pytest.mark.parametrize("command", [[], ["bench"]])
def test_no_command_shows_the_help(command, capsys):
    assert run(command) == 2
    assert "Usage: mixda" in capsys.readouterr().out


def test_printed_tables(home, tmp_path, capsys, plain, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in SHIFTS:
        make_domain(name).to_csv(f"{name}.csv", index=False)
    commands = {
        "fit": "fit lab.csv --label state -o lab.gmm",
        "adapt": "adapt lab.gmm north.csv south.csv --target plant.csv --label state "
        "--method wbt --scale sources -o m.mixda",
        "predict": "predict m.mixda plant.csv -o o.csv",
        "report": "report m.mixda -o r.html",
        "monitor": "monitor m.mixda plant.csv",
        "explain": "explain m.mixda",
        "explain-row": "explain m.mixda plant.csv --row 3",
        "update": "update m.mixda plant.csv -o updated.mixda",
        "info-gmm": "info lab.gmm",
        "info-csv": "info lab.csv",
    }
    for name, command in commands.items():
        assert run(command.split()) == 0
        check_golden(name, capsys.readouterr().out)
    assert run(["info", "m.mixda"]) == 0
    printed = capsys.readouterr().out
    printed = re.sub(r"(created|versions) .*", r"\1 …", printed)
    check_golden("info-mixda", re.sub("─+", "─", printed))  # as long as the line of versions


def test_monitor_exits_with_3_after_an_alarm(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in SHIFTS:
        make_domain(name).to_csv(f"{name}.csv", index=False)
    data = make_domain("plant")
    moved = data.select_dtypes("number").columns[-1]
    data[moved] += 5 * data[moved].std()
    data.to_csv("august.csv", index=False)
    adapt = "adapt lab.csv north.csv --target plant.csv --label state --method dadil -o m.mixda -q"
    assert run(adapt.split()) == 0
    assert run(["monitor", "m.mixda", "plant.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["alarm"] is False
    assert run(["monitor", "m.mixda", "august.csv", "--json"]) == 3
    contents = json.loads(capsys.readouterr().out)
    assert contents["columns"][0]["name"] == moved
    assert run(["update", "m.mixda", "august.csv", "-o", "new.mixda", "--share", "0.9"]) == 0
    assert run(["monitor", "new.mixda", "august.csv"]) == 0
    assert run(["monitor", "new.mixda", "plant.csv", "--reference", "plant.csv"]) == 0


def test_explain(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in SHIFTS:
        make_domain(name).to_csv(f"{name}.csv", index=False)
    adapt = "adapt lab.csv north.csv --target plant.csv --label state --method wbt -q -o m.mixda"
    assert run(adapt.split()) == 0
    assert run(["explain", "m.mixda"]) == 2  # discriminants of domains on their own scale
    assert "preset" in capsys.readouterr().err
    assert run([*adapt.split(), "--set", "preset=paper"]) == 0
    assert run(["explain", "m.mixda", "--json"]) == 0
    shifts = json.loads(capsys.readouterr().out)["shifts"]
    assert {shift["label"] for shift in shifts} == {"broken", "ok", "worn"}
    assert run(["explain", "m.mixda", "plant.csv", "--row", "2", "--json"]) == 0
    why = json.loads(capsys.readouterr().out)
    total = why["baseline"] + sum(part["log_odds"] for part in why["contributions"])
    assert why["log_odds"] == pytest.approx(total)
    assert run(["explain", "m.mixda", "plant.csv", "--against", why["against"]]) == 0
    assert run(["explain", "m.mixda", "--row", "2"]) == 2
    assert run(["explain", "m.mixda", "plant.csv", "--row", "1000"]) == 2
    assert "row" in capsys.readouterr().err


def test_the_estimate_is_for_the_target_only(home, tmp_path, capsys, plain):
    """Scripts get its numbers; both are withdrawn for data of which more than a tenth is far."""
    numbers = {"accuracy": 0.9, "low": 0.8, "high": 0.95, "level": 0.8, "declined": False}
    model, data, out = tmp_path / "m.mixda", tmp_path / "new.csv", str(tmp_path / "o.csv")
    told = replace(mixda.load(home / "m.mixda"), trust={**numbers, "reason": "Methods agree."})
    told.save(model, allow_exposed_rows=True)
    assert run(["info", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["estimate"] == numbers
    assert run(["info", str(model)]) == 0
    assert "declined" not in capsys.readouterr().out
    rows = pd.read_csv(home / "plant.csv")
    features = list(mixda.load(model).feature_names)
    known = ~mixda.load(model).novelty(rows[features])
    rows = rows[known].head(40)
    none = dict.fromkeys(["accuracy", "low", "high", "level"])
    for n_far, expected in ((4, numbers), (5, {**none, "declined": False})):
        rows.iloc[:n_far, [rows.columns.get_loc(name) for name in features]] = 1e6
        rows.to_csv(data, index=False)
        assert run(["predict", str(model), str(data), "--json", "-o", out]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["far"], found["estimate"]) == (n_far, expected)
        holds = "The estimate is for plant" in found["trust"]
        assert holds is (n_far == 4)
        assert ("accuracy 90 %" in found["trust"]) is holds
    rows.head(1).to_csv(data, index=False)
    assert run(["predict", str(model), str(data), "-o", out]) == 0
    assert "(1 row)" in capsys.readouterr().out


def test_json_of_every_command(home, tmp_path, capsys):
    model, data = str(home / "m.mixda"), str(home / "plant.csv")
    assert run(["predict", model, data, "--json", "-o", str(tmp_path / "o.csv")]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["rows"] == sum(done["counts"].values()) == 90
    for file, kind in ((model, "adapted model (.mixda)"), (data, "data")):
        assert run(["info", file, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["kind"] == kind
    parts = [*map(str, sources(home)), "--target", data, "--label", "state", "--json"]
    assert run(["adapt", *parts, "--method", "wbt", "-o", str(tmp_path / "m.mixda")]) == 0
    domains = json.loads(capsys.readouterr().out)["domains"]
    assert [domain["domain"] for domain in domains] == ["lab", "north", "south", "plant"]
    assert domains[-1]["role"] == "target"


@pytest.mark.parametrize(
    ("words", "expected"), [("mixda ad", "adapt"), ("mixda adapt x --method wj", "wjdot")]
)
def test_completion(words, expected):
    environment = {
        **os.environ,
        "_MIXDA_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "from mixda.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == [expected], done.stderr


def test_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "mixda", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"mixda {mixda.__version__}\n"


def test_demo(tmp_path, capsys, plain):
    assert run(["demo", "--out", str(tmp_path / "demo")]) == 0
    printed = capsys.readouterr().out
    source_only, dadil, auto = map(float, re.findall(r"([\d.]+)%", printed)[-3:])
    assert dadil > source_only + 10  # 65.5, 82.9 and 79.1 at seed 0
    assert auto > source_only + 10
    assert mixda.load(tmp_path / "demo" / "auto.mixda").trust.accuracy > 0.7
    assert printed.rstrip().endswith(f"report: {tmp_path / 'demo' / 'report.html'}")
    assert "<html" in (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
