"""What a cell learns from: folds, features, own data, and no target label before the score."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mixda import benchmark
from mixda.benchmark import _features, _worker
from mixda.benchmark._entries import SHALLOW
from mixda.benchmark._features import make_features, read_labels, read_task, write_features
from mixda.benchmark._plan import check_targets
from mixda.benchmark._suites import find_suite, make_folds
from mixda.benchmark._worker import predict_cell
from mixda.datasets import DomainDataset

from .quick_cells import SHORT, cell, small_toy


def test_folds_keep_blocks_whole_and_cover_everything():
    block = np.repeat([3, 1, 4, 0, 5, 9, 2, 6, 7], 4)
    folds = make_folds(len(block), block)
    assert all(len(set(folds[block == b])) == 1 for b in set(block))
    assert sorted(np.bincount(folds)) == [4, 8, 8, 8, 8]
    order = [folds[block == b][0] for b in sorted(set(block))]
    assert order == sorted(order)  # neighboring blocks (time) stay neighbors
    chance = make_folds(1000, None)
    assert set(np.bincount(chance)) == {200}
    assert (chance == make_folds(1000, None)).all()


def test_task_of_a_seed_holds_out_its_fold(tmp_path):
    data = small_toy()
    write_features(tmp_path / "f.npz", make_features(data, "target", "raw"))
    seen = []
    for seed in range(5):
        task = read_task(tmp_path / "f.npz", seed)
        adapt, test = read_labels(tmp_path / "f.npz", seed)
        is_target = task.sample_domain < 0
        assert set(task.y[is_target]) == {-1}
        assert len(adapt) == is_target.sum() == 48
        assert len(test) == len(task.X_test) == 12
        assert not (task.X[:, None] == task.X_test).all(axis=2).any()
        seen.append(task.X_test)
    held_out = np.concatenate(seen)
    expected = data.samples_of("target")[0].astype(np.float32)
    assert sorted(map(tuple, held_out)) == sorted(map(tuple, expected.astype(float)))
    assert (read_task(tmp_path / "f.npz", 7).X_test == seen[2]).all()


@pytest.mark.parametrize("features", benchmark.FEATURES)
def test_features_do_not_depend_on_target_labels(features, monkeypatch):
    if features == "fcn":
        pytest.importorskip("torch")
        monkeypatch.setattr(_features, "FCN_EPOCHS", 1)
    data = series() if features in _features._OF_SERIES else small_toy()
    target = data.domain_names[-1]
    poisoned = np.where(data.domain == data.domain.max(), 1 - data.y, data.y)
    made = make_features(data, target, features)
    other = make_features(replace(data, y=poisoned), target, features)
    for name in ("Z", "y", "fold"):
        np.testing.assert_array_equal(made[name], other[name])
    assert (made["target_labels"] != other["target_labels"]).all()


@pytest.mark.parametrize("method", SHALLOW)
def test_labels_of_the_target_are_read_after_the_prediction(method, tmp_path, monkeypatch):
    """What a method is given holds no target label, and the file of labels is opened too late.

    Only the upper bound asks for the labels of the folds adapted to, which is its purpose.
    """
    path = tmp_path / "f.npz"
    write_features(path, make_features(small_toy(), "target", "raw"))
    events = []

    def predict(given, task, oracle=None):
        assert set(task.y[task.sample_domain < 0]) == {-1}
        assert (oracle is None) == (method != "TargetOnly")
        events.append("predict")
        found = predict_cell(given, task, oracle)
        events.append("predicted")
        return found

    def read(*arguments):
        events.append("read")
        return read_labels(*arguments)

    monkeypatch.setattr(_worker, "predict_cell", predict)
    monkeypatch.setattr(_worker, "read_labels", read)
    (tmp_path / "cells").mkdir()
    given = cell(method, settings=SHORT.get(method, {}))
    assert _worker.run_cell(tmp_path, given, path, {}) is None
    first = ["read"] if method == "TargetOnly" else []
    assert events == [*first, "predict", "predicted", "read"]


@pytest.mark.parametrize("method", [name for name in SHALLOW if name != "TargetOnly"])
def test_garbage_as_labels_of_the_target_changes_nothing(method, tmp_path):
    """Rows of the target may hold any label in y: a method that reads one would fail or differ."""
    write_features(tmp_path / "f.npz", make_features(small_toy(), "target", "raw"))
    task = read_task(tmp_path / "f.npz", 0)
    garbage = np.where(task.sample_domain < 0, 12345, task.y)
    given = cell(method, settings=SHORT.get(method, {}))
    clean, _ = predict_cell(given, task)
    other, _ = predict_cell(given, replace(task, y=garbage))
    assert clean.keys() == other.keys()
    for name, predicted in clean.items():
        np.testing.assert_array_equal(predicted, other[name])


def series(n: int = 40) -> DomainDataset:
    """Two domains of series with three variables: one is constant, the second domain is wider."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n, 3, 20)) * [[1.0], [5.0], [0.0]] + [[0.0], [100.0], [7.0]]
    domain = np.repeat([0, 1], n // 2)
    values[domain == 1] *= 3.0
    names = ["a", "b"], ["x", "y"]
    return DomainDataset(
        values.reshape(n, -1), np.arange(n) % 2, domain, *names, sample_shape=(3, 20)
    )


def test_series_features_are_standardized_per_domain():
    data = series()
    Z = make_features(data, "b", "statistics")["Z"]
    assert Z.shape == (40, 3 * 7)  # ten frequencies have five bands
    for k in (0, 1):
        np.testing.assert_allclose(Z[data.domain == k].mean(axis=0), 0, atol=1e-5)
    # the second domain is the first one's distribution, three times as wide
    np.testing.assert_allclose(Z[data.domain == 1].std(axis=0)[:2], 1, atol=1e-5)
    with pytest.raises(ValueError, match=r"features=.*time series"):
        make_features(small_toy(), "target", "statistics")


def write_own(folder: Path, names=("north", "south"), more: str = "") -> Path:
    data = small_toy(30)
    folder.mkdir(exist_ok=True)
    for k, name in enumerate(names):
        X, y = data.X[data.domain == k], data.y[data.domain == k]
        rows = [f"{a},{b},{i},class {c}" for i, ((a, b), c) in enumerate(zip(X, y, strict=True))]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,id,state", *rows]) + "\n" + more)
    return folder


def test_own_data_are_a_suite(tmp_path, monkeypatch, capsys):
    """In a folder that is called like a suite, given as a dot, with an id and a missing value."""
    own, out = write_own(tmp_path / "tep", more=",1.0,99,class 0\n"), tmp_path / "run"
    monkeypatch.chdir(own)
    options = {"label": "state", "drop": ["id"], "missing": "drop"}
    assert find_suite(".", options).load().domain_names == ("north", "south")
    summary = benchmark.run(".", ["SourceOnly"], 2, out, **options, rows=20, verbose=True)
    assert (summary.n_run, summary.n_failed) == (4, 0)
    said = capsys.readouterr().err
    assert said.startswith("tep (own data): 40 rows\n  2 features: a, b\n  2 domains: north, south")
    text = benchmark.table(out)
    assert text.startswith("**tep (own data): accuracy in %")
    assert "| method | north | south | average |" in text
    with pytest.raises(ValueError, match="no suite with published"):  # not the paper's TEP
        benchmark.compare(out)
    with pytest.raises(ValueError, match=r"column 'a' has no value in row 31.*--missing drop"):
        benchmark.run(".", ["SourceOnly"], 2, out, label="state")


def test_own_data_of_one_domain(tmp_path):
    own = write_own(tmp_path / "own", ["north"])
    with pytest.raises(ValueError, match=r"no column named domain or domains.*--domain"):
        benchmark.run(str(own), ["SourceOnly"], 1, tmp_path / "out", label="state")


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        ("dom0(noise=0,order=1)", ["dom0(noise=0,order=1)"]),
        ("1, dom0(noise=0,order=1)", ["dom0", "dom0(noise=0,order=1)"]),
        ("dom0,7", ["dom0", "7"]),
        ("0", ["dom0(noise=0,order=1)"]),
        ([2, "1"], ["7", "dom0"]),
    ],
)
def test_targets_by_name_or_number_whatever_commas_they_have(tmp_path, targets, names):
    own = write_own(tmp_path / "own", ["a", "b", "c"])
    data = find_suite(str(own), {"label": "state"}).load()
    data = replace(data, domain_names=("dom0(noise=0,order=1)", "dom0", "7"))
    assert check_targets(data, targets) == names


def test_targets_keep_the_order_of_the_data(tmp_path):
    own = write_own(tmp_path / "own", ["batch10", "batch2", "batch1"])
    table = (own / "batch10.csv").read_text().splitlines()
    for path in own.iterdir():
        path.unlink()
    lines = [f"{line},{name}" for name in ("b10", "b2", "b1") for line in table[1:]]
    (own / "all.csv").write_text("\n".join([table[0] + ",domain", *lines]))
    out = tmp_path / "out"
    benchmark.run(str(own), ["SourceOnly"], 1, out, label="state", rows=20)
    assert "| method | b10 | b2 | b1 |" in benchmark.table(out)
    for path in (out / "cells").iterdir():  # older runs did not write the order down
        record = json.loads(path.read_text())
        del record["domains"]
        path.write_text(json.dumps(record))
    assert "| method | b1 | b2 | b10 |" in benchmark.table(out)


@pytest.mark.data
@pytest.mark.skipif("MIXDA_DATA" not in os.environ, reason="needs the folder MIXDA_DATA")
def test_cwru_folds_are_blocks_of_time(tmp_path):
    data = find_suite("cwru").load()
    rows = data.domain == 0
    folds = make_folds(int(rows.sum()), data.block[rows])
    np.testing.assert_array_equal(folds, data.block[rows])


def test_statistics_keep_level_amplitude_and_frequency():
    """A sine has all its power at one frequency, and its standard deviation is a / √2."""
    time = np.arange(64) / 64
    wave = 5.0 + 2.0 * np.sin(2 * np.pi * 4 * time)
    values = _features.series_statistics(wave[None, None])[0]
    np.testing.assert_allclose(values[0], 5.0)
    np.testing.assert_allclose(values[1], np.log(np.sqrt(2.0) + 1e-3))
    powers = np.exp(values[2:]) - 1e-3
    # 32 frequencies in bands 1, 2, 3–5, 6–10, 11–18, 19–32; Σ|x̂|² = 64 σ² = 128, half at f > 0
    np.testing.assert_allclose(powers, [0, 0, 64 / 3, 0, 0, 0], atol=1e-9)


def test_each_seed_has_its_own_backbone(tmp_path):
    benchmark.run("toy", ["SourceOnly"], 2, tmp_path, rows=60, features="mlp")
    first, second = (tmp_path / "features").iterdir()
    with np.load(first) as a, np.load(second) as b:
        assert not np.array_equal(a["Z"], b["Z"])
        np.testing.assert_array_equal(a["fold"], b["fold"])
    benchmark.run("toy", ["SourceOnly"], 2, tmp_path, rows=60, features="raw")
    assert len(list((tmp_path / "features").iterdir())) == 3
