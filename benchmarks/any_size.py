"""Take files through fit, adapt and predict on a local Dask cluster, and kill a worker midway.

    python benchmarks/any_size.py --rows 3000000 [--features 16] [--folder /tmp/any_size]

Two labeled domains and a target, `--rows` rows in total, are written as folders of Parquet files.
Two worker processes of one thread and 2 GB each run ``mixda fit`` on all rows, ``mixda adapt``
(auto) and ``mixda predict`` of the target into a folder. During adapt and during predict, one
worker is killed with SIGKILL; the nanny starts another. The same commands then run without a
cluster and without a kill. With ``--no-reference``, only the last file of the target is predicted
again. The script prints processor time and peak memory of each process, the lines of progress and
all other lines on standard error, and whether both runs predict the same.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

CLASSES = np.array(["ok", "inner", "outer", "ball"])
SHIFTS = {"lab": 0.3, "line": 0.6, "plant": 1.0}
ROWS_PER_GROUP = 250_000
GROUPS_PER_FILE = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows of all domains")
    parser.add_argument("--target-rows", type=int, help="of these, rows of the target; a third")
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--max-rows", type=int, default=100_000, help="of a domain in memory")
    parser.add_argument("--kill-after", type=float, default=20.0, help="seconds of the workers")
    parser.add_argument("--folder", type=Path, default=Path("out/any_size"))
    parser.add_argument("--no-reference", action="store_true", help="do not run without a cluster")
    arguments = parser.parse_args()
    folder = arguments.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    n_target = arguments.target_rows or arguments.rows // 3
    n_source = (arguments.rows - n_target) // 2
    sizes = [n_source, arguments.rows - n_target - n_source, n_target]
    for seed, (n, (name, shift)) in enumerate(zip(sizes, SHIFTS.items(), strict=True)):
        write_domain(folder / name, n, arguments.features, shift, seed)
    size = sum(path.stat().st_size for path in folder.glob("*/*.parquet"))
    print(f"{arguments.rows:,} rows x {arguments.features}, {size / 1e9:.2f} GB of Parquet")
    print(
        "| command | killed | wall s | driver: cpu s | peak MB | workers: cpu s | peak MB "
        "| progress | other lines |"
    )
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    on_cluster(folder, arguments)
    if arguments.no_reference:
        last = sorted((folder / "plant").iterdir())[-1]
        model = str(folder / "cluster.mixda")
        row("predict one file", run(["predict", model, str(last), "-o", str(folder / "alone")]))
    else:
        for command in commands(folder, "alone", arguments):
            row(f"{command[0]} alone", run(command))
    print(compare(folder))


def commands(folder: Path, name: str, arguments: argparse.Namespace) -> list[list[str]]:
    lab, line, plant = (str(folder / domain) for domain in SHIFTS)
    model = str(folder / f"{name}.mixda")
    options = ["--method", arguments.method, "--max-rows", str(arguments.max_rows)]
    return [
        ["fit", lab, line, plant, "--label", "fault", "-o", str(folder / f"{name}.gmm")],
        ["adapt", lab, line, "--target", plant, "--label", "fault", "-o", model, *options],
        ["predict", model, plant, "-o", str(folder / name)],
    ]


def on_cluster(folder: Path, arguments: argparse.Namespace) -> None:
    from distributed import LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with LocalCluster(**options, memory_limit="2GB", dashboard_address=None) as cluster:
        for command in commands(folder, "cluster", arguments):
            after = np.inf if command[0] == "fit" else arguments.kill_after
            watch = Watch(cluster, after)
            use = run([*command, "--scheduler", cluster.scheduler_address], watch)
            row(command[0], use, watch)


@dataclass(frozen=True)
class Use:
    """Seconds, megabytes and lines on standard error of a command."""

    wall: float
    cpu: float
    peak: float
    progress: int
    others: list[str]


def run(command: list[str], watch: Watch | None = None) -> Use:
    code = (
        "import sys, resource; from mixda.cli import run; code = run(sys.argv[1:]);"
        "use = resource.getrusage(resource.RUSAGE_SELF);"
        "peak = [l for l in open('/proc/self/status') if l.startswith('VmHWM')][0].split()[1];"
        "print('USE', use.ru_utime + use.ru_stime, peak, file=sys.stderr); sys.exit(code)"
    )
    start = time.monotonic()
    if watch is not None:
        watch.start()
    call = [sys.executable, "-c", code, *command]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if watch is not None:
        watch.stop()
    if done.returncode:
        sys.exit(f"mixda {' '.join(command)} failed:\n{done.stderr}")
    *lines, last = done.stderr.splitlines()
    others = [line for line in lines if not line.startswith("mixda: ")]
    _, cpu, peak = last.split()
    wall, progress = time.monotonic() - start, len(lines) - len(others)
    return Use(wall, float(cpu), float(peak) / 1024, progress, others)


class Watch:
    """Measures the memory of the workers, and kills one of them after the first tasks."""

    def __init__(self, cluster: object, kill_after: float) -> None:
        self._cluster, self._kill_after = cluster, kill_after
        self.peak, self.killed, self.cpu = 0, 0, 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._running = True

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._running = False
        self._thread.join()

    def _watch(self) -> None:
        first = {pid: cpu_seconds(pid) for pid in self._pids()}
        busy: dict[int, float] = {}
        while self._running:
            for pid in self._pids():
                self.peak = max(self.peak, peak_bytes(pid))
                busy[pid] = max(busy.get(pid, 0.0), cpu_seconds(pid) - first.get(pid, 0.0))
            self.cpu = sum(busy.values())
            if not self.killed and self.cpu > self._kill_after:
                self.killed = next(iter(self._pids()), 0)
                os.kill(self.killed, signal.SIGKILL)
            time.sleep(0.2)

    def _pids(self) -> list[int]:
        workers = list(self._cluster.workers.values())  # type: ignore[attr-defined]
        return [nanny.pid for nanny in workers if getattr(nanny, "pid", None)]


def peak_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * int(next((l.split()[1] for l in lines if l.startswith("VmHWM")), 0))


def cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def row(name: str, use: Use, watch: Watch | None = None) -> None:
    killed = "one worker" if watch is not None and watch.killed else ""
    workers = " | " if watch is None else f"{watch.cpu:.0f} | {watch.peak / 1e6:.0f}"
    print(
        f"| {name} | {killed} | {use.wall:.0f} | {use.cpu:.0f} | {use.peak:.0f} | {workers} "
        f"| {use.progress} | {len(use.others)} |",
        flush=True,
    )
    for line in use.others[:20]:
        print(f"    {line}")


def compare(folder: Path) -> str:
    """Compare the predictions of both runs, file by file; where one has fewer, its last ones."""
    import pyarrow.parquet as pq

    parts = [sorted((folder / name).glob("part-*.parquet")) for name in ("cluster", "alone")]
    truths = sorted((folder / "plant").iterdir())
    right = sum(
        int((np.asarray(pq.read_table(file, columns=["label"])["label"]) == truth).sum())
        for file, truth in zip(parts[0], _labels(truths), strict=True)
    )
    n, m = (sum(pq.read_metadata(file).num_rows for file in files) for files in parts)
    n_other, largest = 0, 0.0
    for pair in zip(parts[0][-len(parts[1]) :], parts[1], strict=True):
        one, other = (pq.read_table(file) for file in pair)
        n_other += sum(
            int((np.asarray(one[name]) != np.asarray(other[name])).sum())
            for name in ("label", "far")
        )
        gap = one["confidence"].to_numpy() - other["confidence"].to_numpy()
        largest = max(largest, float(np.abs(gap).max()))
    return (
        f"\naccuracy {right / n:.4f} over {n:,} rows; of {m:,} rows predicted in both runs, labels "
        f"and outliers differ in {n_other}, confidence by at most {largest:.1g}"
    )


def _labels(files: list[Path]) -> Iterator[np.ndarray]:
    import pyarrow.parquet as pq

    for path in files:
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            yield np.asarray(file.read_row_group(group, columns=["fault"])["fault"])


def write_domain(folder: Path, n: int, d: int, shift: float, seed: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    centers = np.random.default_rng(7).normal(0, 2, (len(CLASSES), 2, d))
    rng = np.random.default_rng(seed)
    writer = None
    for k, start in enumerate(range(0, n, ROWS_PER_GROUP)):
        m = min(ROWS_PER_GROUP, n - start)
        y, part = rng.integers(len(CLASSES), size=m), rng.integers(2, size=m)
        X = rng.standard_normal((m, d), dtype=np.float32) * np.float32(1.2)
        X += (centers[y, part] + shift * np.sin(np.arange(d) + seed)).astype(np.float32)
        columns = {f"x{j:02d}": X[:, j] for j in range(d)}
        table = pa.table({**columns, "fault": CLASSES[y]})
        if k % GROUPS_PER_FILE == 0:
            if writer is not None:
                writer.close()
            path = folder / f"{k // GROUPS_PER_FILE:05d}.parquet"
            writer = pq.ParquetWriter(path, table.schema, compression="none")
        writer.write_table(table)
    if writer is not None:
        writer.close()


if __name__ == "__main__":
    main()
