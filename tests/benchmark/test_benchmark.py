"""Runs of a benchmark: cells, resuming, failures, folds, no target label before the score."""

from __future__ import annotations

import importlib.util
import io
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
from mixda.benchmark import _entries as _methods
from mixda.benchmark import _features
from mixda.benchmark import _worker as _work
from mixda.benchmark._cells import Cell, read_records, sweep, write_error
from mixda.benchmark._entries import SHALLOW, parse_settings
from mixda.benchmark._experiments import interpolate, trace
from mixda.benchmark._features import make_features, read_labels, read_task, write_features
from mixda.benchmark._plan import check_targets
from mixda.benchmark._suites import find_suite, make_folds, thin
from mixda.benchmark._worker import predict_cell
from mixda.datasets import DomainDataset, make_shifted_toy

FAST = ["SourceOnly", "GMMWBT", "WBT"]
SHORT = {"DaDiL-R": {"n_epochs": 2}, "DaDiL-E": {"n_epochs": 2}}
QUICK_IMPORT = {"POT_BACKEND_DISABLE_PYTORCH": "1"}  # POT loads torch otherwise
SHORT |= {"WJDOT": {"n_iter": 9}, "GMMDaDiL": {"n_iter": 9}}


def files(folder: Path, pattern: str = "cells/*.json") -> dict[str, tuple[int, bytes]]:
    found = folder.glob(pattern)
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


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


def test_settings_that_are_the_defaults_are_no_other_method(tmp_path):
    arguments = {"suite": "toy", "methods": ["GMMWBT"], "seeds": 1, "out": tmp_path, "rows": 60}
    benchmark.run(**arguments)
    summary = benchmark.run(**arguments, settings={"GMMWBT": {"n_components": 3, "reg": 0}})
    assert (summary.n_run, summary.n_found, summary.n_failed) == (0, 1, 0)


def test_runs_side_by_side_share_the_cells(tmp_path, monkeypatch):
    """A second run, begun while the first is at its first cell, leaves it nothing else to do."""
    arguments = {"suite": "toy", "methods": ["SourceOnly"], "seeds": 5, "out": tmp_path, "rows": 60}
    fits = []

    def work(*given):
        fits.append(given)
        if len(fits) == 1:
            benchmark.run(**arguments)
        return _work._accuracy(*given)

    monkeypatch.setitem(_work._EXPERIMENTS, "accuracy", work)
    benchmark.run(**arguments)
    assert len(fits) == 6


def test_killed_run_goes_on_without_loss_or_repetition(tmp_path):
    """SIGKILL of two workers at a random moment between the first features and the last cells."""
    methods, seeds = ["SourceOnly", "GMMOTDA", "GMMWBT"], 4
    targets = ["source 1", "target"]
    call = f"'toy', {methods}, {seeds}, {str(tmp_path)!r}, rows=60, targets={targets}"
    code = f"from mixda import benchmark; benchmark.run({call}, n_jobs=2)"
    # a session of its own: its workers are killed with it
    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **QUICK_IMPORT}, start_new_session=True
    )
    n_before, pause = random.randint(0, 16), random.uniform(0.0, 0.2)
    while process.poll() is None and not (
        len(list((tmp_path / "cells").glob("*.json"))) >= n_before
        and list((tmp_path / "features").glob("*.npz"))
    ):
        time.sleep(0.01)
    time.sleep(pause)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before, features = files(tmp_path), files(tmp_path, "features/*.npz")
    for name, (_, content) in before.items():
        assert "accuracy" in json.loads(content), name
    for name in features:
        assert read_task(tmp_path / "features" / name, 0).X.shape[1] == 2
    summary = benchmark.run("toy", methods, seeds, tmp_path, rows=60, targets=targets)
    assert summary.n_found == len(before) >= n_before
    assert summary.n_run + summary.n_found == 2 * len(methods) * seeds == len(files(tmp_path))
    assert before.items() <= files(tmp_path).items()
    assert features.items() <= files(tmp_path, "features/*.npz").items()


def test_only_own_rubbish_is_swept_away(tmp_path):
    old = time.time() - 9999
    rubbish = [".a-b.json.x7_k2abc", ".toy-raw.npz.abcdefgh"]
    kept = [".env", ".gitignore", ".a.json.swp", ".b.json.toolongname", "plain.json.abcdefgh"]
    for folder in ("cells", "features", "mine", "."):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in (*rubbish, *kept):
            (tmp_path / folder / name).write_text("x")
            os.utime(tmp_path / folder / name, (old, old))
    (tmp_path / "cells" / ".young.json.abcdefgh").write_text("x")
    sweep(tmp_path)
    for folder in ("cells", "features"):
        left = {path.name for path in (tmp_path / folder).iterdir()}
        assert left - {".young.json.abcdefgh"} == set(kept)
    assert (tmp_path / "cells" / ".young.json.abcdefgh").exists()
    for folder in ("mine", "."):
        assert all((tmp_path / folder / name).exists() for name in (*rubbish, *kept))


def test_names_of_temporary_files_are_those_that_are_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "mixda._core.atomic.os.replace", lambda old, new: None
    )  # as if killed before it
    (tmp_path / "cells").mkdir()
    write_error(tmp_path, cell("WBT"), {})
    for left in (tmp_path / "cells").iterdir():
        os.utime(left, (0, 0))
    sweep(tmp_path)
    assert not list((tmp_path / "cells").iterdir())


def test_new_defaults_or_features_are_new_cells(tmp_path, monkeypatch):
    arguments = {"suite": "toy", "methods": ["SourceOnly", "JCPOT"], "seeds": 1, "out": tmp_path}
    benchmark.run(**arguments, rows=60)
    parameters = [record["cell"]["parameters"] for record in read_records(tmp_path)]
    assert [p["reg"] for p in parameters if "reg" in p] == [0.05]  # JCPOT's default
    method = _methods.METHODS["JCPOT"]
    monkeypatch.setitem(
        _methods.METHODS, "JCPOT", method._replace(fixed={**method.fixed, "reg": 0.5})
    )
    summary = benchmark.run(**arguments, rows=60)
    assert (summary.n_run, summary.n_found) == (1, 1)
    text = benchmark.table(tmp_path)
    assert text.count("| JCPOT |") == 1
    assert "Omitted: 1 cells" in text
    monkeypatch.setattr(_features, "RECIPE", 99)
    assert benchmark.run(**arguments, rows=60).n_run == 2
    assert len(list((tmp_path / "features").iterdir())) == 2
    assert benchmark.table(tmp_path).count("| method |") == 2


def test_parallel_processes_give_the_same_numbers(tmp_path, monkeypatch):
    for name, value in QUICK_IMPORT.items():
        monkeypatch.setenv(name, value)
    accuracies = []
    for n_jobs in (1, 2):
        benchmark.run("toy", FAST[:2], 1, tmp_path / str(n_jobs), rows=60, n_jobs=n_jobs)
        records = read_records(tmp_path / str(n_jobs))
        accuracies.append({r["cell"]["method"]: r["confusion"] for r in records})
    assert accuracies[0] == accuracies[1]


def test_dask_runs_the_same_cells(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)  # a worker has another folder: out must be absolute for it
    options = {"n_workers": 1, "processes": False, "protocol": "tcp", "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        address = cluster.scheduler_address
        summary = benchmark.run("toy", ["SourceOnly"], 2, "out", rows=60, dask=address)
    assert (summary.n_run, summary.n_failed) == (2, 0)
    assert summary.folder == tmp_path / "out"


def test_scheduler_that_is_not_there(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("mixda.chunks._connection.CONNECT_SECONDS", 0.2)
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        with pytest.raises(ValueError, match=f"dask='{address}'"):
            benchmark.run("toy", ["SourceOnly"], 1, tmp_path, rows=60, dask=address)


def test_failed_cell_is_recorded_shown_and_tried_again(tmp_path):
    wrong = {"GMMWBT": {"n_components": -3}}
    summary = benchmark.run("toy", ["SourceOnly", "GMMWBT"], 1, tmp_path, rows=60, settings=wrong)
    assert (summary.n_run, summary.n_failed) == (1, 1)
    assert "n_components must be" in summary.errors[0]
    text = benchmark.table(tmp_path)
    assert "| GMMWBT n_components=-3 | failed | – | – |" in text
    assert "GMMWBT failed: n_components must be" in text
    assert benchmark.run("toy", ["GMMWBT"], 1, tmp_path, rows=60, settings=wrong).n_failed == 1


def test_features_that_fail_are_recorded_with_their_date(tmp_path):
    summary = benchmark.run("toy", ["SourceOnly"], 1, tmp_path, rows=60, features="statistics")
    assert (summary.n_run, summary.n_failed) == (0, 1)
    text = benchmark.table(tmp_path)
    assert "| SourceOnly | failed |" in text
    assert "SourceOnly failed: features='statistics', 'statistics-mlp', 'fcn'" in text
    assert f"Computed {read_records(tmp_path)[0]['date'][:10]}" in text
    path = next((tmp_path / "cells").iterdir())  # older runs wrote no date there
    record = json.loads(path.read_text())
    path.write_text(json.dumps({"cell": record["cell"], "error": "no luck"}))
    assert "SourceOnly failed: no luck" in benchmark.table(tmp_path)


def test_only_the_decision_of_the_head_depends_on_it(tmp_path):
    arguments = {"suite": "toy", "methods": ["SourceOnly", "GMMWBT"], "seeds": 2, "out": tmp_path}

    def lines() -> dict[str, list]:
        (table,) = benchmark.summarize(read_records(tmp_path))
        return {row.name: [*row.values.ravel().tolist(), row.ranked] for row in table.lines}

    benchmark.run(**arguments, rows=60, head="logistic")
    alone = lines()
    summary = benchmark.run(**arguments, rows=60, head="svc")
    assert (summary.n_run, summary.n_found) == (2, 2)  # source-only has no head
    both = lines()
    assert alone.items() <= both.items()
    assert list(both) == ["SourceOnly", "GMMWBT (MAP)", "GMMWBT (logistic)", "GMMWBT (svc)"]
    assert [ranked for *_, ranked in both.values()] == [True, False, True, False]
    for path in (tmp_path / "cells").glob("*SourceOnly*"):  # older cells of it had a head
        record = json.loads(path.read_text())
        record["cell"]["head"] = "logistic"
        path.write_text(json.dumps(record))
        record["cell"]["head"] = "svc"
        path.with_name(f"other-{path.name}").write_text(json.dumps(record))
    assert lines() == both


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"3", b'{"a": 1}', b'{"cell": 3}', b'{"cell": {}}', b"\xff"]
)
def test_foreign_files_among_the_cells_are_named(tmp_path, content):
    benchmark.run("toy", ["SourceOnly"], 1, tmp_path, rows=60)
    (tmp_path / "cells" / "mine.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"mine\.json is not a benchmark cell"):
        benchmark.table(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b'{"cell": {}}', None])
def test_damaged_cell_is_run_again(tmp_path, content):
    arguments = {"suite": "toy", "methods": ["SourceOnly"], "seeds": 2, "out": tmp_path, "rows": 60}
    benchmark.run(**arguments)
    path = min((tmp_path / "cells").iterdir())
    whole = json.loads(path.read_bytes())
    path.write_bytes(path.read_bytes()[:-9] if content is None else content)
    summary = benchmark.run(**arguments)
    assert (summary.n_run, summary.n_found) == (1, 1)
    assert json.loads(path.read_bytes())["accuracy"] == whole["accuracy"]


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other"])
def test_damaged_features_are_made_again(tmp_path, damage):
    arguments = {"suite": "toy", "methods": ["SourceOnly"], "out": tmp_path, "rows": 60}
    benchmark.run(**arguments, seeds=1)
    (path,) = (tmp_path / "features").iterdir()
    whole = path.read_bytes()
    middle = whole.index(b"Z.npy") + 200
    flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
    path.write_bytes({"empty": b"", "cut": whole[:300], "flipped": flipped, "other": b""}[damage])
    if damage == "other":
        np.savez(path, Z=np.eye(2))
    summary = benchmark.run(**arguments, seeds=2)
    assert (summary.n_run, summary.n_found, summary.n_failed) == (1, 1, 0)
    with np.load(path) as again, np.load(io.BytesIO(whole)) as first:
        np.testing.assert_array_equal(again["Z"], first["Z"])


@pytest.mark.parametrize(
    "damage",
    [
        {"method": "Magic"},
        {"seed": -1},
        {"seed": "0"},
        {"settings": []},
        {"target": None},
        {"rows": "60"},
        {"experiment": "magic"},
        {"accuracy": None},
        {"accuracy": float("nan")},
        {"accuracy": 70.0},
        {"head_accuracy": "good"},
        {"fit_cpu_seconds": None},
        {"date": 3},
        {"domains": 3},
        {"error": 3},
    ],
)
def test_cells_that_a_table_cannot_use_are_named(tmp_path, damage):
    benchmark.run("toy", ["SourceOnly"], 1, tmp_path, rows=60)
    (path,) = (tmp_path / "cells").iterdir()
    record = json.loads(path.read_bytes())
    for name, value in damage.items():
        (record["cell"] if name in record["cell"] else record)[name] = value
    path.write_text(json.dumps(record))
    for show in (benchmark.table, benchmark.figure):
        with pytest.raises(ValueError, match=rf"{path.name} is not a benchmark cell"):
            show(tmp_path)


def test_cell_without_its_score_is_named_and_run_again(tmp_path):
    benchmark.run("toy", ["SourceOnly"], 1, tmp_path, rows=60)
    (path,) = (tmp_path / "cells").iterdir()
    record = json.loads(path.read_bytes())
    path.write_text(json.dumps({k: v for k, v in record.items() if k != "accuracy"}))
    with pytest.raises(ValueError, match="is not a benchmark cell"):
        benchmark.table(tmp_path)
    assert benchmark.run("toy", ["SourceOnly"], 1, tmp_path, rows=60).n_run == 1
    assert "| SourceOnly |" in benchmark.table(tmp_path)


def test_missing_torch_is_said_before_any_work(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        _features, "find_spec", lambda name: None if name == "torch" else find(name)
    )
    with pytest.raises(ValueError, match=r"features='fcn' .*'mixda\[deep\]'"):
        benchmark.run("toy", ["SourceOnly"], 1, tmp_path / "out", features="fcn")
    assert not (tmp_path / "out").exists()


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

    monkeypatch.setattr(_work, "predict_cell", predict)
    monkeypatch.setattr(_work, "read_labels", read)
    (tmp_path / "cells").mkdir()
    given = cell(method, settings=SHORT.get(method, {}))
    assert _work.run_cell(tmp_path, given, path, {}) is None
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
    curve = interpolate(cell("GMMDaDiL", settings={"n_atoms": 2}), task)
    assert 0.0 <= curve.own_lambda0 <= 1.0


@pytest.mark.parametrize("method", ["GMMDaDiL", "DaDiL-R"])
def test_trajectories_begin_at_the_sources_and_move(method, tmp_path, monkeypatch):
    monkeypatch.setattr("mixda.benchmark._experiments._SNAPSHOTS", (0, 1, 3))
    write_features(tmp_path / "f.npz", make_features(two_sources(), "target", "raw"))
    task = read_task(tmp_path / "f.npz", 0)
    settings = {"n_points": 8, "batch_size": 8}
    if method == "GMMDaDiL":
        settings = {"n_iter": 3, "optimizer": "adam", "tol": -1.0}
    settings["n_atoms"] = 2
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
    with pytest.raises(ValueError, match=r"methods .*GMMDaDiL, GMMWBT, got WJDOT"):
        benchmark.run("better", ["WJDOT"], 1, **options)
    with pytest.raises(ValueError, match="only ablations"):
        benchmark.table(tmp_path)


# ------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"suite": "tepp"}, "suite must .*toy, cwru.*'tepp'"),
        ({"methods": ["GMM"]}, "methods must .*SourceOnly.*'GMM'"),
        ({"seeds": 0}, "seeds must be a positive integer, got 0"),
        ({"targets": ["moon"]}, "domain .*'moon'"),
        ({"features": "magic"}, "features must be one of 'raw'"),
        ({"settings": {"WBT": {"points": 3}}}, "settings of WBT .*beta.*'points'"),
        ({"settings": {"WBT": {"classifier": object}}}, "settings must .*object"),
        ({"settings": {"WBT": {"reg": float("nan")}}}, "settings must"),
        ({"settings": {"WBT": {"beta": [1.0, float("inf")]}}}, "settings must"),
        ({"features": ""}, "features must be one of 'raw'"),
        ({"out": ""}, "out is empty"),
        ({"suite": ""}, "suite must .*got ''"),
        ({"suite": "lighter", "methods": None, "data": ""}, "suite must .*got ''"),
        ({"n_jobs": 0}, "n_jobs must .*got 0"),
        ({"settings": {"WJDOT": {"n_iter": 3}}}, "settings .*WJDOT"),
        ({"head": "tree"}, "head must be one of 'logistic', 'svc'"),
        ({"data": "cwru"}, "data='cwru' .*lighter, better, .*'toy'"),
        ({"label": "state"}, "label: .*'toy'"),
        ({"columns": ["a"], "drop": ["b"]}, "columns, drop: .*'toy'"),
        ({"targets": ["target", "target"]}, "targets must .*target, target"),
        ({"targets": "target,3"}, "targets must .*target, target"),
        ({"targets": "9"}, "domain .*below 4, got 9"),
        ({"targets": ","}, "targets is empty.*source 1, source 2"),
        ({"targets": []}, "targets is empty"),
    ],
)
def test_mistakes_get_one_sentence_before_any_work(arguments, sentence, tmp_path):
    given = {"suite": "toy", "methods": ["SourceOnly", "WBT"], "out": tmp_path, **arguments}
    with pytest.raises(ValueError, match=sentence):
        benchmark.run(**given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["n_atoms=4", "GMMDaDiL.n_atoms", "GMMDaDiL.=4", "X.n_atoms=4"])
def test_settings_that_do_not_parse(text):
    with pytest.raises(ValueError, match=r"METHOD.parameter=value.*got|methods .*'X'"):
        parse_settings([text])


@pytest.mark.parametrize(
    ("suite", "settings", "setting"),
    [
        ("better", {"GMMDaDiL": {"n_atoms": 3}}, "GMMDaDiL.n_atoms"),
        ("lighter", {"WBT": {"n_points": 3}}, "WBT.n_points"),
        ("trajectories", {"GMMDaDiL": {"n_iter": 3}}, "GMMDaDiL.n_iter"),
        ("trajectories", {"DaDiL-R": {"n_epochs": 3}}, "DaDiL-R.n_epochs"),
        ("trajectories", {"DaDiL-R": {"classifier": None}}, "DaDiL-R.classifier"),
    ],
)
def test_settings_that_an_ablation_would_ignore_are_refused(suite, settings, setting, tmp_path):
    with pytest.raises(ValueError, match=rf"settings: .*'{suite}' .*{setting}"):
        benchmark.run(suite, None, 1, tmp_path, data="toy", rows=40, settings=settings)
    targets = ["source 1", "target"]
    with pytest.raises(ValueError, match=r"targets must .*got source 1, target"):
        benchmark.run(suite, None, 1, tmp_path, data="toy", rows=40, targets=targets)


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
