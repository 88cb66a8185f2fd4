"""Files of any size: bounded samples in adapt and report, folders of predictions."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import mixda
from mixda._core import progress
from mixda.cli import run
from mixda.workflow import adapt_files, predict_file

CENTERS = {"ok": (0.0, 0.0), "worn": (6.0, 0.0), "broken": (0.0, 6.0)}


def domain(n, shift, seed):
    rng = np.random.default_rng(seed)
    names = rng.choice(list(CENTERS), size=n, p=[0.6, 0.3, 0.1])
    X = np.array([CENTERS[name] for name in names]) + rng.normal(size=(n, 2)) + shift
    color = rng.choice(["red", "blue"], size=n)
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "color": color, "state": names})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    for seed, (name, shift) in enumerate([("lab", 0.0), ("line", 1.0), ("plant", 2.0)]):
        frame = domain(3000, shift, seed)
        frame.loc[::50, "a"] = np.nan
        frame.to_parquet(folder / f"{name}.parquet", row_group_size=1000)
        frame.assign(site=name).to_csv(folder / f"{name}.csv", index=False)
    parts = [pd.read_csv(folder / f"{name}.csv") for name in ("lab", "line", "plant")]
    together = pd.concat(parts)
    together.loc[together.site == "plant", "state"] = None
    together.to_parquet(folder / "all.parquet", row_group_size=2000)
    return folder


def labels(model, files, tmp_path):
    predict_file(model, files / "plant.parquet", tmp_path / "p.parquet")
    return pd.read_parquet(tmp_path / "p.parquet").label


@pytest.mark.parametrize("method", ["wbt", "source"])
def test_adapt(files, method, tmp_path):
    sources = [files / "lab.parquet", files / "line.csv"]
    target, options = files / "plant.parquet", {"method": method, "drop": ["site"]}
    model = adapt_files(sources, target, "state", max_rows=400, **options)
    whole = adapt_files(sources, target, "state", **options)
    agreement = labels(model, files, tmp_path) == labels(whole, files, tmp_path)
    assert agreement.mean() > 0.97
    assert model.target.n_samples == 3000
    assert all(n <= 450 for n in model.settings["rows_used"])


def test_adapt_domains_of_one_table(files, tmp_path):
    whole = files / "all.parquet"
    model = adapt_files([whole], "plant", "state", "site", method="wbt", max_rows=400)
    assert [d.name for d in model.sources] == ["lab", "line"]
    truth = pd.read_parquet(files / "plant.parquet").state
    assert (labels(model, files, tmp_path) == truth).mean() > 0.9


def test_adapt_with_a_mixture(files):
    mixture = mixda.workflow.fit_files(files / "lab.parquet", "state", columns=["a", "b"])["lab"]
    mixture.save(files / "lab.gmm")
    sources = [files / "lab.gmm", files / "line.parquet"]
    target = files / "plant.parquet"
    model = adapt_files(sources, target, "state", method="wbt", max_rows=400)
    assert model.sources[1].n_samples == 3000


def test_thinning_is_said_once(files, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(files)
    command = ["adapt", "lab.parquet", "line.parquet", "--target", "plant.parquet"]
    command += ["--label", "state", "--method", "wbt", "--max-rows", "400", "--missing", "drop"]
    model = str(tmp_path / "m.mixda")
    assert run([*command, "-o", model]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("of 2,940 rows of lab") == 1
    assert "mixtures on all rows" in printed.out
    assert printed.err.count("180") == 1  # rows left out
    assert run([*command, "-o", model, "--json"]) == 0
    assert "of 2,940 rows of lab" in json.loads(capsys.readouterr().out)["sampling"]
    page = tmp_path / "r.html"
    monkeypatch.setattr("mixda.workflow._rows.default_max_rows", lambda *_: 1000)
    assert run(["report", model, "-o", str(page), "--data", "plant.parquet"]) == 0
    assert "750 of 3,000 rows" in capsys.readouterr().err
    assert "750 of 3,000 rows" in page.read_text()
    assert "of 2,940 rows of lab" in page.read_text()


@pytest.fixture(scope="module")
def model(files):
    sources = [files / "lab.parquet", files / "line.parquet"]
    return adapt_files(sources, files / "plant.parquet", "state", method="wbt", max_rows=400)


@pytest.fixture
def small_partitions(monkeypatch):
    monkeypatch.setattr("mixda.tables._parquet._MIN_ROWS_PER_PARTITION", 1)


def test_predict_folder_equals_file(files, model, tmp_path, small_partitions):
    data = files / "plant.parquet"
    whole = predict_file(model, data, tmp_path / "p.parquet", keep=["color"])
    parts = predict_file(model, data, tmp_path / "parts", keep=["color"], n_jobs=1)
    assert parts == whole
    assert len(list((tmp_path / "parts").glob("part-*.parquet"))) == 3
    expected = pq.read_table(tmp_path / "p.parquet").to_pandas()
    pd.testing.assert_frame_equal(pq.read_table(tmp_path / "parts").to_pandas(), expected)


def test_predict_folder_resumes(files, model, tmp_path, small_partitions):
    data, output = files / "plant.parquet", tmp_path / "parts"
    first = predict_file(model, data, output)
    kept, lost = output / "part-00000.parquet", output / "part-00002.parquet"
    stamp = kept.stat().st_mtime_ns
    lost.unlink()
    assert predict_file(model, data, output) == first
    assert kept.stat().st_mtime_ns == stamp
    assert lost.exists()
    with pytest.raises(mixda.MixdaError, match="options"):
        predict_file(model, data, output, keep=["color"])


def test_predict_folder_rejects(files, model, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.txt").touch()
    with pytest.raises(mixda.MixdaError, match="other files"):
        predict_file(model, files / "plant.parquet", tmp_path / "own")
    with pytest.raises(mixda.MixdaError, match="n_jobs"):
        predict_file(model, files / "plant.parquet", tmp_path / "p.csv", n_jobs=2)


def test_every_kth_row(files):
    table = mixda.tables.open_table(files / "lab.parquet")
    every = table.read(["b"], rows=70)
    some = table.read(["b"], rows=70, max_rows=400)
    assert some.n_usable == 3000
    np.testing.assert_array_equal(some.rows, every.rows[::8])
    np.testing.assert_array_equal(some.X, every.X[::8])


def test_progress_in_a_pipe(monkeypatch, capsys):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(progress.LineClock, "_last", 0.0)
    for verbose in (True, False):
        with progress.Progress(100, "working", verbose) as shown:
            for k in range(100):
                clock.now += 1.0
                shown.update(k, "loss 0.3")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    assert lines[0] == "mixda: working 15/100 loss 0.3"


def test_checks_see_the_end_of_sorted_files(files, tmp_path, monkeypatch, small_partitions):
    monkeypatch.setattr("mixda.checks._frames._MAX_ROWS", 300)
    frame = pd.read_parquet(files / "lab.parquet").sort_values("state")
    frame.to_parquet(tmp_path / "lab.parquet", row_group_size=200)
    report = mixda.check(tmp_path / "lab.parquet", files / "plant.parquet", label="state")
    assert set(report.domains[0]["classes"]) == set(CENTERS)
    assert report.domains[0]["rows"] == 300
