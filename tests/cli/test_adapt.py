"""Files in, models and predictions out: the same as in Python, whatever the files look like."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("pyarrow", reason="the command line needs the cli extra")

import mixda
from mixda.cli import run

from .four_domains import SHIFTS, adapt, make_domain, predict, right, sources

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
