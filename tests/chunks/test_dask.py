"""A Dask cluster of two worker processes: the same mixture, even if workers are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from mixda import chunks, fit_domains, fit_labeled_mixture, fit_mixture
from mixda.chunks._rows import RowBlock

distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="2GB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def blobs(n=600, d=3, k=3, seed=0):
    rng = np.random.default_rng(seed)
    means = 4.0 * rng.standard_normal((k, d))
    y = rng.integers(k, size=n)
    X = means[y] + rng.uniform(0.3, 1.5, (k, d))[y] * rng.standard_normal((n, d))
    return X, y, np.array(["a", "b"])[rng.integers(2, size=n)]


def assert_close(p, q, tol=1e-8):
    for name in ("weights", "means", "stds"):
        np.testing.assert_allclose(getattr(p, name), getattr(q, name), rtol=0, atol=tol)


OPTIONS = {"n_components": 2, "random_state": 0, "max_iter": 5}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("mixda.tables._parquet._MIN_ROWS_PER_PARTITION", 1)
    X, y, domain = blobs()
    frame = pd.DataFrame(X, columns=list("abc")).assign(fault=y, site=domain)
    for k in range(3):
        part = pa.Table.from_pandas(frame[200 * k : 200 * k + 200], preserve_index=False)
        pq.write_table(part, tmp_path / f"{k}.parquet", row_group_size=50)
    return tmp_path


def test_all_sources_agree(client, folder):
    X, y, domain = blobs()
    labeled = fit_labeled_mixture(X, y, **OPTIONS)
    files = chunks.from_files(folder, "fault", "site")
    here = fit_domains(files, **OPTIONS)
    assert fit_domains(files, client=client, **OPTIONS) == here  # the same bits
    assert_close(here["a"], fit_labeled_mixture(X[domain == "a"], y[domain == "a"], **OPTIONS))
    assert_close(fit_labeled_mixture(X, y, client=client, chunk_size=16, **OPTIONS), labeled)
    blocks = da.from_array(X, chunks=(50, 2))
    assert_close(fit_labeled_mixture(blocks, y, client=client, **OPTIONS), labeled)
    assert_close(fit_labeled_mixture(blocks, da.from_array(y, chunks=70), **OPTIONS), labeled)
    frame = dd.from_pandas(pd.DataFrame(X).add_prefix("x").assign(fault=y), npartitions=5)
    frame_source = chunks.from_dask(frame, label="fault")
    assert frame_source.feature_names == ("x0", "x1", "x2")
    assert_close(fit_labeled_mixture(frame_source, client=client, **OPTIONS), labeled)
    assert_close(fit_mixture(blocks, client=client, **OPTIONS), fit_mixture(X, **OPTIONS))


def test_data_larger_than_memory(client, folder, monkeypatch):
    files = chunks.from_files(folder, "fault")
    kept = fit_labeled_mixture(files, client=client, **OPTIONS)
    monkeypatch.setattr("mixda.chunks._cluster._MAX_MEMORY_FRACTION", 0.0)
    assert fit_labeled_mixture(files, client=client, **OPTIONS) == kept


def test_address(client, folder):
    files = chunks.from_files(folder, "fault")
    address = client.scheduler.address
    assert fit_labeled_mixture(files, client=address, **OPTIONS) == fit_labeled_mixture(
        files, **OPTIONS
    )


def deadly_partition(rows, when, log, pid=None):
    """Return a partition that kills a process, by default its own, when read for the n-th time."""

    class Deadly:  # local, so that it is sent by value: workers cannot import the tests
        def blocks(self):
            with log.open("a") as file:
                file.write("x")
            if log.stat().st_size == when:
                os.kill(pid or os.getpid(), signal.SIGKILL)
            return rows.blocks()

    return Deadly()


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_killed_worker(client, tmp_path, monkeypatch, share):
    monkeypatch.setattr("mixda.chunks._cluster._MAX_MEMORY_FRACTION", share)
    X, _, _ = blobs()
    rows = [RowBlock(X[k : k + 30]) for k in range(0, len(X), 30)]
    plain = chunks.RowSource(tuple(rows), 3, nbytes=X.nbytes)
    log = tmp_path / "log"
    when = 1 if share else 4  # read once and kept, or read in every pass: in the second iteration
    partitions = (*rows[:7], deadly_partition(rows[7], when, log), *rows[8:])
    found = fit_mixture(chunks.RowSource(partitions, 3, nbytes=X.nbytes), client=client, **OPTIONS)
    assert log.stat().st_size > when
    assert found == fit_mixture(plain, **OPTIONS)


def test_error_on_a_worker(client, folder):
    frame = pd.read_parquet(folder / "1.parquet")
    frame.loc[25, "b"] = np.nan
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, folder / "1.parquet", row_group_size=20)
    files = chunks.from_files(folder, "fault")
    with pytest.raises(
        ValueError, match=r"1.parquet, row group 2: column 'b' has no value in row 6"
    ):
        fit_labeled_mixture(files, client=client, **OPTIONS)


# --- unsuitable clusters ---------------------------------------------------------------------


def test_bad_address(folder, monkeypatch):
    monkeypatch.setattr("mixda.chunks._connection.CONNECT_SECONDS", 1)
    files = chunks.from_files(folder, "fault")
    for address in ("tcp://127.0.0.1:9", "nonsense://x:1", "tcp://no.such.host.invalid:8786"):
        with pytest.raises(ConnectionError, match="no Dask scheduler answers at"):
            fit_labeled_mixture(files, client=address, **OPTIONS)
    with pytest.raises(ValueError, match="client must be"):
        fit_labeled_mixture(files, client=3, **OPTIONS)


def test_other_version_on_workers(client, folder):
    def change(version):
        from mixda.chunks import _cluster

        before, _cluster.__version__ = _cluster.__version__, version
        return before

    before = client.run(change, "99.0")  # on the workers; the scheduler lives in this process
    try:
        with pytest.raises(ConnectionError, match=r"worker tcp.* mixda 99\.0"):
            fit_labeled_mixture(chunks.from_files(folder, "fault"), client=client, **OPTIONS)
    finally:
        client.run(change, next(iter(before.values())))


def test_lost_scheduler(tmp_path, monkeypatch):
    monkeypatch.setattr("mixda.chunks._cluster._MAX_MEMORY_FRACTION", 0.0)
    monkeypatch.setattr("mixda.chunks._cluster._CONNECT_SECONDS", 3)
    X, _, _ = blobs(n=60)
    file = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    scheduler = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)], **quiet
    )
    worker = None
    try:
        wait_for(lambda: file.exists() and file.stat().st_size)
        address = pd.read_json(file, typ="series")["address"]
        with pytest.raises(ConnectionError, match="has no workers"):
            fit_mixture(X, client=address, **OPTIONS)
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"], **quiet
        )
        monkeypatch.setattr("mixda.chunks._cluster._CONNECT_SECONDS", 30)
        part = deadly_partition(RowBlock(X), 3, tmp_path / "log", scheduler.pid)
        with pytest.raises(ConnectionError, match="was lost"):
            fit_mixture(chunks.RowSource((part,), 3), client=address, **OPTIONS)
    finally:
        for process in (scheduler, worker):
            if process is not None:
                process.kill()
                process.wait()


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)


def test_adapt_and_predict(client, tmp_path, monkeypatch):
    """The cluster gives the model and the predictions of this process, to the bit."""
    from mixda.workflow import adapt_files, predict_file

    monkeypatch.setattr("mixda.tables._parquet._MIN_ROWS_PER_PARTITION", 1)
    X, y, _ = blobs(900)
    for k, name in enumerate(("lab", "line", "plant")):
        frame = pd.DataFrame(X[k::3] + 0.2 * k, columns=list("abc")).assign(fault=y[k::3])
        part = pa.Table.from_pandas(frame, preserve_index=False)
        rows = 100 if name == "plant" else 300
        pq.write_table(part, tmp_path / f"{name}.parquet", row_group_size=rows)
    files = [tmp_path / f"{name}.parquet" for name in ("lab", "line", "plant")]
    predicted = []
    for where in (None, client):
        model = adapt_files(files[:2], files[2], "fault", method="wbt", max_rows=120, client=where)
        output = tmp_path / f"predicted-{where is None}"
        assert predict_file(model, files[2], output, client=where).rows == 300
        predicted.append(pq.read_table(output))
    assert len(list(output.glob("part-*"))) == 3
    assert predicted[0].equals(predicted[1])
