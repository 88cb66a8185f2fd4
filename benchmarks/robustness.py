"""Attack mixda and count what gets through; every count in the last column must be zero.

    python benchmarks/robustness.py                     # 10,000 files, 100 kills: about an hour
    python benchmarks/robustness.py --files 200 --kills 5

Fuzzed files (mutated .gmm, .mixda, .npz and .csv), memory bombs, processes killed while they write,
rows exposed in mixtures, and faults of a Dask cluster. For the order of rows, sources and classes,
see benchmarks/order.py.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import mixda
from mixda.datasets import make_toy
from mixda.tables import open_table

Counts = Iterator[tuple[str, int, int]]  # attack, attempts, failures

MAX_BOMB_MEGABYTES = 200
TASK = make_toy(60, separation=2.5, random_state=0).as_task()


def main() -> None:
    """Run the attacks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--only", help="Comma-separated names of attacks.")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    attacks: dict[str, Callable[[Path], Counts]] = {
        "fuzz": lambda folder: fuzz(folder, arguments.files),
        "bombs": bombs,
        "kills": lambda folder: kills(folder, arguments.kills),
        "exposure": exposure,
        "dask": dask_faults,
    }
    chosen = arguments.only.split(",") if arguments.only else list(attacks)
    n_failures = 0
    print(f"{'attack':44s} {'attempts':>9s} {'failures':>9s} {'seconds':>8s}")
    for name in chosen:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            for attack, attempts, failures in attacks[name](Path(folder)):
                seconds = time.monotonic() - start
                print(f"{attack:44s} {attempts:9,d} {failures:9,d} {seconds:8.1f}", flush=True)
                n_failures += failures
                start = time.monotonic()
    sys.exit(int(n_failures > 0))


def fuzz(folder: Path, n: int) -> Counts:
    """Mutate files; each must be refused by a `MixdaError`, or hold what it held."""
    p = mixda.fit_labeled_mixture(TASK.X, TASK.y % 2, 2, random_state=0)
    p.save(folder / "a.gmm")
    fitted = mixda.GMMWBT(min_component_rows=5, random_state=0)
    fitted.fit(TASK.X, TASK.y, sample_domain=TASK.sample_domain).save(folder / "a.mixda")
    np.savez(folder / "a.npz", X=TASK.X, y=TASK.y)
    _write_csv(folder / "a.csv", TASK.X, TASK.y)
    rng = np.random.default_rng(0)
    readers = {"a.gmm": _gmm, "a.mixda": _model, "a.npz": _table, "a.csv": _table}
    for name, read in readers.items():
        data, path = (folder / name).read_bytes(), folder / f"mutated-{name}"
        whole = read(folder / name)
        failures = 0
        for _ in range(n // len(readers)):
            path.write_bytes(_mutated(data, rng))
            try:
                found = read(path)
                # data of users have no checksum, so other numbers are no failure there
                failures += read is not _table and found != whole
            except mixda.MixdaError:
                continue
            except BaseException as error:
                failures += 1
                print(f"  {name}: {type(error).__name__}: {error}", file=sys.stderr)
        yield f"fuzzed {name}", n // len(readers), failures


def _gmm(path: Path) -> bytes:
    return mixda.Mixture.load(path).means.tobytes()


def _model(path: Path) -> bytes:
    return mixda.AdaptedModel.load(path).predict_proba(TASK.X_target[:5]).tobytes()


def _table(path: Path) -> bytes:
    return open_table(path).read(None, "y").X.tobytes()


def _mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip, cut, repeat or overwrite some bytes."""
    array = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if not array:
            break
        place, size = int(rng.integers(len(array))), int(rng.integers(1, 64))
        kind = rng.integers(5)
        if kind == 0:
            array[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del array[place:]
        elif kind == 2:
            del array[place : place + size]
        elif kind == 3:
            array[place:place] = array[place : place + size]
        else:
            array[place : place + size] = rng.bytes(size)
    return bytes(array)


def bombs(folder: Path) -> Counts:
    """Open small files that would unpack to a gigabyte, and measure the memory that takes."""
    mixda.Mixture([1.0], [[0.0]], [[1.0]]).save(folder / "usual.gmm")
    _, usual = _peak_megabytes(folder / "usual.gmm")
    attempts = failures = 0
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive, archive.open("X.npy", "w") as member:
            for _ in range(100):
                member.write(bytes(10_000_000))
        lying = bytearray(buffer.getvalue())
        place = lying.index(b"PK\x01\x02")
        lying[place + 24 : place + 28] = struct.pack("<I", 1000)  # the size in the directory
        for data in (buffer.getvalue(), bytes(lying)):
            for name in ("a.gmm", "a.mixda", "a.npz"):
                (folder / name).write_bytes(data)
                code, peak = _peak_megabytes(folder / name)
                attempts += 1
                if code != 2 or peak > usual + MAX_BOMB_MEGABYTES:
                    failures += 1
                    print(f"  {name}, method {method}: exit {code}, {peak:.0f} MB", file=sys.stderr)
    yield "memory bombs", attempts, failures


def _peak_megabytes(path: Path) -> tuple[int, float]:
    """Return the exit code of ``mixda info`` and the memory that it took."""
    command = [sys.executable, "-m", "mixda", "info", str(path)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **quiet)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss / 1024


def kills(folder: Path, n: int) -> Counts:
    """Kill commands at random moments; the output must be old or new, and the next run clean."""
    rng = np.random.default_rng(0)
    _write_csv(folder / "a.csv", TASK.X[TASK.sample_domain == 1], TASK.y[TASK.sample_domain == 1])
    _write_csv(folder / "t.csv", np.tile(TASK.X_target, (400, 1)), None)
    model, output = str(folder / "m.mixda"), folder / "o.csv"
    adapt = ["adapt", str(folder / "a.csv"), "--target", str(folder / "t.csv"), "--label", "y"]
    _mixda(*adapt, "--method", "source", "-o", model, check=True)
    predict = ["predict", model, str(folder / "t.csv"), "-o", str(output), "--rows", "1000"]
    start = time.monotonic()
    _mixda(*predict, check=True)
    seconds, whole = time.monotonic() - start, output.read_bytes()
    torn = 0
    for _ in range(n):
        process = subprocess.Popen([sys.executable, "-m", "mixda", *predict, "-q"])
        time.sleep(float(rng.uniform(0.3, 1.0)) * seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
        torn += output.read_bytes() != whole
    yield "SIGKILLs: torn outputs", n, torn
    _mixda(*predict, check=True)
    left = [path for path in folder.iterdir() if path.name.endswith("-tmp")]
    yield "SIGKILLs: leftovers after the next run", n, len(left)


def exposure(folder: Path) -> Counts:
    """Look for rows of the data among the means of `mixda fit` with its defaults."""
    rng = np.random.default_rng(0)
    for n in (4, 5, 6, 9, 30):
        X, y = rng.normal(size=(8 * n, 4)), np.repeat(np.arange(8), n)
        _write_csv(folder / "a.csv", X, y)
        code = _fit(folder, "--label", "y").returncode
        failures = int(code != 2) if n < 5 else _exposed(folder / "a.gmm", X)
        yield f"rows exposed, classes of {n} rows", 8 * n, failures
    failures = 0
    for seed in range(20):
        X = np.vstack([rng.normal(size=(1000, 4)), rng.uniform(30, 60, size=(1, 4))])
        _write_csv(folder / "a.csv", X, None)
        _fit(folder, "--seed", str(seed), check=True)
        failures += _exposed(folder / "a.gmm", X)
    yield "rows exposed, an outlier among 1,000", 20, failures


def dask_faults(folder: Path) -> Counts:
    """Connect to nobody, to a silent server, and to a scheduler that is killed."""
    _write_csv(folder / "a.csv", TASK.X, TASK.y % 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        silent = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        addresses = {"nonsense": "nonsense", "nobody": "tcp://127.0.0.1:9", "silent": silent}
        for name, address in addresses.items():
            done = [
                _fit(folder, "--label", "y", "--scheduler", address),
                _mixda(*_bench(folder), "--dask", address),
            ]
            yield f"Dask: {name}", 2, sum(_is_noisy(process) for process in done)
    yield "Dask: scheduler killed during a benchmark", 1, int(_killed_scheduler(folder))


def _killed_scheduler(folder: Path) -> bool:
    """Whether a benchmark whose scheduler dies fails with more than one sentence."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    python = [sys.executable, "-m"]
    host = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    scheduler = subprocess.Popen([*python, "distributed.cli.dask_scheduler", *host], **quiet)
    address = f"tcp://127.0.0.1:{port}"
    worker = [*python, "distributed.cli.dask_worker", address, "--nthreads", "1"]
    workers = subprocess.Popen([*worker, "--nworkers", "2", "--death-timeout", "60"], **quiet)
    try:
        time.sleep(15)
        command = [*python, "mixda", *_bench(folder), "--seeds", "100", "--dask", address]
        bench = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while not list(folder.glob("bench/cells/*.json")) and bench.poll() is None:
            time.sleep(0.1)
        scheduler.kill()
        error = bench.communicate(timeout=120)[1]
        return bench.returncode != 2 or len(error.splitlines()) != 1
    finally:
        for process in (scheduler, workers):
            process.kill()
            process.wait()


def _bench(folder: Path) -> list[str]:
    return ["bench", "run", "toy", "--methods", "SourceOnly,GMMWBT", "--out", f"{folder}/bench"]


def _is_noisy(process: subprocess.CompletedProcess[str]) -> bool:
    return process.returncode != 2 or len(process.stderr.splitlines()) != 1


def _mixda(*arguments: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mixda", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=check, timeout=600)


def _fit(folder: Path, *options: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    return _mixda(
        "fit", str(folder / "a.csv"), *options, "-q", "-o", str(folder / "a.gmm"), check=check
    )


def _exposed(path: Path, X: np.ndarray) -> int:
    gaps = np.abs(X[:, None] - mixda.Mixture.load(path).means).max(axis=2)
    return int((gaps.min(axis=1) < 1e-6).sum())


def _write_csv(path: Path, X: np.ndarray, y: np.ndarray | None) -> None:
    names = [f"x{k}" for k in range(X.shape[1])] + ([] if y is None else ["y"])
    table = X if y is None else np.column_stack([X, y])
    np.savetxt(path, table, "%.17g", ",", header=",".join(names), comments="")


if __name__ == "__main__":
    main()
