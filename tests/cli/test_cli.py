"""The command line as a user meets it: files in, files out, one sentence for every mistake."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("pyarrow", reason="the command line needs the cli extra")

import mixda
from mixda.cli import run

from ..strategies import damaged

GOLDEN = Path(__file__).parent / "golden"
COMMANDS = [
    *("", "check", "fit", "adapt", "predict", "report", "label", "explain", "monitor", "update"),
    *("info", "demo"),
]
CENTERS = {"ok": (0.0, 0.0, 0.0), "worn": (4.0, 0.0, 1.0), "broken": (0.0, 4.0, -1.0)}
SHIFTS = {"lab": 0.0, "north": 0.5, "south": -0.5, "plant": 1.2}


def make_domain(name, n=90):
    """Three classes around CENTERS, all moved by the domain's shift."""
    rng = np.random.default_rng(len(name) + ord(name[0]))
    state = np.repeat(list(CENTERS), n // 3)
    X = np.array([CENTERS[s] for s in state]) + SHIFTS[name] + 0.5 * rng.normal(size=(n, 3))
    frame = pd.DataFrame(X, columns=["speed", "load", "heat"]).assign(state=state, site=name)
    return frame.sample(frac=1.0, random_state=1, ignore_index=True)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the files of four domains and a model, to be read only."""
    folder = tmp_path_factory.mktemp("home")
    for name in SHIFTS:
        make_domain(name).to_csv(folder / f"{name}.csv", index=False)
    everything = pd.concat([make_domain(name) for name in SHIFTS])
    everything.to_parquet(folder / "all.parquet")
    assert run(adapt(folder, *sources(folder), "--method", "wbt", out=folder / "m.mixda")) == 0
    return folder


def sources(folder, suffix=".csv"):
    return [folder / f"{name}{suffix}" for name in ("lab", "north", "south")]


def adapt(folder, *arguments, target="plant.csv", out):
    parts = [*arguments, "--target", folder / target, "--label", "state", "-q", "-o", out]
    return ["adapt", *map(str, parts)]


def predict(folder, data, out, *more, model="m.mixda"):
    model = folder / model
    assert run([*map(str, ("predict", model, data, "-q", "-o", out, *more))]) == 0
    return pd.read_csv(out) if out.suffix == ".csv" else pd.read_parquet(out)


def right(predicted, name="plant"):
    return np.mean(predicted["label"] == make_domain(name)["state"])


METHODS = ["dadil", "wbt", "otda"]


def saved_arrays(model, path):
    """Arrays of the file of a model, by name, but for the clock: the header holds the date."""
    model.save(path, allow_exposed_rows=True)
    with np.load(path) as archive:
        clock = {"header", "dictionary.history.seconds"}
        return {name: archive[name] for name in archive.files if name not in clock}


def assert_same(model, other, folder):
    X = make_domain("plant")[["speed", "load", "heat"]].to_numpy()
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    if model.reference is not None:  # the command line adds the summary that monitor needs
        other = other.with_reference(X)
    arrays = saved_arrays(model, folder / "a.mixda"), saved_arrays(other, folder / "b.mixda")
    assert arrays[0].keys() == arrays[1].keys()
    for name in arrays[0]:
        np.testing.assert_array_equal(arrays[0][name], arrays[1][name], err_msg=name)


@pytest.mark.parametrize("method", METHODS)
def test_adapt_is_fit(home, tmp_path, method):
    """Files on the command line and arrays in Python: one pipeline, the same bits."""
    assert run(adapt(home, *sources(home), "--method", method, out=tmp_path / "m.mixda")) == 0
    frame = pd.concat([pd.read_csv(home / f"{name}.csv") for name in SHIFTS])
    ids = frame["site"].map({"lab": 0, "north": 1, "south": 2, "plant": -1})
    estimator = mixda.estimators.COMMANDS[method].load()(random_state=0)
    estimator.fit(frame[["speed", "load", "heat"]], frame["state"], sample_domain=ids)
    model = mixda.load(tmp_path / "m.mixda")
    assert_same(model, estimator.to_model(), tmp_path)
    used = estimator.to_model().settings["parameters"]
    assert model.settings["parameters"] == {**used, "verbose": False}


@pytest.mark.parametrize("method", METHODS)
def test_adapt_is_fit_mixtures(home, tmp_path, method):
    """With some .gmm files, the rest become mixtures by the estimator's own method."""
    for name in SHIFTS:
        label = [] if name == "plant" else ["--label", "state"]
        data, out = str(home / f"{name}.csv"), str(tmp_path / f"{name}.gmm")
        assert run(["fit", data, *label, "--drop", "site", "-q", "-o", out]) == 0
    estimator = mixda.estimators.COMMANDS[method].load()(random_state=0)
    given = {name: mixda.Mixture.load(tmp_path / f"{name}.gmm") for name in SHIFTS}
    fitted = {"lab": given["lab"]}
    names = ["speed", "load", "heat"]
    for name in ("north", "south", "plant"):
        frame = pd.read_csv(home / f"{name}.csv")
        y = None if name == "plant" else frame["state"].to_numpy()
        mixture = estimator.domain_mixture(frame[names].to_numpy(), y, list(fitted.values()))
        fitted[name] = replace(mixture, feature_names=names)
    cases = {
        "given": (sources(tmp_path, ".gmm"), tmp_path / "plant.gmm", given),
        "mixed": ([tmp_path / "lab.gmm", *sources(home)[1:]], home / "plant.csv", fitted),
    }
    for name, (parts, target, mixtures) in cases.items():
        out = tmp_path / f"{name}.mixda"
        drop = ["--drop", "site"] if name == "mixed" else []
        assert run(adapt(home, *parts, "--method", method, *drop, target=target, out=out)) == 0
        *inputs, goal = mixtures.values()
        expected = estimator.fit_mixtures(inputs, goal).to_model()
        assert_same(mixda.load(out), expected, tmp_path)
        predicted = predict(tmp_path, home / "plant.csv", tmp_path / "o.csv", model=out.name)
        assert right(predicted) > 0.95


@pytest.mark.parametrize("method", ["source", "wjdot", "jcpot", "sample-wbt"])
def test_every_method_takes_data_files(home, tmp_path, method):
    model = tmp_path / "m.mixda"
    assert run(adapt(home, *sources(home), "--method", method, out=model)) == 0
    assert right(predict(tmp_path, home / "plant.csv", tmp_path / "o.csv")) > 0.8


@pytest.mark.parametrize("encoder", ["lda", "mlp"])
def test_encoders(home, tmp_path, encoder):
    model = tmp_path / "m.mixda"
    more = ("--method", "dadil", "--encoder", encoder)
    assert run(adapt(home, *sources(home), *more, out=model)) == 0
    assert right(predict(tmp_path, home / "plant.csv", tmp_path / "o.csv")) > 0.8


def test_auto_from_data_to_report(home, tmp_path, capsys, plain):
    """What is chosen and why is told by every command, and is in the file and on the page."""
    model, page = tmp_path / "m.mixda", tmp_path / "r.html"
    assert run([word for word in adapt(home, *sources(home), out=model) if word != "-q"]) == 0
    trust = mixda.load(model).trust
    assert mixda.load(model).method == "AutoMSDA"
    assert trust.low <= trust.accuracy <= trust.high
    assert sum(c.get("reference", False) for c in trust.candidates) == 1
    verdict = str(trust)
    told = [capsys.readouterr().out]
    data, out = str(home / "plant.csv"), tmp_path / "o.csv"
    for command in (
        ["predict", str(model), data, "-o", str(out)],
        ["report", str(model), "-o", str(page)],
    ):
        assert run(command) == 0
        told.append(capsys.readouterr().out)
    for text in told:
        assert verdict in text
    assert run(["info", str(model), "--json"]) == 0
    assert trust.reason in json.loads(capsys.readouterr().out)["trust"]
    assert "Estimated accuracy" in page.read_text(encoding="utf-8")
    assert right(pd.read_csv(out)) > 0.95


def test_a_declined_adaptation_is_told_by_every_command(home, tmp_path, capsys, plain):
    reason = "Adaptation was declined: it was not better on held-out sources."
    trust = {"accuracy": None, "low": None, "high": None, "declined": True, "reason": reason}
    model, page = tmp_path / "m.mixda", tmp_path / "r.html"
    replace(mixda.AdaptedModel.load(home / "m.mixda"), trust=trust).save(
        model, allow_exposed_rows=True
    )
    for command in (
        ["predict", str(model), str(home / "plant.csv"), "-o", str(tmp_path / "o.csv")],
        ["report", str(model), "-o", str(page)],
        ["info", str(model)],
    ):
        assert run(command) == 0
        assert reason in " ".join(capsys.readouterr().out.split())
    assert reason in page.read_text(encoding="utf-8")


def test_auto_with_a_mixture_is_gmm_dadil_and_says_so(home, tmp_path, capsys, plain):
    lab = tmp_path / "lab.gmm"
    assert run([*f"fit {home}/lab.csv --label state --drop site -q -o {lab}".split()]) == 0
    words = adapt(home, lab, *sources(home)[1:], "--drop", "site", out=tmp_path / "m.mixda")
    assert run([word for word in words if word != "-q"]) == 0
    assert "auto is GMMDaDiL here" in capsys.readouterr().out
    assert mixda.load(tmp_path / "m.mixda").method == "GMMDaDiL"
    assert mixda.load(tmp_path / "m.mixda").trust is None


def test_domains_in_one_file(home, tmp_path):
    """The same three sources and target as values of a column: the same predictions."""
    model = tmp_path / "m.mixda"
    parts = [home / "all.parquet", "--domain", "site", "--target", "plant", "--label", "state"]
    assert run(["adapt", *map(str, parts), "--method", "wbt", "-q", "-o", str(model)]) == 0
    alone = predict(home, home / "plant.csv", tmp_path / "a.csv")
    together = predict(tmp_path, home / "plant.csv", tmp_path / "b.csv")
    pd.testing.assert_frame_equal(alone, together)


def test_labels_of_the_target_are_never_read(home, tmp_path):
    frame = make_domain("plant").assign(state="nonsense")
    frame.loc[3, "state"] = None
    frame.to_csv(tmp_path / "plant.csv", index=False)
    model = tmp_path / "m.mixda"
    assert run(adapt(tmp_path, *sources(home), "--method", "wbt", out=model)) == 0
    same = predict(tmp_path, home / "plant.csv", tmp_path / "a.csv")
    pd.testing.assert_frame_equal(same, predict(home, home / "plant.csv", tmp_path / "b.csv"))
    frame = pd.concat([*(make_domain(n) for n in ("lab", "north", "south")), frame])
    frame.to_csv(tmp_path / "all.csv", index=False)
    parts = [tmp_path / "all.csv", "--domain", "site", "--target", "plant", "--label", "state"]
    assert run(["adapt", *map(str, parts), "--method", "wbt", "-q", "-o", str(model)]) == 0
    pd.testing.assert_frame_equal(
        same, predict(tmp_path, home / "plant.csv", tmp_path / "a.csv"), rtol=1e-9
    )  # rows of a domain come in the same order, whatever stands between them


def test_columns_in_another_order_among_others_of_another_type(home, tmp_path):
    expected = predict(home, home / "plant.csv", tmp_path / "a.csv")
    frame = make_domain("plant")
    frame["note"], frame["number"] = "text", 7
    frame = frame[["note", "heat", "state", "speed", "number", "load", "site"]]
    frame.to_parquet(tmp_path / "p.parquet")
    frame.to_csv(tmp_path / "p.csv", sep=";", decimal=",", encoding="utf-16", index=False)
    for name in ("p.parquet", "p.csv"):
        other = predict(home, tmp_path / name, tmp_path / "b.csv")
        assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
        pd.testing.assert_frame_equal(expected, other)
    short = frame.astype({"heat": "float32", "speed": "float32", "load": "float32"})
    short.to_parquet(tmp_path / "short.parquet")
    other = predict(home, tmp_path / "short.parquet", tmp_path / "b.csv")
    assert other["label"].tolist() == expected["label"].tolist()


def test_in_pieces_or_at_once(home, tmp_path):
    whole = predict(home, home / "all.parquet", tmp_path / "a.parquet")
    pieces = predict(home, home / "all.parquet", tmp_path / "b.parquet", "--rows", "7")
    assert len(whole) == 4 * 90
    # products over blocks of other sizes may differ in the last bit
    pd.testing.assert_frame_equal(whole, pieces, rtol=1e-12)


def test_what_a_prediction_holds(home, tmp_path):
    frame = make_domain("plant").assign(serial=[f"{k:03d}" for k in range(90)])
    frame.loc[2, "heat"], frame.loc[4, "load"] = np.nan, np.inf
    frame.loc[6, ["speed", "load"]] = 1e4
    frame.to_csv(tmp_path / "new.csv", index=False)
    more = ["--keep", "serial,site"]
    filled = predict(home, tmp_path / "new.csv", tmp_path / "o.csv", *more)
    assert filled["label"].isna().sum() == 1
    assert filled["note"][2] == "no value in heat"
    more += ["--missing", "drop"]
    out = predict(home, tmp_path / "new.csv", tmp_path / "o.csv", *more)
    names = ["serial", "site", "label", "confidence", "far", "note", "p_broken", "p_ok", "p_worn"]
    assert list(out.columns) == names
    assert '"002","plant",,,,"no value in heat",,,\n' in (tmp_path / "o.csv").read_text()
    assert out["note"].dropna().to_dict() == {2: "no value in heat", 4: "no usable value in load"}
    assert out["label"].isna().sum() == 2
    usable = out.drop(index=[2, 4])
    np.testing.assert_allclose(usable[["p_broken", "p_ok", "p_worn"]].sum(axis=1), 1.0)
    np.testing.assert_array_equal(
        usable["confidence"], usable[["p_broken", "p_ok", "p_worn"]].max(axis=1)
    )
    assert bool(usable["far"][6]) is True
    assert usable["far"].sum() <= 3  # one in a thousand by design, were the mixtures exact


def test_mixtures_of_each_domain(home, tmp_path, capsys):
    parts = ["fit", str(home / "all.parquet"), "--label", "state", "--domain", "site", "--json"]
    assert run([*parts, "-o", str(tmp_path / "m.gmm")]) == 0
    written = json.loads(capsys.readouterr().out)["written"]
    assert [Path(row["file"]).name for row in written] == [
        f"m-{name}.gmm" for name in sorted(SHIFTS)
    ]
    assert run([*parts, "-q", "-o", str(tmp_path / "{domain}.gmm")]) == 0
    assert capsys.readouterr().out == ""
    alone = tmp_path / "alone.gmm"
    data = str(home / "lab.csv")
    assert run(["fit", data, "--label", "state", "--drop", "site", "-q", "-o", str(alone)]) == 0
    assert mixda.Mixture.load(alone) == mixda.Mixture.load(tmp_path / "lab.gmm")


def test_units_do_not_matter_where_they_differ(tmp_path):
    """Another unit of a feature: the same predictions, as the fit standardizes mixed units."""
    for unit, factor in (("a", 1e6), ("b", 1e9)):
        (tmp_path / unit).mkdir()
        for name in SHIFTS:
            frame = make_domain(name).drop(columns="site")
            frame["speed"] *= factor
            frame.to_csv(tmp_path / unit / f"{name}.csv", index=False)
        model = tmp_path / unit / "m.mixda"
        parts = sources(tmp_path / unit)
        assert run(adapt(tmp_path / unit, *parts, "--method", "wbt", out=model)) == 0
    a = predict(tmp_path / "a", tmp_path / "a" / "plant.csv", tmp_path / "a.csv")
    b = predict(tmp_path / "b", tmp_path / "b" / "plant.csv", tmp_path / "b.csv")
    assert right(a) > 0.95
    assert a["label"].tolist() == b["label"].tolist()


def test_report_with_labels(home, tmp_path, capsys):
    page = tmp_path / "r.html"
    data = ["--data", str(home / "plant.csv"), "--label", "state"]
    assert run(["report", str(home / "m.mixda"), *data, "--json", "-o", str(page)]) == 0
    assert json.loads(capsys.readouterr().out) == {"written": str(page)}
    assert "<html" in page.read_text(encoding="utf-8")


def test_report_with_a_label_that_the_model_does_not_know(home, tmp_path):
    make_domain("plant").replace({"worn": "lost"}).to_csv(tmp_path / "new.csv", index=False)
    page = tmp_path / "r.html"
    data = ["--data", str(tmp_path / "new.csv"), "--label", "state"]
    assert run(["report", str(home / "m.mixda"), *data, "-q", "-o", str(page)]) == 0
    assert "lost" in page.read_text(encoding="utf-8")


def test_integer_classes_of_one_file_and_words_of_another(tmp_path):
    for name in SHIFTS:
        frame = make_domain(name).drop(columns="site")
        codes = {"ok": "1", "worn": "2", "broken": "broken" if name == "lab" else "1"}
        frame["state"] = frame["state"].map(codes)
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    for method in ("wbt", "source"):
        model = tmp_path / "m.mixda"
        assert run(adapt(tmp_path, *sources(tmp_path), "--method", method, out=model)) == 0
        assert mixda.AdaptedModel.load(model).classes.tolist() == ["1", "2", "broken"]


@pytest.mark.parametrize("where", ["{home}/sites/*.csv", "{home}/sites"])
def test_the_target_among_the_sources_is_no_source(home, tmp_path, capsys, where):
    """The labels of the target must not be learned, though its file matches the pattern."""
    folder = tmp_path / "sites"
    folder.mkdir()
    for name in ("lab", "north", "plant"):
        make_domain(name).drop(columns="site").to_csv(folder / f"{name}.csv", index=False)
    words = adapt(
        folder, where.format(home=tmp_path), "--method", "source", out=tmp_path / "m.mixda"
    )
    assert run([word for word in words if word != "-q"]) == 0
    assert "plant.csv is the target, so it is not used as a source." in capsys.readouterr().err
    model = mixda.AdaptedModel.load(tmp_path / "m.mixda")
    rows = {domain.name: domain.n_samples for domain in model.sources}
    assert rows == ({"sites": 180} if where.endswith("sites") else {"lab": 90, "north": 90})


def test_a_pattern_is_a_target(home, tmp_path):
    for name in ("a", "b"):
        make_domain("plant").to_csv(tmp_path / f"p-{name}.csv", index=False)
    for more in ([], ["--domain", "site"]):
        target = tmp_path / "p-*.csv"
        words = adapt(home, *sources(home), "--method", "wbt", *more, target=target, out="m.mixda")
        assert run([*words[:-1], str(tmp_path / "m.mixda")]) == 0
        found = mixda.AdaptedModel.load(tmp_path / "m.mixda").target
        assert (found.name, found.n_samples) == ("p-a", 180)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_feature_is_kept_as_it_is_written(home, tmp_path, suffix):
    frame = make_domain("plant").round(2).astype({"heat": int}).assign(serial=range(90))
    expected = frame.drop(columns=["speed", "heat"]).assign(
        speed=frame["speed"], heat=frame["heat"]
    )
    data, out = tmp_path / f"p{suffix}", tmp_path / f"o{suffix}"
    if suffix == ".csv":
        frame.to_csv(data, index=False)
    else:
        frame.to_parquet(data)
    plain = predict(home, data, tmp_path / f"a{suffix}")
    found = predict(home, data, out, "--keep", "serial,speed,heat", "--rows", "7")
    pd.testing.assert_frame_equal(found[["speed", "heat"]], expected[["speed", "heat"]])
    assert found["label"].tolist() == plain["label"].tolist()
    if suffix == ".csv":
        assert out.read_text().splitlines()[1].startswith(f'"0","{frame["speed"][0]}"')


def test_classes_with_zeros_in_front_are_words(tmp_path):
    codes = {"ok": "001", "worn": "002", "broken": "003"}
    for name in SHIFTS:
        frame = make_domain(name).drop(columns="site")
        other = {"003": "x03"} if name == "lab" else {}
        frame["state"] = frame["state"].map(codes).replace(other)
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    for method in ("wbt", "source"):
        model = tmp_path / "m.mixda"
        assert run(adapt(tmp_path, *sources(tmp_path), "--method", method, out=model)) == 0
        classes = mixda.AdaptedModel.load(model).classes.tolist()
        assert classes == ["001", "002", "003", "x03"]


def test_what_was_used_is_recorded(home, tmp_path):
    model = tmp_path / "m.mixda"
    more = ["--method", "wbt", "--components", "1", "--set", "n_init=2", "--seed", "7"]
    assert run(adapt(home, *sources(home), *more, out=model)) == 0
    found = mixda.AdaptedModel.load(model)
    used = found.settings["parameters"]
    assert [domain.mixture.n_components for domain in found.sources] == [3, 3, 3]
    assert (used["n_components"], used["n_init"], used["random_state"]) == (1, 2, 7)
    assert used["target_components"] is None
    assert found.target.mixture.n_components == 3  # as many as the largest source has


def test_notes(home, tmp_path, capsys):
    """Rows left out and columns that look like ids are told, also to scripts."""
    frame = make_domain("lab").assign(serial=range(1000, 1090))
    frame.loc[[4, 7], "speed"] = np.nan
    frame.to_csv(tmp_path / "lab.csv", index=False)
    data, out = str(tmp_path / "lab.csv"), str(tmp_path / "o.gmm")
    words = ["fit", data, "--missing", "drop", "-o", out]
    dropped = f"rows left out because a value is missing: 2 of {data}."
    assert run([*words, "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["notes"][0] == dropped
    assert f"mixda: note: {dropped}\n" in printed.err
    assert "serial (identifier)" in printed.err
    assert run([*words, "--n-jobs", "1"]) == 0
    assert f"mixda: note: {dropped}\n" in capsys.readouterr().err
    assert run([*words, "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert run([*words, "--drop", "serial"]) == 0
    assert "serial" not in capsys.readouterr().err


def test_the_domain_in_the_name_of_the_output(home, tmp_path):
    assert run(["fit", str(home / "lab.csv"), "-q", "-o", str(tmp_path / "{domain}.gmm")]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["lab.gmm"]


def test_one_row(home, tmp_path, capsys):
    frame = make_domain("plant")[:1].assign(heat=1e4)
    frame.to_csv(tmp_path / "far.csv", index=False)
    frame.assign(heat=None).to_csv(tmp_path / "hole.csv", index=False)
    for name, sentence in (("far", "1 row is an outlier"), ("hole", "1 row has missing values")):
        words = [home / "m.mixda", tmp_path / f"{name}.csv", "-o", tmp_path / "o.csv"]
        assert run(["predict", *map(str, words)]) == 0
        assert sentence in capsys.readouterr().out


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


@pytest.fixture
def plain(monkeypatch):
    for name, value in (("COLUMNS", "100"), ("TERM", "dumb"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)


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


# --- hostile names ---------------------------------------------------------------------------


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
