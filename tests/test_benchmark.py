"""Runs of a benchmark: cells, resuming, failures, folds, no target label before the score."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mixda import benchmark
from mixda.benchmark._cells import Cell, read_records, write_error
from mixda.benchmark._experiments import interpolate, trace
from mixda.benchmark._features import make_features, read_labels, read_task, write_features
from mixda.benchmark._methods import SHALLOW, parse_settings
from mixda.benchmark._suites import find_suite, make_folds, thin
from mixda.benchmark._work import predict_cell
from mixda.datasets import DomainDataset, make_shifted_toy

FAST = ["SourceOnly", "GMMWBT", "WBT"]
SHORT = {"DaDiL-R": {"n_epochs": 2}, "DaDiL-E": {"n_epochs": 2}}
QUICK_IMPORT = {"POT_BACKEND_DISABLE_PYTORCH": "1"}  # POT loads torch otherwise
SHORT |= {"WJDOT": {"n_iter": 9}, "GMMDaDiL": {"n_iter": 9}}


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    cells = (folder / "cells").glob("*.json")
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in cells}


def small_toy(n: int = 60) -> DomainDataset:
    return thin(make_shifted_toy(random_state=2), n)


def cell(method: str, **changes: object) -> Cell:
    return replace(Cell("toy", "toy", "raw", None, "", "target", method, 0), **changes)


# ------------------------------------------------------------------------------------- resuming


def test_second_run_repeats_nothing_and_new_settings_are_new_cells(tmp_path):
    first = benchmark.run("toy", FAST, seeds=2, out=tmp_path, rows=60)
    before = files(tmp_path)
    assert (first.n_run, first.n_found, first.n_failed, len(before)) == (6, 0, 0, 6)
    again = benchmark.run("toy", FAST, seeds=3, out=tmp_path, rows=60)
    assert (again.n_run, again.n_found) == (3, 6)
    assert before.items() <= files(tmp_path).items()
    other = {"GMMWBT": {"n_components": 2}}
    more = benchmark.run("toy", FAST, seeds=2, out=tmp_path, rows=60, settings=other)
    assert (more.n_run, more.n_found) == (2, 4)


def test_killed_run_goes_on_without_loss_or_repetition(tmp_path):
    """SIGKILL at a random moment between the first cells and the last."""
    methods, seeds = ["SourceOnly", "GMMOTDA", "GMMWBT", "WBT", "DaDiL-R"], 5
    call = f"benchmark.run('toy', {methods}, {seeds}, {str(tmp_path)!r}, rows=60)"
    code = f"from mixda import benchmark; {call}"
    environment = {**os.environ, **QUICK_IMPORT}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    n_before, pause = random.randint(1, 20), random.uniform(0.0, 0.3)
    while process.poll() is None and len(list((tmp_path / "cells").glob("*.json"))) < n_before:
        time.sleep(0.01)
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = files(tmp_path)
    for name, (_, content) in before.items():
        assert "accuracy" in json.loads(content), name
    summary = benchmark.run("toy", methods, seeds, tmp_path, rows=60)
    assert summary.n_found == len(before) >= n_before
    assert summary.n_run + summary.n_found == len(methods) * seeds == len(files(tmp_path))
    assert before.items() <= files(tmp_path).items()


def test_parallel_processes_give_the_same_numbers(tmp_path, monkeypatch):
    for name, value in QUICK_IMPORT.items():
        monkeypatch.setenv(name, value)
    accuracies = []
    for n_jobs in (1, 2):
        benchmark.run("toy", FAST[:2], 1, tmp_path / str(n_jobs), rows=60, n_jobs=n_jobs)
        records = read_records(tmp_path / str(n_jobs))
        accuracies.append({r["cell"]["method"]: r["confusion"] for r in records})
    assert accuracies[0] == accuracies[1]


def test_dask_runs_the_same_cells(tmp_path):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "processes": False, "protocol": "tcp", "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        address = cluster.scheduler_address
        summary = benchmark.run("toy", ["SourceOnly"], 2, tmp_path, rows=60, dask=address)
    assert (summary.n_run, summary.n_failed) == (2, 0)


def test_failed_cell_is_recorded_shown_and_tried_again(tmp_path):
    wrong = {"GMMWBT": {"n_components": -3}}
    summary = benchmark.run("toy", ["SourceOnly", "GMMWBT"], 1, tmp_path, rows=60, settings=wrong)
    assert (summary.n_run, summary.n_failed) == (1, 1)
    assert "n_components must be" in summary.errors[0]
    text = benchmark.table(tmp_path)
    assert "| GMMWBT n_components=-3 | failed | – | – |" in text
    assert "GMMWBT failed: n_components must be" in text
    assert benchmark.run("toy", ["GMMWBT"], 1, tmp_path, rows=60, settings=wrong).n_failed == 1


def test_success_forgets_an_earlier_failure(tmp_path):
    benchmark.run("toy", ["SourceOnly"], 1, tmp_path, rows=60)
    record = read_records(tmp_path)[0]
    done = Cell(**record["cell"])
    (tmp_path / "cells" / f"{done.key}.json").unlink()
    write_error(tmp_path, done, {"error": "no luck"})
    assert read_records(tmp_path)[0]["error"] == "no luck"
    benchmark.run("toy", ["SourceOnly"], 1, tmp_path, rows=60)
    assert [path.name for path in (tmp_path / "cells").iterdir()] == [f"{done.key}.json"]


def test_cell_records_what_a_reader_needs(tmp_path):
    benchmark.run("toy", ["GMMWBT"], 1, tmp_path, rows=60, settings={"GMMWBT": {"n_init": 2}})
    record = read_records(tmp_path)[0]
    assert (record["cell"]["settings"], record["cell"]["seed"]) == ({"n_init": 2}, 0)
    assert record["versions"]["numpy"] == np.__version__
    assert record["date"][:4].isdigit()
    assert record["peak_memory_mb"] > 10  # an interpreter with numpy has more
    assert record["fit_seconds"] > 0
    assert (record["n_sources"], record["n_adapt"], record["n_test"]) == (180, 48, 12)
    for prefix in ("", "head_"):
        confusion = np.array(record[f"{prefix}confusion"])
        assert confusion.sum() == 12
        assert np.trace(confusion) / 12 == pytest.approx(record[f"{prefix}accuracy"])


# ------------------------------------------------------------------------------ folds and labels


def test_folds_keep_blocks_whole_and_cover_everything():
    block = np.repeat([3, 1, 4, 0, 5, 9, 2, 6, 7], 4)
    folds = make_folds(len(block), block)
    assert all(len(set(folds[block == b])) == 1 for b in set(block))
    assert sorted(np.bincount(folds)) == [4, 8, 8, 8, 8]
    order = [folds[block == b][0] for b in sorted(set(block))]
    assert order == sorted(order)  # neighbouring blocks (time) stay neighbours
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


@pytest.mark.parametrize("features", ["raw", "standardized", "standardized-mlp"])
def test_features_do_not_depend_on_target_labels(features):
    data = small_toy()
    poisoned = np.where(data.domain == 3, 1 - data.y, data.y)
    made = make_features(data, "target", features)
    other = make_features(replace(data, y=poisoned), "target", features)
    for name in ("Z", "y", "fold"):
        np.testing.assert_array_equal(made[name], other[name])
    assert (made["target_labels"] != other["target_labels"]).all()


@pytest.mark.parametrize("method", [name for name in SHALLOW if name != "TargetOnly"])
def test_predictions_do_not_depend_on_target_labels(method, tmp_path):
    data = small_toy()
    poisoned = np.where(data.domain == 3, 1 - data.y, data.y)
    predictions = []
    for i, y in enumerate((data.y, poisoned)):
        write_features(tmp_path / f"{i}.npz", make_features(replace(data, y=y), "target", "raw"))
        task = read_task(tmp_path / f"{i}.npz", 0)
        predictions.append(predict_cell(cell(method, settings=SHORT.get(method, {})), task)[0])
    assert predictions[0].keys() == predictions[1].keys()
    for name, predicted in predictions[0].items():
        np.testing.assert_array_equal(predicted, predictions[1][name])


def test_series_features_are_standardised_per_domain():
    rng = np.random.default_rng(0)
    series = rng.normal(size=(40, 3, 20)) * [[1.0], [5.0], [0.0]] + [[0.0], [100.0], [7.0]]
    domain = np.repeat([0, 1], 20)
    series[domain == 1] *= 3.0
    data = DomainDataset(
        series.reshape(40, -1),
        np.arange(40) % 2,
        domain,
        ["a", "b"],
        ["x", "y"],
        sample_shape=(3, 20),
    )
    Z = make_features(data, "b", "moments")["Z"]
    assert Z.shape == (40, 6)
    for k in (0, 1):
        np.testing.assert_allclose(Z[domain == k].mean(axis=0), 0, atol=1e-5)
    with pytest.raises(ValueError, match="need series of shape"):
        make_features(small_toy(), "target", "moments")


# ------------------------------------------------------------------------------------ ablations


def two_sources() -> DomainDataset:
    data = small_toy(40)
    kept = data.domain != 0
    return replace(
        data,
        X=data.X[kept],
        y=data.y[kept],
        domain=data.domain[kept] - 1,
        domain_names=data.domain_names[1:],
    )


def test_interpolation_of_sources_in_the_middle_is_the_method_itself(tmp_path):
    write_features(tmp_path / "f.npz", make_features(two_sources(), "target", "raw"))
    task = read_task(tmp_path / "f.npz", 0)
    curve = interpolate(cell("GMMWBT"), task)
    assert curve.lambda0[5] == pytest.approx(0.5)
    np.testing.assert_array_equal(curve.predictions[5], curve.own)
    curve = interpolate(cell("GMMDaDiL"), task)
    assert 0.0 <= curve.own_lambda0 <= 1.0


@pytest.mark.parametrize("method", ["GMMDaDiL", "DaDiL-R"])
def test_trajectories_begin_at_the_sources_and_move(method, tmp_path, monkeypatch):
    monkeypatch.setattr("mixda.benchmark._experiments._SNAPSHOTS", (0, 1, 3))
    write_features(tmp_path / "f.npz", make_features(two_sources(), "target", "raw"))
    task = read_task(tmp_path / "f.npz", 0)
    settings = {"n_points": 8, "batch_size": 8}
    if method == "GMMDaDiL":
        settings = {"n_iter": 3, "optimizer": "adam"}
    arrays, _ = trace(cell(method, settings=settings), task)
    assert arrays["iterations"].tolist() == [0, 1, 3]
    moved = np.abs(np.diff(arrays["atoms"], axis=0)).max(axis=(1, 2, 3))
    assert (moved > 1e-6).all()
    if method == "DaDiL-R":  # its atoms start as source samples
        start = arrays["atoms"][0].reshape(-1, 2)
        sources = task.X[task.sample_domain >= 0]
        assert (np.abs(start[:, None] - sources).max(axis=2).min(axis=1) < 1e-6).all()


def test_ablations_vary_what_they_say(tmp_path):
    options = {"data": "toy", "rows": 40, "out": tmp_path}
    benchmark.run("lighter", ["GMMWBT", "WBT"], 1, **options)
    sizes: dict[str, list[int]] = {}
    for record in read_records(tmp_path):
        sizes.setdefault(record["cell"]["method"], []).append(record["size"])
    assert sorted(sizes["WBT"]) == [2, 4, 6, 8, 12, 16, 20] == sorted(sizes["GMMWBT"])
    with pytest.raises(ValueError, match="compares GMMDaDiL, GMMWBT, not WJDOT"):
        benchmark.run("better", ["WJDOT"], 1, **options)
    with pytest.raises(ValueError, match="holds ablations only"):
        benchmark.table(tmp_path)


# ------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"suite": "tepp"}, "there is no suite 'tepp' and no such file; there are toy, cwru"),
        ({"methods": ["GMM"]}, "there is no method 'GMM'; there are SourceOnly"),
        ({"seeds": 0}, "seeds must be a positive integer, got 0"),
        ({"targets": ["moon"]}, "there is no domain 'moon'; the domains are"),
        ({"features": "magic"}, "features must be one of 'raw'"),
        ({"settings": {"WBT": {"points": 3}}}, "WBT has no setting 'points'; it has beta"),
        ({"settings": {"WBT": {"classifier": object}}}, "settings must be numbers, words, lists"),
        ({"settings": {"WJDOT": {"n_iter": 3}}}, "settings are given for WJDOT, which is not run"),
        ({"head": "tree"}, "head must be one of 'logistic', 'svc'"),
    ],
)
def test_mistakes_get_one_sentence_before_any_work(arguments, sentence, tmp_path):
    given = {"suite": "toy", "methods": ["SourceOnly", "WBT"], "out": tmp_path, **arguments}
    with pytest.raises(ValueError, match=sentence):
        benchmark.run(**given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["n_atoms=4", "GMMDaDiL.n_atoms", "GMMDaDiL.=4", "X.n_atoms=4"])
def test_settings_that_do_not_parse(text):
    with pytest.raises(ValueError, match=r"a setting reads METHOD|there is no method 'X'"):
        parse_settings([text])


def test_own_data_are_a_suite(tmp_path):
    data = small_toy(30)
    for k, name in enumerate(("north", "south")):
        X, y = data.X[data.domain == k], data.y[data.domain == k]
        rows = [f"{a},{b},class {c}" for (a, b), c in zip(X, y, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,state", *rows]) + "\n")
    folder = tmp_path / "run"
    suite = find_suite(str(tmp_path), label="state")
    assert suite.load().domain_names == ("north", "south")
    summary = benchmark.run(str(tmp_path), ["SourceOnly"], 2, folder, label="state", rows=20)
    assert (summary.n_run, summary.n_failed) == (4, 0)
    assert "| method | north | south | average |" in benchmark.table(folder)


@pytest.mark.data
@pytest.mark.skipif("MIXDA_DATA" not in os.environ, reason="needs the folder MIXDA_DATA")
def test_cwru_folds_are_blocks_of_time(tmp_path):
    data = find_suite("cwru").load()
    rows = data.domain == 0
    folds = make_folds(int(rows.sum()), data.block[rows])
    np.testing.assert_array_equal(folds, data.block[rows])
