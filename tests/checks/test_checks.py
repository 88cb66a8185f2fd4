"""Checks of tables: each silent harm is a finding, and good tables have none that matter."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import mixda
from mixda import MixdaError
from mixda.tables import Column, Columns, open_table, ordinal_levels


def domain(name, n=60, shift=0.0):
    rng = np.random.default_rng(sum(map(ord, name)))
    y = np.arange(n) % 2
    X = 4.0 * y[:, None] + shift + rng.standard_normal((n, 2))
    return pd.DataFrame({"speed": X[:, 0], "load": X[:, 1], "state": np.where(y, "worn", "ok")})


@pytest.fixture
def frames():
    return {name: domain(name, shift=k / 2) for k, name in enumerate("abt")}


@pytest.fixture
def report(tmp_path, frames):
    def run(target="t.csv", label="state", **options):
        for name, frame in frames.items():
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
        sources = [tmp_path / f"{name}.csv" for name in frames if f"{name}.csv" != target]
        return mixda.check(sources, tmp_path / target, label, **options)

    return run


def codes(report, severity=None):
    return {f.code for f in report.findings if severity in (None, f.severity)}


def add(frames, **columns):
    for name, frame in frames.items():
        for column, make in columns.items():
            frame[column] = make(name, len(frame))


def test_clean_tables(report):
    clean = report()
    assert clean.findings == ()
    assert clean.encoding == Columns.of_numbers(["speed", "load"])
    assert clean.left_out == {}
    assert [d["role"] for d in clean.domains] == ["source", "source", "target"]
    assert clean.domains[0]["classes"] == {"ok": 30, "worn": 30}
    assert clean.domains[2]["classes"] is None  # target labels are never read
    assert clean.distances["a"]["t"] == clean.distances["t"]["a"] > 0


RNG = np.random.default_rng(0)
LEFT_OUT = {
    "counter": (lambda name, n: np.arange(n) + 1000, "identifier"),
    "counter with steps": (lambda name, n: -np.cumsum(RNG.integers(1, 9, n)), "identifier"),
    "shuffled numbers": (lambda name, n: RNG.permutation(n), "identifier"),
    "sparse numbers": (lambda name, n: RNG.choice(10**8, n, replace=False), None),
    "patient_id": (lambda name, n: RNG.choice(10**8, n, replace=False), "identifier"),
    "text ids": (lambda name, n: [f"{name}-{k:04d}" for k in RNG.permutation(n)], "identifier"),
    "iso dates": (lambda name, n: pd.date_range("2024-01-01", periods=n).astype(str), "timestamp"),
    "german dates": (lambda name, n: [f"{k % 28 + 1:02d}.03.2024" for k in range(n)], "timestamp"),
    "clock": (lambda name, n: [f"{k % 24:02d}:15" for k in range(n)], "timestamp"),
    "unix time": (lambda name, n: 1_700_000_000 + RNG.integers(0, 9**7, n), "timestamp"),
    "yyyymmdd": (lambda name, n: 20240101 + RNG.integers(0, 28, n), "timestamp"),
    "elapsed time": (lambda name, n: np.repeat(np.arange(n / 2) / 10, 2)[:n], "timestamp"),
    "site code": (lambda name, n: np.full(n, ord(name)), "site-code"),
    "site name": (lambda name, n: np.full(n, f"site {name}"), "site-code"),
    "one text": (lambda name, n: np.full(n, "v1"), "constant"),
    "remarks": (lambda name, n: [f"remark {k}" for k in RNG.integers(0, 45, n)], "many-levels"),
}


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_columns_left_out(report, frames, kind):
    make, code = LEFT_OUT[kind]
    add(frames, **{kind: make})
    found = report()
    assert (kind in found.left_out) == (code is not None)
    assert code is None or code in codes(found)
    if code not in (None, "constant"):
        back = report(columns=["speed", kind])
        assert back.encoding.names == ("speed", kind)


def test_categories(report, frames):
    add(frames, color=lambda name, n: RNG.choice(["red", "blue"], n))
    frames["t"].loc[0, "color"] = "green"  # levels are those of the sources
    frames["a"].loc[1, "color"] = None
    found = report()
    assert found.encoding.columns[-1] == Column("color", "category", ("blue", "red"))
    assert found.encoding.feature_names[-2:] == ("color=blue", "color=red")
    assert found.missing == {"color": {"a": pytest.approx(1 / 60)}}


def test_encoding_of_cells(tmp_path):
    (tmp_path / "a.csv").write_text("c,g,b,x\nred,low,true,1\nnew,high,false,2\nNA,odd,true,\n")
    columns = Columns(
        (
            Column("c", "category", ("blue", "red")),
            Column("g", "ordinal", ("low", "mid", "high")),
            Column("b"),
            Column("x"),
        )
    )
    samples = open_table(tmp_path / "a.csv").read(encoding=columns, missing="mixture")
    nan = np.nan
    expected = [[0, 1, 0, 1, 1], [0, 0, 2, 0, 2], [nan, nan, nan, 1, nan]]
    np.testing.assert_array_equal(samples.X, expected)
    with pytest.raises(MixdaError, match="column 'c' has no value in row 3"):
        open_table(tmp_path / "a.csv").read(encoding=columns)


def test_bad_columns():
    with pytest.raises(MixdaError, match=r"kind.*'date'"):
        Column("x", "date")
    with pytest.raises(MixdaError, match="levels of column 'x'"):
        Column("x", "category", ("a", "a"))
    with pytest.raises(MixdaError, match="'x=a'"):
        Columns((Column("x=a"), Column("x", "category", ("a", "b"))))
    with pytest.raises(MixdaError, match=r"--ordinal.*'grade'"):
        ordinal_levels(["grade"])


def test_ordinal(report, frames):
    add(frames, grade=lambda name, n: RNG.choice(["low", "mid", "high"], n))
    found = report(ordinal={"grade": ["low", "mid", "high"]})
    assert found.encoding.feature_names == ("speed", "load", "grade")
    with pytest.raises(MixdaError, match="'grad'"):
        report(ordinal={"grad": ["low", "high"]})


def test_column_missing_in_a_file(report, frames):
    del frames["t"]["load"]
    found = report()
    assert codes(found, "blocker") == {"missing-column"}
    with pytest.raises(MixdaError, match="has no column 'load'"):
        found.raise_for_blockers()
    assert found.encoding.names == ("speed",)
    assert not report(drop=["load"]).blockers


def test_renamed_column_is_named(report, frames):
    frames["t"] = frames["t"].rename(columns={"load": "Load"})
    assert "'Load'" in report().blockers[0].sentence


def test_type_conflict(report, frames):
    frames["b"]["load"] = "heavy"
    assert codes(report(), "blocker") == {"type-conflict"}


def test_spelling_of_classes(report, frames):
    frames["a"]["state"] = frames["a"]["state"].replace("worn", "Worn ")
    found = report()
    assert codes(found, "blocker") == {"label-spelling"}
    assert "'Worn' and 'worn'" in found.blockers[0].sentence
    assert not report(rename_labels={"Worn": "worn"}).blockers


def test_typing_error(report, frames):
    for frame in frames.values():
        frame["state"] = frame["state"].replace("worn", "defective")
    frames["a"]["state"] = frames["a"]["state"].replace("defective", "defectve")
    assert "label-typo" in codes(report(), "warning")


def test_numbers_against_words(report, frames):
    frames["a"]["state"] = (frames["a"]["state"] == "ok").astype(int)
    assert codes(report(), "blocker") == {"no-shared-class"}


def test_one_source_with_numbers(report, frames):
    frames["c"] = domain("c")
    frames["c"]["state"] = (frames["c"]["state"] == "ok").astype(int)
    found = report()
    assert codes(found, "blocker") == {"no-shared-class"}
    assert "source 'c'" in found.blockers[0].sentence
    assert not report(rename_labels={"0": "worn", "1": "ok"}).blockers
    with pytest.raises(MixdaError, match=r"'oky'.*did you mean 'ok'"):
        report(rename_labels={"oky": "ok"})


def test_unknown_levels(report, frames):
    add(frames, grade=lambda name, n: np.resize(["low", "mid", "high"], n))
    found = report(ordinal={"grade": ["low", "high"]})
    assert codes(found, "blocker") == {"unknown-level"}
    assert "'mid'" in found.blockers[0].sentence
    frames["t"]["grade"] = frames["t"]["grade"].replace("mid", "medium")
    found = next(f for f in report().findings if f.code == "unknown-level")
    assert found.severity == "warning"
    assert "'medium'" in found.sentence


def test_confounded(report, frames):
    frames["a"]["state"], frames["b"]["state"] = "ok", "worn"
    assert codes(report(), "blocker") == {"confounded"}
    frames["b"] = domain("b")
    assert "single-class" in codes(report(), "warning")


def test_one_class(report, frames):
    frames["a"]["state"] = frames["b"]["state"] = "ok"
    assert codes(report(), "blocker") == {"one-class"}


def test_target_classes_are_not_read(report, frames):
    before = report().to_json()
    frames["t"]["state"] = [f"secret {k}" for k in range(60)]
    assert report().to_json() == before
    assert "secret" not in report().to_html()


def test_missing_values(report, frames):
    frames["a"].loc[:1, "speed"] = np.nan
    frames["t"].loc[:50, "load"] = np.nan
    frames["b"].loc[:2, "state"] = None
    found = report()
    assert {"missing-values", "mostly-missing", "unlabeled-rows"} <= codes(found)
    assert found.missing["speed"] == {"a": pytest.approx(2 / 60)}


def test_units(report, frames):
    frames["b"]["load"] = 1000 * (10 + frames["b"]["load"])
    found = report()
    assert "unit-change" in codes(found, "warning")
    assert "'load'" in str(found.findings[0])


def test_extreme_values(report, frames):
    frames["b"].loc[3, "load"] = -9999.0
    assert "extreme-values" in codes(report(), "warning")
    frames["b"].loc[3:12, "load"] = -9999.0  # a mark of missing values
    assert "extreme-values" in codes(report(), "warning")


def test_duplicates(report, frames):
    frames["t"].iloc[:30] = frames["a"].iloc[:30]
    assert "duplicates" in codes(report(), "warning")


def test_small_and_far(report, frames):
    frames["b"] = frames["b"][:6]
    frames["t"]["speed"] += 500
    assert {"few-rows", "far-target"} <= codes(report(), "warning")


def test_label_of_each_file(report, frames, tmp_path):
    frames["b"] = frames["b"].rename(columns={"state": "type"})
    found = report(label=["state", "b.csv:type"])
    assert found.domains[1]["classes"] == {"ok": 30, "worn": 30}
    assert found.findings == ()
    with pytest.raises(MixdaError, match=r"b\.csv has no column 'state'"):
        report()
    with pytest.raises(MixdaError, match=r"'c\.csv'"):
        report(label=["state", "c.csv:type"])
    with pytest.raises(MixdaError, match=r"'state' and 'type'"):
        report(label=["state", "type"])


def test_did_you_mean(report):
    with pytest.raises(MixdaError, match=r"'stat'; did you mean 'state'\?"):
        report(label="stat")
    with pytest.raises(MixdaError, match=r"'sped'.*did you mean 'speed'\?"):
        report(columns=["sped"])
    for option in ({"drop": ["sped"]}, {"ordinal": {"sped": ["low", "high"]}}):
        with pytest.raises(MixdaError, match=r"'sped'.*did you mean 'speed'\?"):
            report(**option)


def test_domains_of_one_file(tmp_path, frames):
    everything = pd.concat([frame.assign(site=name) for name, frame in frames.items()])
    everything.to_parquet(tmp_path / "all.parquet")
    found = mixda.check(tmp_path / "all.parquet", "t", "state", "site")
    assert [(d["domain"], d["role"]) for d in found.domains] == [
        ("a", "source"),
        ("b", "source"),
        ("t", "target"),
    ]
    assert found.domains[2]["classes"] is None
    assert found.findings == ()


def test_json_and_html(report, frames):
    add(frames, **{"<b>": lambda name, n: np.arange(n)})
    found = report()
    assert json.loads(json.dumps(found.to_json()))["findings"][0]["code"] == "identifier"
    assert "&lt;b&gt;" in found.to_html()
    assert "<b>" not in found.to_html()
