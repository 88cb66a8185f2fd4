"""One sentence for every mistake; damaged and hostile files do no harm."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("pyarrow", reason="the command line needs the cli extra")

from mixda.cli import run

from ..strategies import damaged
from .four_domains import adapt, make_domain, sources


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_reader_that_stops_is_no_error(home, more):
    command = [sys.executable, "-u", "-m", "mixda", "info", str(home / "m.mixda"), *more]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


# Each: the command with {home} and {tmp}, and the sentence.
ERRORS = {
    "fit {home}/nowhere.csv -o {tmp}/o.gmm": "nowhere.csv does not exist.",
    "fit {home}/x*.csv -o {tmp}/o.gmm": r"x\*.csv matches no file.",
    "fit {home}/lab.csv -o {tmp}/o.csv": "o.csv must end in .gmm",
    "fit {home}/lab.csv -o {tmp}/no/o.gmm": "o.gmm cannot be written: .*no is not a folder.",
    "fit {home}/lab.csv --label stat -o {tmp}/o.gmm": "no column 'stat'; did you mean 'state'",
    "fit {home}/lab.csv --columns speed,state -o {tmp}/o.gmm": "column 'state' is not made of num",
    "fit {home}/lab.csv --components many -o {tmp}/o.gmm": "n_components must be a positive",
    "fit {home}/lab.csv --components 0 -o {tmp}/o.gmm": "n_components must be a positive integer",
    "fit {home}/lab.csv --label state --components 0 -o {tmp}/o.gmm": "n_components must be a pos",
    "fit {home}/lab.csv --label state --domain state -o {tmp}/o.gmm": "name two different columns",
    "fit {home}/lab.csv --label speed -o {tmp}/o.gmm": (
        "column 'speed' has 90 different values in 90 rows, so it does not hold classes"
    ),
    "fit {tmp}/sites.csv --domain site -o {tmp}/o.gmm": "'a/b', 'a_b'.* same file",
    "fit {home}/lab.csv --missing skip -o {tmp}/o.gmm": "missing must be .*'mixture', 'drop'",
    "fit {home}/lab.csv --seed -1 -o {tmp}/o.gmm": "random_state must be",
    "fit {home}/m.mixda -o {tmp}/o.gmm": "m.mixda is of an unknown kind",
    "fit {home}/lab.csv": "Missing option '--output' / '-o'; see mixda fit --help",
    "fit {home}/lab.csv --lable state -o {tmp}/o.gmm": "No such option.*--lable",
    "adpt": "No such command 'adpt'",
    "adapt {home}/lab.csv --target {home}/plant.csv -o {tmp}/o.mixda": "lab.csv .*--label",
    "adapt {home}/lab.csv --target {home}/no.csv --label state -o {tmp}/o.mixda": "no.csv does not",
    "adapt {home}/lab.csv {home}/lab.csv --target {home}/x.csv --label state -o {tmp}/o.mixda": (
        "two sources are called 'lab'"
    ),
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --method x -o {tmp}/o.mixda": (
        "method must be one of .*'dadil'.*, got 'x'"
    ),
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --scale x -o {tmp}/o.mixda": (
        "scale must be one of"
    ),
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --encoder x -o {tmp}/o.mixda": (
        "encoder must be one of"
    ),
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --encoder lda -o {tmp}/o.mixda": (
        "method 'auto' chooses encoder itself"
    ),
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --scale none -o {tmp}/o.mixda": (
        "method 'auto' chooses scale itself"
    ),
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --components 2 -o o.mixda": (
        "method 'auto' chooses components itself"
    ),
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --set x -o {tmp}/o.mixda": (
        "--set 'x' must be parameter=value"
    ),
    "adapt {home}/all.parquet --label state --domain state --target ok -o {tmp}/o.mixda": (
        "column 'state' is given for the classes and for the domains"
    ),
    "adapt {home}/lab.csv --target {home}/lab.csv --label state -o {tmp}/o.mixda": (
        "there is no source besides the target"
    ),
    "adapt {home}/plant.csv --target {tmp}/plant.csv --label state -o {tmp}/o.mixda": (
        "the target and a source are both called 'plant'"
    ),
    "adapt {tmp}/paths.csv --domain path --target {tmp}/away --label state -o {tmp}/o.mixda": (
        "is a value of column 'path' and also a file or folder here"
    ),
    "adapt {home}/plant.csv {tmp}/one.csv {tmp}/new.csv --domain site --target plant --label state"
    " -o {tmp}/o.mixda": "rows of the target 'plant' are in .*plant.csv and in .*new.csv",
    "adapt {tmp}/dirty.csv {home}/lab.csv --target {home}/plant.csv --label state -o o.mixda": (
        "dirty.csv: column 'heat' is not made of numbers \\('warm' in row 3\\)"
    ),
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --drop hea -o {tmp}/o.mixda": (
        "--drop.*'hea'"
    ),
    "adapt {tmp}/lab.gmm --target {home}/plant.csv --drop heat -o {tmp}/o.mixda": (
        "speed, load, heat.*--drop"
    ),
    "adapt {tmp}/lab.gmm --target {home}/plant.csv --columns heat -o {tmp}/o.mixda": (
        "speed, load, heat.*--columns"
    ),
    "adapt {tmp}/lab.gmm --target {tmp}/wide*.csv --components 2 -o {tmp}/o.mixda": (
        "n_components has no effect"
    ),
    "adapt {tmp}/lab.gmm --target {tmp}/*.gmm -o {tmp}/o.mixda": "a mixture is a whole domain",
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --method source --components 2 "
    "-o {tmp}/o.mixda": "method 'source' has no parameter components",
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --method wbt "
    "--set n_components=2 -o {tmp}/o.mixda": "give components \\(--components\\) instead",
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --method wbt "
    "--set random_state=2 -o {tmp}/o.mixda": "give seed \\(--seed\\) instead",
    "adapt {home}/lab.csv --target {home}/plant.csv --label state --set x=1 -o {tmp}/o.mixda": (
        "has no parameter 'x'; it has"
    ),
    "adapt {home}/lab.csv --target {home}/plant.csv --label state -o {tmp}/o.gmm": (
        "o.gmm must end in .mixda"
    ),
    "adapt {tmp}/lab.gmm --target {home}/plant.csv --method source -o {tmp}/o.mixda": (
        "method 'source' needs the samples of every domain, but 'lab' is a mixture"
    ),
    "adapt {tmp}/lab.gmm --target {home}/plant.csv --encoder lda -o {tmp}/o.mixda": (
        "encoder 'lda' needs the samples of every domain, but 'lab' is a mixture"
    ),
    "adapt {tmp}/plain.gmm --target {home}/plant.csv -o {tmp}/o.mixda": (
        "source 'plain' .*--label"
    ),
    "adapt {tmp}/lab.gmm --target {tmp}/wide.gmm -o {tmp}/o.mixda": "different features .*'extra'",
    "adapt {tmp}/wide.csv --target {home}/plant.csv --label state -o {tmp}/o.mixda": (
        "plant.csv has no column 'extra', which is a feature of the other domains"
    ),
    "adapt {home}/all.parquet --domain site --target mars --label state -o {tmp}/o.mixda": (
        "the target 'mars' is neither a file nor a value of column 'site'"
    ),
    "adapt {tmp}/plant.csv --domain site --target plant --label state -o {tmp}/o.mixda": (
        "there is no source besides the target"
    ),
    "adapt {tmp}/one.csv --target {home}/plant.csv --label state -o {tmp}/o.mixda": (
        "one class only"
    ),
    "predict {home}/lab.csv {home}/lab.csv -o {tmp}/o.csv": "lab.csv is not",
    "predict {tmp}/lab.gmm {home}/lab.csv -o {tmp}/o.csv": "lab.gmm",
    "predict {home}/m.mixda {tmp}/narrow.csv -o {tmp}/o.csv": "narrow.csv has no column 'heat'",
    "predict {home}/m.mixda {tmp}/words.csv -o {tmp}/o.csv": "'heat' .*'hot' in row 1",
    "predict {home}/m.mixda {home}/lab.csv -o {tmp}/o.txt": "o.txt must end in .csv or .parquet",
    "predict {home}/m.mixda {tmp}/plant.csv -o {tmp}/plant.csv": "is the file to predict",
    "predict {home}/m.mixda {home}/lab.csv --keep id -o {tmp}/o.csv": "has no column 'id'",
    "predict {home}/m.mixda {tmp}/wide.csv --keep label -o {tmp}/o.csv": ("column 'label'.*keep"),
    "predict {home}/m.mixda {home}/lab.csv --rows 0 -o {tmp}/o.csv": "Invalid value for '--rows'",
    "report {home}/m.mixda --label state -o {tmp}/o.html": "label 'state' .*--data",
    "report {home}/m.mixda -o {tmp}/o.pdf": "o.pdf must end in .html",
    "info {home}/nowhere.mixda": "nowhere.mixda",
    "info {home}/lab.xlsx": "lab.xlsx does not exist.",
}


@pytest.fixture(scope="module")
def odd(home, tmp_path_factory):
    """Files that go with the mistakes."""
    folder = tmp_path_factory.mktemp("odd")
    lab, plant = make_domain("lab"), make_domain("plant")
    lab.assign(extra=1.0, label="x").to_csv(folder / "wide.csv", index=False)
    lab[["speed", "load"]].to_csv(folder / "narrow.csv", index=False)
    lab.assign(heat="hot").to_csv(folder / "words.csv", index=False)
    lab.assign(state="ok").to_csv(folder / "one.csv", index=False)
    plant.to_csv(folder / "plant.csv", index=False)
    dirty = lab.astype({"heat": object})
    dirty.loc[2, "heat"] = "warm"
    dirty.to_csv(folder / "dirty.csv", index=False)
    lab.assign(site=["a/b", "a_b"] * 45).to_csv(folder / "sites.csv", index=False)
    (folder / "away").mkdir()
    plant.to_csv(folder / "away" / "p.csv", index=False)
    lab.assign(path=[str(folder / "away"), "x"] * 45).to_csv(folder / "paths.csv", index=False)
    plant.replace({"worn": "lost"}).to_csv(folder / "new.csv", index=False)
    for name, label in (("lab", ["--label", "state"]), ("plain", [])):
        out = ["-q", "-o", str(folder / f"{name}.gmm")]
        assert run(["fit", str(home / "lab.csv"), *label, *out]) == 0
    assert run(["fit", str(folder / "wide.csv"), "-q", "-o", str(folder / "wide.gmm")]) == 0
    return folder


@pytest.mark.parametrize("command", ERRORS)
def test_mistakes_get_one_sentence(home, odd, capsys, command):
    output = re.search(r"\{tmp\}/(o\.\w+)", command)
    if output:
        (odd / output[1]).write_bytes(b"old")
    before = sorted(odd.iterdir())
    assert run(command.format(home=home, tmp=odd).split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("mixda: ")
    assert printed.err.count("\n") == 1
    assert re.search(ERRORS[command], printed.err), printed.err
    assert sorted(odd.iterdir()) == before
    if output:
        assert (odd / output[1]).read_bytes() == b"old"


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, np.linalg.LinAlgError])
def test_bug(home, tmp_path, capsys, monkeypatch, kind):
    """Only MixdaError is a mistake of the user; a ValueError of numpy is one of ours."""

    def broken(*_, **__):
        raise kind("the author slept")

    monkeypatch.setattr("mixda.workflow.fit_files", broken)
    assert run(["fit", str(home / "lab.csv"), "-o", str(tmp_path / "o.gmm")]) == 1
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert "the author slept" in printed
    assert "issue tracker" in printed


@pytest.fixture(scope="module")
def victims(home):
    """Good files of every kind, each with the command that reads it."""
    lab, model = make_domain("lab")[["speed", "load", "heat"]], home / "m.mixda"
    lab.to_parquet(home / "v.parquet")
    lab.to_csv(home / "v.csv", index=False)
    np.savez(home / "v.npz", X=lab.to_numpy(), feature_names=np.array(lab.columns, dtype=str))
    assert (
        run(["fit", str(home / "lab.csv"), "--label", "state", "-q", "-o", str(home / "v.gmm")])
        == 0
    )
    plant = str(home / "plant.csv")
    commands = {
        "parquet": ["predict", str(model), "{file}", "-q", "-o", "{out}.csv"],
        "csv": ["predict", str(model), "{file}", "-q", "-o", "{out}.csv"],
        "npz": ["fit", "{file}", "--components", "1", "-q", "-o", "{out}.gmm"],
        "gmm": ["adapt", "{file}", "--target", plant, "--method", "wbt", "-q", "-o", "{out}.mixda"],
        "mixda": ["predict", "{file}", plant, "-q", "-o", "{out}.csv"],
    }
    contents = {
        kind: (home / f"v.{kind}").read_bytes() for kind in ("parquet", "csv", "npz", "gmm")
    }
    return commands, {**contents, "mixda": model.read_bytes()}


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damaged_files_never_crash_or_change_the_output(victims, tmp_path, capsys, data):
    commands, contents = victims
    kind = data.draw(st.sampled_from(sorted(commands)))
    file, out = tmp_path / f"damaged.{kind}", tmp_path / "out"
    file.write_bytes(data.draw(damaged(contents[kind])))
    words = [word.format(file=file, out=out) for word in commands[kind]]
    output = Path(words[-1])
    output.write_bytes(b"old")
    code = run(words)
    printed = capsys.readouterr()
    assert code in (0, 2), printed.err  # 0: the damage is in a place that does not matter
    if code == 2:
        assert printed.err.count("\n") == 1
        assert output.read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} <= {
        *(f"damaged.{name}" for name in commands),
        *(f"out.{name}" for name in ("csv", "gmm", "mixda")),
    }


def test_escape_sequences_are_shown(tmp_path, capsys):
    """Names of columns, classes and domains reach the terminal escaped."""
    rng = np.random.default_rng(0)
    for name, shift in (("a", 0.0), ("b", 1.0)):
        frame = pd.DataFrame({"x\x1b[31m": rng.normal(size=60) + shift})
        frame["y\x1b[2J"] = np.repeat(["up\x1b]0;t\x07", "down"], 30)
        frame.loc[:29, "x\x1b[31m"] += 9.0
        frame.to_csv(tmp_path / f"{name}\x1b[1m.csv", index=False)
    data, goal = (str(tmp_path / f"{name}\x1b[1m.csv") for name in "ab")
    model, gmm, out = (str(tmp_path / name) for name in ("m.mixda", "a.gmm", "o.csv"))
    for command in (
        ["fit", data, "--label", "y\x1b[2J", "-o", gmm],
        ["adapt", data, "--target", goal, "--label", "y\x1b[2J", "--method", "wbt", "-o", model],
        ["predict", model, goal, "-o", out],
        ["info", gmm],
        ["info", model],
        ["info", data],
        ["fit", data, "--label", "z\x1b[2J", "-o", gmm],
    ):
        run(command)
        printed = capsys.readouterr()
        assert "\x1b" not in printed.out + printed.err
        assert r"\x1b" in printed.out + printed.err


def test_safe_csv(home, tmp_path):
    """Text that a spreadsheet would run as a formula gets an apostrophe, numbers do not."""
    frame = make_domain("plant")
    texts = ["=1+1", "+x", "-5.5e3", "@sum", "plain"]
    frame["note to self"] = [texts[k % len(texts)] for k in range(len(frame))]
    frame.to_csv(tmp_path / "in.csv", index=False)
    model, out = tmp_path / "m.mixda", tmp_path / "o.csv"
    assert run(adapt(home, *sources(home), "--method", "source", out=model)) == 0
    command = ["predict", str(model), str(tmp_path / "in.csv"), "--keep", "note to self"]
    for option, shown in (([], texts), (["--safe-csv"], ["'=1+1", "'+x", "-5.5e3", "'@sum"])):
        assert run([*command, *option, "-o", str(out)]) == 0
        kept = pd.read_csv(out, dtype=str)["note to self"].tolist()
        assert kept[: len(shown)] == shown
