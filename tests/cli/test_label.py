"""Rows to label next, and a few labels of the target, from the command line."""

import numpy as np
import pandas as pd
import pytest

from mixda import AdaptedModel, MixdaError
from mixda.cli import run
from mixda.selection import suggest_rows
from mixda.workflow import label_file

CLASSES = np.array(["ok", "worn"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two sources, and a target without labels (t.csv) and with all of them (truth.csv)."""
    place = tmp_path_factory.mktemp("label")
    rng = np.random.default_rng(0)
    for name, shift in {"a": 0.0, "b": 0.5, "t": 1.0}.items():
        y = rng.integers(0, 2, 80)
        X = rng.normal(size=(80, 2)) + 2.5 * y[:, None] + shift
        X[::9, 1] = np.nan
        frame = pd.DataFrame(X, columns=["speed", "load"]).assign(kind=rng.choice(["x", "y"], 80))
        frame["serial"] = np.arange(80) + 100
        truth = frame.assign(state=CLASSES[y])
        truth.to_csv(place / ("truth.csv" if name == "t" else f"{name}.csv"), index=False)
        frame.to_csv(place / f"{name}.csv", index=False) if name == "t" else None
    words = adapt(place, "--method", "source")
    assert run(words) == 0
    return place


def adapt(folder, *options, target="t.csv", out="m.mixda"):
    files = [str(folder / name) for name in ("a.csv", "b.csv")]
    task = ["--target", str(folder / target), "--label", "state", "-q", "-o", str(folder / out)]
    return ["adapt", *files, *task, *options]


def fill(folder, name, n=6):
    """Fill in the first labels of a file, as a person would."""
    frame, truth = pd.read_csv(folder / name), pd.read_csv(folder / "truth.csv")
    frame["label"] = truth["state"].to_numpy()[frame["row"] - 1]
    frame.loc[n:, "label"] = None
    frame.to_csv(folder / name, index=False)


def test_file_to_fill_in(folder):
    model, out = str(folder / "m.mixda"), folder / "to_label.csv"
    assert run(["label", model, str(folder / "t.csv"), "-n", "8", "-q", "-o", str(out)]) == 0
    frame, data = pd.read_csv(out), pd.read_csv(folder / "t.csv")
    assert list(frame.columns) == ["row", "label", "speed", "load", "kind", "serial"]
    assert frame["label"].isna().all()
    assert frame["row"].is_unique
    assert len(frame) == 8
    pd.testing.assert_frame_equal(
        frame.drop(columns=["row", "label"]), data.iloc[frame["row"] - 1].reset_index(drop=True)
    )
    confidence = AdaptedModel.load(model).predict_proba(data).max(axis=1)
    assert confidence[frame["row"] - 1].mean() < confidence.mean() - 0.1


def test_labels_go_back(folder):
    model = str(folder / "m.mixda")
    label_file(AdaptedModel.load(model), folder / "t.csv", folder / "filled.csv", n=8)
    fill(folder, "filled.csv")
    few = ["--set", "max_rows=30", "--set", "max_folds=1", "--target-labels"]
    assert run(adapt(folder, *few, str(folder / "filled.csv"), out="few.mixda")) == 0
    trained = AdaptedModel.load(folder / "few.mixda")
    assert trained.trust.n_labels == 6
    assert "6 target labels" in trained.trust.sentence()
    assert trained.columns.names == ("speed", "load", "kind")
    # a second round copies the six labels and suggests other rows
    known = str(folder / "filled.csv")
    assert label_file(trained, folder / "t.csv", folder / "next.csv", n=5, known=known) == 5
    frame = pd.read_csv(folder / "next.csv")
    assert frame["label"].notna().tolist() == [True] * 6 + [False] * 5
    assert frame["row"].is_unique


def test_labels_of_a_column(folder):
    truth = pd.read_csv(folder / "truth.csv")
    truth["seen"] = truth["state"].where(truth.index % 20 == 0)
    truth.to_csv(folder / "seen.csv", index=False)
    few = ["--set", "max_rows=30", "--set", "max_folds=1", "--target-labels", "seen"]
    assert run(adapt(folder, *few, target="seen.csv", out="seen.mixda")) == 0
    trained = AdaptedModel.load(folder / "seen.mixda")
    assert trained.trust.n_labels == 4
    assert "seen" not in trained.columns.names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="row"), "no column 'row'"),
        (lambda frame: frame.assign(label=None), "no label for any row"),
        (lambda frame: frame.assign(row=frame["row"] + 1000), "row 10"),
        (lambda frame: frame.assign(row=frame["row"].iloc[0]), "twice"),
        (lambda frame: frame.assign(row=frame["row"] / 2 + 0.3), "'row' must"),
        (lambda frame: frame.assign(speed=frame["speed"] + 9, serial=0), "not the row"),
        (lambda frame: frame.assign(label="borken"), "'borken'"),
    ],
)
def test_bad_files(folder, capsys, change, message):
    label_file(AdaptedModel.load(folder / "m.mixda"), folder / "t.csv", folder / "bad.csv", n=8)
    fill(folder, "bad.csv")
    change(pd.read_csv(folder / "bad.csv")).to_csv(folder / "bad.csv", index=False)
    few = ["--set", "max_rows=30", "--set", "max_folds=1", "--target-labels"]
    assert run(adapt(folder, *few, str(folder / "bad.csv"), out="bad.mixda")) == 2
    printed = capsys.readouterr().err.strip().splitlines()
    assert message in printed[-1]
    assert not (folder / "bad.mixda").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target-labels", "stat", "--method", "source"], "did you mean 'state'"),
        (["--target-labels", "state", "--method", "dadil"], "method 'dadil'"),
        (["--set", "target_labels=use"], "--target-labels"),
    ],
)
def test_mistakes(folder, capsys, options, message):
    assert run(adapt(folder, *options, target="truth.csv", out="bad.mixda")) == 2
    assert message in capsys.readouterr().err


def test_nothing_left_to_label(folder):
    model = AdaptedModel.load(folder / "m.mixda")
    with pytest.raises(MixdaError, match="all rows"):
        label_file(model, folder / "truth.csv", folder / "x.csv", known="state")
    with pytest.raises(MixdaError, match="choose another name"):
        label_file(model, folder / "t.csv", folder / "t.csv")


def test_equal_rows_do_not_run_out(folder):
    model = AdaptedModel.load(folder / "m.mixda")
    frame = pd.read_csv(folder / "t.csv").iloc[[3] * 10]
    assert sorted(suggest_rows(model, frame, 20)) == list(range(10))
