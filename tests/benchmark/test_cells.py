"""The cells of a benchmark: resumed, repeated, damaged, failed, run in parallel."""

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

import numpy as np
import pytest

from mixda import benchmark
from mixda.benchmark import _entries, _features, _worker
from mixda.benchmark._cells import Cell, read_records, sweep, write_error
from mixda.benchmark._features import read_task

from .quick_cells import FAST, QUICK_IMPORT, cell, files


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
        return _worker._accuracy(*given)

    monkeypatch.setitem(_worker._EXPERIMENTS, "accuracy", work)
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
    method = _entries.METHODS["JCPOT"]
    monkeypatch.setitem(
        _entries.METHODS, "JCPOT", method._replace(fixed={**method.fixed, "reg": 0.5})
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
