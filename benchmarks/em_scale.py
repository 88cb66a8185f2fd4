"""Fit a mixture to a folder of Parquet files on a Dask cluster: speed, scaling and memory.

    python benchmarks/em_scale.py write /tmp/rows --rows 100_000_000     # about 6.4 GB
    python benchmarks/em_scale.py run /tmp/rows [--iterations 5] [--out out/em_scale.json]

`run` fits with one and with two workers, alternating, so that both see the same load, and with
scikit-learn's GaussianMixture on a part that fits in memory. Speeds are given per second of wall
time and of processor time; the latter does not depend on the load. Memory is the peak resident set
size, sampled ten times a second.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import psutil

from mixda import Mixture, chunks, fit_mixture
from mixda.em._passes import SourcePasses

N_FEATURES, N_COMPONENTS = 16, 8
ROW_GROUP, ROWS_PER_FILE = 1_000_000, 10_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write")
    write.add_argument("folder", type=Path)
    write.add_argument("--rows", type=int, default=100_000_000)
    run = commands.add_parser("run")
    run.add_argument("folder", type=Path)
    run.add_argument("--iterations", type=int, default=5)
    run.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    run.add_argument("--rounds", type=int, default=1)
    run.add_argument("--sklearn-rows", type=int, default=2_000_000)
    run.add_argument("--out", type=Path, default=Path("out/em_scale.json"))
    simulate_ = commands.add_parser("simulate")
    simulate_.add_argument("--rows", type=int, default=1_000_000_000)
    simulate_.add_argument("--rate", type=float, required=True, help="rows per second and worker")
    simulate_.add_argument("--task", type=float, required=True, help="seconds per task")
    arguments = parser.parse_args()
    if arguments.command == "simulate":
        simulate(arguments.rows, arguments.rate, arguments.task)
        return
    if arguments.command == "write":
        write_parquet(arguments.folder, arguments.rows)
        return
    result = compare(arguments)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result, indent=1))
    print(json.dumps(result, indent=1))


def truth() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shape = (N_COMPONENTS, N_FEATURES)
    return 2.0 * rng.standard_normal(shape), rng.uniform(0.5, 1.5, shape)


def write_parquet(folder: Path, n_rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    means, stds = (a.astype(np.float32) for a in truth())
    schema = pa.schema([(f"x{k}", pa.float32()) for k in range(N_FEATURES)])
    for number, first in enumerate(range(0, n_rows, ROWS_PER_FILE)):
        path = folder / f"{number:03d}.parquet"
        with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
            for start in range(first, min(first + ROWS_PER_FILE, n_rows), ROW_GROUP):
                rng = np.random.default_rng(start)
                n = min(ROW_GROUP, n_rows - start)
                k = rng.integers(N_COMPONENTS, size=n)
                x = rng.standard_normal((N_FEATURES, n), dtype=np.float32)
                arrays = [pa.array(x[j] * stds[k, j] + means[k, j]) for j in range(N_FEATURES)]
                writer.write_table(pa.table(arrays, schema=schema), row_group_size=ROW_GROUP)
        print(path, flush=True)


def compare(arguments: argparse.Namespace) -> dict[str, object]:
    source = chunks.from_files(arguments.folder)
    n_rows = source.nbytes // 8 // N_FEATURES
    result: dict[str, object] = {"rows": n_rows, "load": [os.getloadavg()], "fits": []}
    result["sklearn"] = sklearn_speed(source, arguments.sklearn_rows)
    result["mixda in memory"] = memory_speed(source, arguments.sklearn_rows)
    for _ in range(arguments.rounds):
        for n_workers in arguments.workers:
            result["fits"].append(fit_on_cluster(source, n_rows, n_workers, arguments.iterations))
            result["load"].append(os.getloadavg())
            print(json.dumps(result["fits"][-1]), flush=True)
    return result


def simulate(n_rows: int, rate: float, task: float) -> None:
    """Print the simulated time of a pass with more workers than we have.

    Workers get whole partitions. The scheduler hands out tasks one at a time. Parameters are sent
    to the workers along a tree, and statistics are sent back along another.
    """
    n_parts, latency, bandwidth = -(-n_rows // ROW_GROUP), 2e-3, 1e8
    size = 8 * N_COMPONENTS * (2 * N_FEATURES + 1)
    print("| workers | reading and statistics | tasks | messages | pass | speed-up |")
    print("|---|---|---|---|---|---|")
    first = None
    for workers in (1, 10, 100):
        work = -(-n_parts // workers) * ROW_GROUP / rate
        tasks = n_parts * 8 / 7 * task
        hops = np.log2(workers + 1) + np.log(max(n_parts, 2)) / np.log(8)
        messages = hops * (latency + size / bandwidth)
        total = max(work, tasks) + messages  # tasks are scheduled while others run
        first = first or total
        cells = (f"{workers}", *(f"{s:.2f} s" for s in (work, tasks, messages, total)))
        print(f"| {' | '.join(cells)} | {first / total:.1f} |")


def fit_on_cluster(
    source: chunks.RowSource, n_rows: int, n_workers: int, iterations: int
) -> dict[str, object]:
    import distributed

    options = {"n_workers": n_workers, "threads_per_worker": 1, "memory_limit": "2GB"}
    seconds: list[tuple[float, float]] = []
    with (
        distributed.LocalCluster(dashboard_address=None, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        plain = SourcePasses.expectation

        def timed(self: SourcePasses, *args: object) -> object:
            before, begin = cpu(workers), time.perf_counter()
            stats = plain(self, *args)
            seconds.append((time.perf_counter() - begin, cpu(workers) - before))
            return stats

        SourcePasses.expectation = timed
        try:
            begin = time.perf_counter()
            with PeakMemory([psutil.Process(), *workers]) as peak:
                found = fit_mixture(
                    source,
                    N_COMPONENTS,
                    max_iter=iterations,
                    tol=0.0,
                    random_state=0,
                    client=client,
                )
            total = time.perf_counter() - begin
        finally:
            SourcePasses.expectation = plain
    clock, processor = np.median(seconds, axis=0)
    return {
        "workers": n_workers,
        "seconds in all": round(total, 1),
        "seconds per iteration": [round(s, 2) for s, _ in seconds],
        "rows per second": round(n_rows / clock),
        "rows per processor second": round(n_rows / processor),
        "peak MB of driver and workers": [round(b / 2**20) for b in peak.bytes],
        "error of the means": float(error_of(found)),
    }


def error_of(found: Mixture) -> float:
    means = truth()[0]
    return np.max(np.min(np.abs(found.means[None] - means[:, None]).max(axis=2), axis=1))


def cpu(processes: list[psutil.Process]) -> float:
    return sum(sum(p.cpu_times()[:2]) for p in processes)


class PeakMemory:
    def __init__(self, processes: list[psutil.Process]) -> None:
        self.processes, self.bytes = processes, [0] * len(processes)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def _sample(self) -> None:
        while not self._stop.wait(0.1):
            sizes = [p.memory_info().rss for p in self.processes]
            self.bytes = [max(pair) for pair in zip(self.bytes, sizes, strict=True)]

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def part_in_memory(source: chunks.RowSource, n_rows: int) -> tuple[np.ndarray, Mixture]:
    blocks, n = [], 0
    for partition in source.partitions:
        for block in partition.blocks():
            blocks.append(block.X)
            n += len(block.X)
        if n >= n_rows:
            break
    X = np.ascontiguousarray(np.vstack(blocks)[:n_rows])
    weights = np.full(N_COMPONENTS, 1 / N_COMPONENTS)
    return X, Mixture(weights, X[:N_COMPONENTS], np.ones((N_COMPONENTS, N_FEATURES)))


def sklearn_speed(source: chunks.RowSource, n_rows: int) -> dict[str, float]:
    from sklearn.mixture import GaussianMixture

    X, start = part_in_memory(source, n_rows)

    def run(n_iter: int) -> None:
        model = GaussianMixture(
            N_COMPONENTS,
            covariance_type="diag",
            tol=0.0,
            max_iter=n_iter,
            weights_init=start.weights,
            means_init=start.means,
            precisions_init=start.stds**-2.0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)

    return speed(run, n_rows)


def memory_speed(source: chunks.RowSource, n_rows: int) -> dict[str, float]:
    X, start = part_in_memory(source, n_rows)
    return speed(lambda n_iter: fit_mixture(X, init=start, max_iter=n_iter, tol=0.0), n_rows)


def speed(run, n_rows: int) -> dict[str, float]:
    times = {}
    for n_iter in (2, 6):
        begin, processor = time.perf_counter(), time.process_time()
        run(n_iter)
        times[n_iter] = np.array([time.perf_counter() - begin, time.process_time() - processor])
    clock, processor = (times[6] - times[2]) / 4
    return {
        "rows": n_rows,
        "rows per second": round(n_rows / clock),
        "rows per processor second": round(n_rows / processor),
    }


if __name__ == "__main__":
    main()
