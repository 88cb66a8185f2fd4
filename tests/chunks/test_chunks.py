"""Fits of row sources: the same mixture as in memory, for every kind of source and executor."""

from __future__ import annotations

import subprocess
import sys
import time
from unittest.mock import ANY

import numpy as np
import pandas as pd
import pytest

from mixda import MixdaError, Mixture, chunks, fit_domains, fit_labeled_mixture, fit_mixture
from mixda.chunks._sums import tree_sum

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def blobs(n=740, d=5, k=4, seed=0):
    rng = np.random.default_rng(seed)
    means = 4.0 * rng.standard_normal((k, d))
    y = rng.integers(k, size=n)
    X = means[y] + rng.uniform(0.3, 1.5, (k, d))[y] * rng.standard_normal((n, d))
    return (
        X,
        np.array(["ok", "slip", "wear", "leak"])[y],
        np.array(["a", "b"])[rng.integers(2, size=n)],
    )


def assert_close(p, q, tol=1e-8):
    assert p.n_components == q.n_components
    np.testing.assert_allclose(p.weights, q.weights, rtol=0, atol=tol)
    np.testing.assert_allclose(p.means, q.means, rtol=0, atol=tol)
    np.testing.assert_allclose(p.stds, q.stds, rtol=0, atol=tol)
    if q.labels is not None:
        np.testing.assert_array_equal(p.labels, q.labels)
        assert p.classes.tolist() == q.classes.tolist()


def frame_of(X, y, domain):
    return pd.DataFrame(X, columns=list("abcde")[: X.shape[1]]).assign(fault=y, site=domain)


def write_parquet(folder, frame, files=3, row_group_size=50):
    folder.mkdir(exist_ok=True)
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), files)):
        table = pa.Table.from_pandas(frame.iloc[rows], preserve_index=False)
        pq.write_table(table, folder / f"{k}.parquet", row_group_size=row_group_size)
    return folder


# --- equality --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 4},
        {"n_components": 3, "n_init": 2, "max_iter": 8},
        {"n_components": "bic", "max_components": 6, "max_iter": 8},
        {"n_components": 4, "tol": 0.0, "max_iter": 30},
    ],
)
@pytest.mark.parametrize("rows", [20, 740])
def test_partition_size_does_not_matter(options, rows):
    X, y, _ = blobs()
    source = chunks.from_arrays(X, y, rows=rows)  # 37 partitions, or one
    assert_close(
        fit_mixture(source, random_state=0, **options), fit_mixture(X, random_state=0, **options)
    )
    assert_close(
        fit_labeled_mixture(source, random_state=0, **options),
        fit_labeled_mixture(X, y, random_state=0, **options),
    )


def test_init_rows_do_not_depend_on_partitions(monkeypatch):
    monkeypatch.setattr("mixda.em._search._MAX_INIT_ROWS", 80)
    X, y, _ = blobs()
    for rows in (7, 90, 740):
        source = chunks.from_arrays(X, y, rows=rows)
        mixture = fit_labeled_mixture(source, n_components=3, random_state=5, max_iter=1)
        assert_close(mixture, fit_labeled_mixture(X, y, 3, random_state=5, max_iter=1))


@pytest.mark.parametrize("labeled", [False, True])
def test_weights(labeled):
    X, y, _ = blobs()
    weight = np.random.default_rng(0).uniform(0, 3, len(X)).round()  # some of them zero
    weight[y == "leak"] = 0
    options = {"sample_weight": weight, "random_state": 0}
    one = fit_labeled_mixture(X, y, 2, **options) if labeled else fit_mixture(X, 4, **options)
    options |= {"n_jobs": 1, "chunk_size": 33}
    many = fit_labeled_mixture(X, y, 2, **options) if labeled else fit_mixture(X, 4, **options)
    assert_close(many, one)


def test_init_and_min_std():
    X, _, _ = blobs()
    start = Mixture(np.full(3, 1 / 3), X[:3], np.full((3, 5), 2.0))
    options = {"init": start, "min_std": [0.5, 1, 1, 2, 0.1], "max_iter": 7}
    source = chunks.from_arrays(X, rows=50)
    assert_close(fit_mixture(source, **options), fit_mixture(X, **options))


def test_domains_are_independent():
    X, y, domain = blobs()
    source = chunks.from_arrays(X, y, domain, rows=41)
    found = fit_domains(source, 2, random_state=3)
    assert list(found) == ["a", "b"]
    for name, mixture in found.items():
        rows = domain == name
        assert_close(mixture, fit_labeled_mixture(X[rows], y[rows], 2, random_state=3))
    unlabeled = fit_domains(chunks.from_arrays(X, None, domain, rows=41), 3, random_state=3)
    assert_close(unlabeled["b"], fit_mixture(X[domain == "b"], 3, random_state=3))


def test_standardize():
    X, y, _ = blobs()
    X = X * [1e3, 1.0, 1e-4, 1.0, 0.0] + [0, 0, 0, 0, 7.0]  # units differ, one is constant
    scale = np.where(X.std(axis=0) > 1e-9, X.std(axis=0), 1.0)
    Z = (X - X.mean(axis=0)) / scale
    alone = fit_labeled_mixture(Z, y, 2, random_state=0)
    found = fit_domains(chunks.from_arrays(X, y, rows=50), 2, standardize=True, random_state=0)
    np.testing.assert_allclose(found[None].stds / scale, alone.stds, rtol=1e-7)
    np.testing.assert_allclose((found[None].means - X.mean(axis=0)) / scale, alone.means, atol=1e-7)


def test_large_offset():
    X, y, _ = blobs()
    X = np.round(X * 2**20) / 2**20  # exact after the shift, so only arithmetic differs
    plain, moved = (
        fit_labeled_mixture(chunks.from_arrays(Z, y, rows=37), n_components=2, random_state=0)
        for Z in (X, X + 1e7)
    )
    np.testing.assert_allclose(moved.stds, plain.stds, rtol=1e-7)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_joblib_is_identical(tmp_path, n_jobs):
    X, y, domain = blobs()
    folder = write_parquet(tmp_path / "data", frame_of(X, y, domain))
    source = chunks.from_files(folder, "fault")
    options = {"n_components": 2, "random_state": 0, "max_iter": 3}
    here = fit_labeled_mixture(source, **options)
    assert fit_labeled_mixture(source, n_jobs=n_jobs, **options) == here


def test_previous_names():
    source = chunks.from_arrays(np.zeros((4, 1)), rows=2)
    assert isinstance(source, chunks.ChunkSource)
    assert source.parts is source.partitions


def test_tree_sum():
    for n in (1, 7, 8, 9, 64, 65, 600):
        text = tree_sum((f"{k}," for k in range(n)), lambda a, b: f"({a}{b})")
        assert text.replace("(", "").replace(")", "") == "".join(f"{k}," for k in range(n))
    assert tree_sum(["a"] * 9, lambda a, b: f"({a}{b})") == "((((((((aa)a)a)a)a)a)a)a)"


def test_stepwise():
    X, _, _ = blobs(n=4000)
    source = chunks.from_arrays(X, rows=100)
    start = Mixture(np.full(4, 0.25), X[:4], np.full((4, 5), X.std()))
    options = {"init": start, "tol": 0.0, "max_iter": 1}
    with_pass, without = (
        fit_mixture(source, stepwise=s, **options).score(X) for s in (True, False)
    )
    assert with_pass > without
    ends = [fit_mixture(source, 4, stepwise=s, random_state=0).score(X) for s in (True, False)]
    assert ends[0] == pytest.approx(ends[1], abs=1e-2)


# --- sources ---------------------------------------------------------------------------------


def test_files_of_every_kind(tmp_path, monkeypatch):
    monkeypatch.setattr("mixda.tables._parquet._MIN_ROWS_PER_PARTITION", 60)
    monkeypatch.setattr("mixda.chunks._rows._VALUES_PER_BLOCK", 2000)
    X, y, domain = blobs()
    frame = frame_of(X, y, domain)
    (tmp_path / "csv").mkdir()
    frame[:300].to_csv(tmp_path / "csv" / "1.csv", index=False)
    frame[300:].to_csv(tmp_path / "csv" / "2.csv", index=False)
    np.savez(tmp_path / "all.npz", X=X, y=y, d=domain)
    folder = write_parquet(tmp_path / "parquet", frame)
    assert len(chunks.from_files(folder).partitions) > 5
    options = {"random_state": 0, "max_iter": 4}
    alone = fit_labeled_mixture(X[domain == "a"], y[domain == "a"], 2, **options)
    for source in (
        chunks.from_files(tmp_path / "csv", "fault", "site"),
        chunks.from_files(tmp_path / "all.npz", "y", "d"),
        chunks.from_files(folder, "fault", "site"),
    ):
        assert_close(fit_domains(source, 2, **options)["a"], alone)
    np.save(tmp_path / "X.npy", X)
    for source in (
        chunks.from_files(tmp_path / "X.npy"),
        chunks.from_arrays(np.load(tmp_path / "X.npy", mmap_mode="r"), rows=50),
    ):
        assert_close(fit_mixture(source, 4, **options), fit_mixture(X, 4, **options))


def test_names_from_files(tmp_path):
    X, _, _ = blobs(n=60)
    folder = write_parquet(tmp_path / "data", frame_of(X, np.arange(60) % 11, "s"))
    found = fit_labeled_mixture(chunks.from_files(folder, "fault", columns=["b", "a"]))
    assert found.feature_names == ("b", "a")
    assert found.classes.tolist() == list(range(11))  # integers, in their own order


@pytest.mark.parametrize("weighted", [False, True])
def test_feature_names_and_info(weighted):
    X, y, _ = blobs(n=60)
    frame = pd.DataFrame(X, columns=list("abcde"))
    weight = np.arange(60) % 3 if weighted else None  # every third sample has weight zero
    for fit in (
        lambda **o: fit_mixture(frame, 2, **o),
        lambda **o: fit_labeled_mixture(frame, y, **o),
    ):
        for jobs in (None, 1):
            found = fit(sample_weight=weight, random_state=0, n_jobs=jobs)
            assert found.feature_names == tuple("abcde")
            n = 40 if weighted else 60
            assert found.info == {"n_samples": n, "smallest_component": ANY}


def test_from_batches():
    X, y, domain = blobs()
    cuts = [slice(k, k + 70) for k in range(0, len(X), 70)]
    one = fit_mixture(X, 4, random_state=0)
    for batches in (lambda: (X[c] for c in cuts), [X[c] for c in cuts], (X[c] for c in cuts)):
        assert_close(fit_mixture(chunks.from_batches(batches), 4, random_state=0), one)
    triples = chunks.from_batches((X[c], y[c], domain[c]) for c in cuts)
    alone = fit_labeled_mixture(X[domain == "b"], y[domain == "b"], random_state=0)
    assert_close(fit_domains(triples, random_state=0)["b"], alone)


@pytest.mark.parametrize("weight", [None, np.ones(40)])
def test_memory_map(tmp_path, weight):
    def mapped(X):
        np.save(tmp_path / "X.npy", X)
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
        return chunks.from_arrays(X, sample_weight=weight)

    small = np.random.default_rng(0).integers(0, 256, (40, 2)).astype(np.uint8)
    small[:, 1] = 7  # at the floor, which is wrong if differences of bytes wrap around
    assert_close(fit_mixture(mapped(small)), fit_mixture(small.astype(float)))
    with pytest.raises(MixdaError, match=r"^X .*infinite"):
        fit_mixture(mapped(np.r_[np.ones(39), np.inf][:, None]))


def test_missing_drop(tmp_path):
    X, y, domain = blobs()
    frame = frame_of(X, y, domain)
    frame.loc[[3, 500], "b"] = np.nan
    frame.loc[[7, 600], "fault"] = None
    folder = write_parquet(tmp_path / "data", frame)
    kept = np.setdiff1d(np.arange(len(X)), [3, 500, 7, 600])
    found = fit_labeled_mixture(
        chunks.from_files(folder, "fault", drop=["site"], missing="drop"),
        n_components=2,
        random_state=0,
    )
    assert_close(found, fit_labeled_mixture(X[kept], y[kept], 2, random_state=0))


# --- checkpoints -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"n_init": 2}, {"stepwise": True}])
def test_interrupted_fit_resumes(tmp_path, monkeypatch, options):
    X, y, domain = blobs()
    source = chunks.from_arrays(X, y, domain, rows=100)
    options = {"random_state": 0, "max_iter": 5, **options}
    whole = fit_domains(source, 3, **options)
    path = tmp_path / "fit.checkpoint"

    from mixda.em._passes import SourcePasses

    expectation, calls = SourcePasses.expectation, []

    def fails_sometimes(self, *args):
        calls.append(1)
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt
        return expectation(self, *args)

    monkeypatch.setattr(SourcePasses, "expectation", fails_sometimes)
    stops = 0
    while True:
        try:
            found = fit_domains(source, 3, checkpoint=path, **options)
            break
        except KeyboardInterrupt:
            stops += 1
            assert path.exists()
    assert stops > 1
    assert found == whole
    assert not path.exists()


KILLED = """
import sys, time
import mixda.em._passes as passes
from mixda import chunks, fit_labeled_mixture

e_step = passes.e_step
def slow(*args):
    time.sleep(0.02)
    return e_step(*args)
passes.e_step = slow
source = chunks.from_files(sys.argv[1], "fault", drop=["site"])
fit_labeled_mixture(source, None, 3, tol=0.0, max_iter=12, random_state=0, checkpoint=sys.argv[2])
"""


def test_killed_fit_resumes(tmp_path):
    folder, path = write_parquet(tmp_path / "data", frame_of(*blobs())), tmp_path / "c"
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(folder), str(path)])
    try:
        while child.poll() is None:
            time.sleep(0.01)
            if path.exists() and np.load(path)["0/iteration"] >= 3:
                child.kill()
    finally:
        child.kill()
        child.wait()
    assert path.exists()  # it was killed before it ended
    source = chunks.from_files(folder, "fault", drop=["site"])
    options = {"n_components": 3, "tol": 0.0, "max_iter": 12, "random_state": 0}
    assert fit_labeled_mixture(source, checkpoint=path, **options) == fit_labeled_mixture(
        source, **options
    )
    assert not path.exists()


def test_checkpoint_of_another_fit(tmp_path, monkeypatch):
    X, _, _ = blobs()
    path = tmp_path / "c"
    monkeypatch.setattr("mixda._core.resume.ResumeFile.remove", lambda self: None)
    fit_mixture(X, 2, random_state=0, checkpoint=path)
    for args in ((X + 1e-3, 2), (2.0 * X.mean(axis=0) - X, 2), (X, 3)):  # also if mirrored
        with pytest.raises(MixdaError, match="other data or settings"):
            fit_mixture(*args, random_state=0, checkpoint=path)
    path.write_bytes(b"something else")
    with pytest.raises(MixdaError, match="not a checkpoint"):
        fit_mixture(X, 2, random_state=0, checkpoint=path)
    with pytest.raises(MixdaError, match="random_state"):
        fit_mixture(X, 2, checkpoint=path)
    with pytest.raises(MixdaError, match="cannot be written"):
        fit_mixture(X, 2, random_state=0, checkpoint=tmp_path / "no" / "c")


# --- bad data --------------------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    monkeypatch.setattr("mixda.tables._parquet._MIN_ROWS_PER_PARTITION", 60)
    X, y, domain = blobs()
    frame = frame_of(X, y, domain)
    return frame, tmp_path / "data"


def message_of(folder, **options):
    with pytest.raises(MixdaError, match="parquet") as error:
        fit_labeled_mixture(chunks.from_files(folder, "fault", drop=["site"], **options))
    return str(error.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_bad_value(damaged, value):
    frame, folder = damaged
    frame.loc[247 + 103, "c"] = value  # of the second file, in its third row group
    write_parquet(folder, frame)
    message = message_of(folder)
    assert "1.parquet, row group 3: column 'c' has" in message
    assert "in row 4;" in message


def test_missing_label(damaged):
    frame, folder = damaged
    frame.loc[0, "fault"] = None
    write_parquet(folder, frame)
    assert "0.parquet, row group 1: column 'fault' has no value in row 1" in message_of(folder)


def test_changed_column_type(damaged):
    frame, folder = damaged
    write_parquet(folder, frame)
    frame["b"] = frame["b"].astype(str) + "x"
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "2.parquet")
    message = message_of(folder)
    assert "2.parquet" in message
    assert "'b'" in message


def test_truncated_file(damaged):
    frame, folder = damaged
    write_parquet(folder, frame)
    path = folder / "1.parquet"
    path.write_bytes(path.read_bytes()[:-500])
    assert "1.parquet cannot be read" in message_of(folder)


def test_damaged_file(damaged):
    frame, folder = damaged
    write_parquet(folder, frame)
    path = folder / "1.parquet"
    content = bytearray(path.read_bytes())
    content[5:3000] = bytes(2995)
    path.write_bytes(content)
    assert "1.parquet, row group 1 cannot be read" in message_of(folder)


def test_deleted_file(damaged):
    frame, folder = damaged
    write_parquet(folder, frame)
    source = chunks.from_files(folder, "fault", drop=["site"])
    (folder / "2.parquet").unlink()
    with pytest.raises(MixdaError, match=r"2\.parquet, row group 1 cannot be read: Failed to open"):
        fit_labeled_mixture(source, n_components=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: fit_mixture(chunks.from_arrays(X), 99), "n_components=99 .*20 sample"),
        (lambda X: fit_labeled_mixture(chunks.from_arrays(X)), "no classes"),
        (lambda X: fit_labeled_mixture(chunks.from_arrays(X, X[:, 0]), X[:, 0]), "y must be None"),
        (lambda X: fit_mixture(chunks.from_arrays(X), sample_weight=X[:, 0]), "sample_weight"),
        (lambda X: fit_domains(X), "mixda.chunks"),
        (lambda X: chunks.from_arrays(X, [1, 2]), "length 2"),
        (lambda X: chunks.from_batches([]), "nothing"),
        (lambda X: chunks.from_batches(iter([])), "nothing"),
        (lambda X: chunks.from_batches(3), "batches .*got int"),
        (lambda X: fit_mixture(chunks.from_batches([X, X[:, :1]])), "1 features"),
        (lambda X: fit_mixture(chunks.from_batches([X, X + np.inf])), "infinite"),
        (lambda X: fit_mixture(X, n_jobs=0), "n_jobs"),
        (lambda X: fit_mixture(X, n_jobs=1, client="tcp://x:1"), "n_jobs=1 and client"),
        (lambda X: fit_mixture(X, 2, n_init=2, stepwise=True), "stepwise"),
        (lambda X: fit_mixture(X * 1e-200, n_jobs=1), "rescale"),
    ],
)
def test_mistakes(call, message):
    X = np.arange(40.0).reshape(20, 2)
    with pytest.raises(MixdaError, match=message):
        call(X)


# --- the command line ------------------------------------------------------------------------


def test_command_line_from_disk(tmp_path, monkeypatch):
    pytest.importorskip("typer")
    from mixda.cli import run

    X, y, domain = blobs(n=60)  # six components where there are no classes
    folder = write_parquet(tmp_path / "data", frame_of(X * [1, 1, 1e3, 1, 1], y, domain))
    for extra in (
        ["--label", "fault", "--domain", "site", "--components", "1", "--allow-exposed-rows"],
        ["--drop", "fault,site"],
    ):
        command = ["fit", str(folder), "-q", *extra]
        assert run([*command, "-o", str(tmp_path / "a.gmm")]) == 0
        assert run([*command, "-o", str(tmp_path / "b.gmm"), "--n-jobs", "1"]) == 0
        monkeypatch.setattr("mixda.workflow._fit._LARGE_VALUES", 10)
        assert run([*command, "-o", str(tmp_path / "c.gmm"), "--resume"]) == 0
        monkeypatch.undo()
        for path in sorted(tmp_path.glob("a*.gmm")):
            memory = Mixture.load(path)
            for letter in "bc":
                disk = Mixture.load(path.with_name(letter + path.name[1:]))
                np.testing.assert_allclose(disk.weights, memory.weights, atol=1e-8)
                np.testing.assert_allclose(disk.means, memory.means, rtol=1e-8, atol=1e-8)
                np.testing.assert_allclose(disk.stds, memory.stds, rtol=1e-8)
                assert disk.feature_names == memory.feature_names
                assert disk.info == memory.info
    assert not list(tmp_path.glob("*.checkpoint"))


def test_command_line_without_scheduler(tmp_path, capsys, monkeypatch):
    pytest.importorskip("typer")
    pytest.importorskip("distributed")
    from mixda.cli import run

    monkeypatch.setattr("mixda.chunks._connection.CONNECT_SECONDS", 1)
    folder = write_parquet(tmp_path / "data", frame_of(*blobs()))
    output = tmp_path / "a.gmm"
    options = ["--label", "fault", "--drop", "site", "--scheduler", "tcp://127.0.0.1:9"]
    assert run(["fit", str(folder), "-o", str(output), *options]) == 2
    assert "no Dask scheduler answers at 'tcp://127.0.0.1:9'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [folder]  # nothing half-written


def test_other_working_directory(tmp_path, monkeypatch):
    write_parquet(tmp_path / "data", frame_of(*blobs()))
    monkeypatch.chdir(tmp_path)
    source = chunks.from_files("data", "fault", drop=["site"])
    monkeypatch.chdir("/")  # as a worker's may be
    assert fit_labeled_mixture(source).n_components == 4
