"""Take files through fit, adapt and predict on a local Dask cluster, and kill a worker midway.

    python benchmarks/any_size.py --rows 1000000 [--features 16] [--folder /tmp/any_size]

Two labeled domains and a target of `--rows` rows each are written as Parquet files. Two worker
processes of one thread and 2 GB each run ``mixda fit``, ``mixda adapt`` (auto) and
``mixda predict`` into a folder. During adapt and during predict, one worker is killed with SIGKILL;
the nanny starts another. The same commands then run without a cluster. The script prints the
processor time and the peak memory of each process, and whether both runs predict the same.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

CLASSES = np.array(["ok", "inner", "outer", "ball"])
SHIFTS = {"lab": 0.3, "line": 0.6, "plant": 1.0}
ROWS_PER_GROUP = 70_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each domain")
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--max-rows", type=int, default=100_000, help="of a domain in memory")
    parser.add_argument("--kill-after", type=float, default=5.0, help="seconds of the workers")
    parser.add_argument("--folder", type=Path, default=Path("out/any_size"))
    parser.add_argument("--no-reference", action="store_true", help="do not run without a cluster")
    arguments = parser.parse_args()
    folder = arguments.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for seed, (name, shift) in enumerate(SHIFTS.items()):
        write_domain(folder / f"{name}.parquet", arguments.rows, arguments.features, shift, seed)
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    print(f"{3 * arguments.rows:,} rows x {arguments.features}, {size / 1e9:.2f} GB of Parquet")
    print("| command | killed | wall s | driver: cpu s | peak MB | workers: peak MB |")
    print("|---|---|---|---|---|---|")
    on_cluster(folder, arguments)
    if not arguments.no_reference:
        for command in commands(folder, "alone", arguments):
            row(command, "", *run(command), "")
        print(compare(folder))


def commands(folder: Path, name: str, arguments: argparse.Namespace) -> list[list[str]]:
    lab, line, plant = (str(folder / f"{domain}.parquet") for domain in SHIFTS)
    model = str(folder / f"{name}.mixda")
    options = ["--method", arguments.method, "--max-rows", str(arguments.max_rows)]
    return [
        ["fit", lab, "--label", "fault", "-o", str(folder / f"{name}.gmm")],
        ["adapt", lab, line, "--target", plant, "--label", "fault", "-o", model, *options],
        ["predict", model, plant, "-o", str(folder / f"{name}-predicted")],
    ]


def on_cluster(folder: Path, arguments: argparse.Namespace) -> None:
    from distributed import LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with LocalCluster(**options, memory_limit="2GB", dashboard_address=None) as cluster:
        for command in commands(folder, "cluster", arguments):
            after = np.inf if command[0] == "fit" else arguments.kill_after
            watch = Watch(cluster, after)
            result = run([*command, "--scheduler", cluster.scheduler_address], watch)
            killed = f"worker {watch.killed}" if watch.killed else ""
            row(command, killed, *result, f"{watch.peak / 1e6:.0f}")


def run(command: list[str], watch: Watch | None = None) -> tuple[float, float, float]:
    """Run a command of mixda; return wall seconds, processor seconds and peak megabytes."""
    code = (
        "import sys, resource; from mixda.cli import run; code = run(sys.argv[1:]);"
        "use = resource.getrusage(resource.RUSAGE_SELF);"
        "print('USE', use.ru_utime + use.ru_stime, use.ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    start = time.monotonic()
    if watch is not None:
        watch.start()
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        capture_output=True,
        text=True,
        check=False,
    )
    if watch is not None:
        watch.stop()
    if done.returncode:
        sys.exit(f"mixda {' '.join(command)} failed:\n{done.stderr}")
    use = next(line for line in done.stderr.splitlines() if line.startswith("USE")).split()
    return time.monotonic() - start, float(use[1]), float(use[2]) / 1024


class Watch:
    """Measures the memory of the workers, and kills one of them after the first tasks."""

    def __init__(self, cluster: object, kill_after: float) -> None:
        self._cluster, self._kill_after = cluster, kill_after
        self.peak, self.killed = 0, 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._running = True

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._running = False
        self._thread.join()

    def _watch(self) -> None:
        busy = 0.0
        first = sum(cpu_seconds(pid) for pid in self._pids())
        while self._running:
            pids = self._pids()
            self.peak = max([self.peak, *(peak_bytes(pid) for pid in pids)])
            busy = sum(cpu_seconds(pid) for pid in pids) - first
            if not self.killed and busy > self._kill_after and pids:
                self.killed = pids[0]
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


def row(
    command: list[str], killed: str, wall: float, cpu: float, peak: float, workers: str
) -> None:
    print(
        f"| {command[0]} | {killed} | {wall:.0f} | {cpu:.0f} | {peak:.0f} | {workers} |", flush=True
    )


def compare(folder: Path) -> str:
    import pyarrow.parquet as pq

    tables = [pq.read_table(folder / f"{name}-predicted") for name in ("cluster", "alone")]
    labels = [np.asarray(table["label"]) for table in tables]
    confidence = [table["confidence"].to_numpy() for table in tables]
    truth = np.asarray(pq.read_table(folder / "plant.parquet", columns=["fault"])["fault"])
    return (
        f"\nsame labels: {(labels[0] == labels[1]).mean():.6%}, largest difference of confidence: "
        f"{np.abs(confidence[0] - confidence[1]).max():.2g}, accuracy: "
        f"{(labels[0] == truth).mean():.4f}; peak of this script: "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )


def write_domain(path: Path, n: int, d: int, shift: float, seed: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    centers = np.random.default_rng(7).normal(0, 2, (len(CLASSES), 2, d))
    rng = np.random.default_rng(seed)
    writer = None
    for start in range(0, n, ROWS_PER_GROUP):
        m = min(ROWS_PER_GROUP, n - start)
        y, part = rng.integers(len(CLASSES), size=m), rng.integers(2, size=m)
        X = centers[y, part] + rng.normal(0, 1.2, (m, d)) + shift * np.sin(np.arange(d) + seed)
        columns = {f"x{j:02d}": X[:, j].astype(np.float32) for j in range(d)}
        table = pa.table({**columns, "fault": CLASSES[y]})
        writer = writer or pq.ParquetWriter(path, table.schema, compression="none")
        writer.write_table(table)
    if writer is not None:
        writer.close()


if __name__ == "__main__":
    main()
