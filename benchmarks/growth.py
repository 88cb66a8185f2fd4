"""Measure how time and memory grow with rows, features, classes, sources and components.

    python benchmarks/growth.py [--commands fit dadil auto predict] [--out out/growth.png]

One quantity grows at a time. Each point is a process of its own: ``fit``, ``adapt --method dadil``,
``adapt`` (auto) or ``predict`` on Parquet files. The time is that of the processor, without the
import of the libraries, so it hardly depends on the load; memory is the peak resident set size. The
table states the slope on a log-log scale over the largest half of the values, beside the theory.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BASE = {"rows": 20_000, "features": 16, "classes": 4, "sources": 2, "components": 3}
GRID = {
    "rows": [20_000, 80_000, 320_000, 1_280_000],
    "features": [8, 32, 128, 512],
    "classes": [2, 8, 32],
    "sources": [2, 4, 8, 16],
    "components": [2, 4, 8, 16],
}
# Slopes to expect of the time: EM and prediction are linear in each factor of n d K; beyond the
# size of the sample, only reading and EM of the committee grow with the rows.
THEORY = {
    "fit": {"rows": "1", "features": "1", "classes": "0", "sources": "–", "components": "1"},
    "dadil": {"rows": "1", "features": "1", "classes": "1-3", "sources": "1", "components": "1-3"},
    "auto": {"rows": "0-1", "features": "1", "classes": "1", "sources": "1-2", "components": "–"},
    "predict": {"rows": "1", "features": "1", "classes": "1", "sources": "–", "components": "1"},
}
UNUSED = {"fit": ("sources",), "auto": ("components",), "predict": ("sources",), "dadil": ()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commands", nargs="+", default=list(THEORY), choices=list(THEORY))
    parser.add_argument("--quantities", nargs="+", default=list(GRID), choices=list(GRID))
    parser.add_argument("--out", type=Path, default=Path("out/growth.png"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        print(json.dumps(child(**json.loads(arguments.child))))
        return
    print("| command | grows | values | processor s | slope | theory | peak MB | slope |")
    print("|---|---|---|---|---|---|---|---|")
    results: dict[str, dict[str, list[dict[str, float]]]] = {}
    for command in arguments.commands:
        for name in arguments.quantities:
            if name in UNUSED[command]:
                continue
            points = [measure(command, {**BASE, name: value}) for value in GRID[name]]
            results.setdefault(command, {})[name] = points
            show(command, name, points)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.with_suffix(".json").write_text(json.dumps(results, indent=1))
    draw(results, arguments.out)


def measure(command: str, sizes: dict[str, int]) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="growth-"))
    try:
        for k in range(sizes["sources"] + 1):
            write_domain(folder / f"d{k}.parquet", sizes, seed=k)
        if command == "predict":
            run_child("dadil", folder, {**sizes, "sources": 2})
        return run_child(command, folder, sizes)
    finally:
        shutil.rmtree(folder)


def run_child(command: str, folder: Path, sizes: dict[str, int]) -> dict[str, float]:
    given = json.dumps({"command": command, "folder": str(folder), "sizes": sizes})
    call = [sys.executable, __file__, "--child", given]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def child(command: str, folder: str, sizes: dict[str, int]) -> dict[str, float]:
    import sklearn.ensemble
    import sklearn.neural_network  # noqa: F401  # not part of the time

    from mixda import load
    from mixda.workflow import adapt_files, fit_files, predict_file

    paths = [f"{folder}/d{k}.parquet" for k in range(sizes["sources"] + 1)]
    start, idle = time.process_time(), peak()
    if command == "fit":
        fit_files(paths[0], "state", components=sizes["components"])
    elif command == "predict":
        predict_file(load(f"{folder}/m.mixda"), paths[-1], f"{folder}/p.parquet")
    else:
        options = {"components": sizes["components"]} if command == "dadil" else {}
        model = adapt_files(paths[:-1], paths[-1], "state", method=command, **options)
        seconds = time.process_time() - start
        model.save(f"{folder}/m.mixda")
        return {"seconds": seconds, "megabytes": peak(), "imports": idle}
    return {"seconds": time.process_time() - start, "megabytes": peak(), "imports": idle}


def peak() -> float:
    """Return the peak of this process; ru_maxrss would include that of its parent (Linux)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return float(line.split()[1]) / 1024


def write_domain(path: Path, sizes: dict[str, int], seed: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n, d, nc = sizes["rows"], sizes["features"], sizes["classes"]
    centers = np.random.default_rng(0).normal(0, 2, (nc, 2, d))
    rng = np.random.default_rng(seed + 1)
    y, part = rng.integers(nc, size=n), rng.integers(2, size=n)
    X = (centers[y, part] + rng.normal(size=(n, d)) + 0.3 * seed).astype(np.float32)
    columns = {f"x{j}": X[:, j] for j in range(d)}
    pq.write_table(pa.table({**columns, "state": np.char.add("c", y.astype(str))}), path)


def slope(values: list[int], numbers: list[float]) -> float:
    half = len(values) // 2
    return float(np.polyfit(np.log(values[-half - 1 :]), np.log(numbers[-half - 1 :]), 1)[0])


def show(command: str, name: str, points: list[dict[str, float]]) -> None:
    seconds, megabytes = ([p[key] for p in points] for key in ("seconds", "megabytes"))
    print(
        f"| {command} | {name} | {', '.join(f'{v:,}' for v in GRID[name])} "
        f"| {', '.join(f'{s:.2g}' for s in seconds)} | {slope(GRID[name], seconds):.2f} "
        f"| {THEORY[command][name]} | {', '.join(f'{m:.0f}' for m in megabytes)} "
        f"| {slope(GRID[name], megabytes):.2f} |",
        flush=True,
    )


def draw(results: dict[str, dict[str, list[dict[str, float]]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name in GRID if any(name in by_name for by_name in results.values())]
    size = (2.7 * len(names), 5.0)
    figure, axes = plt.subplots(
        2, len(names), figsize=size, sharex="col", sharey="row", layout="constrained", squeeze=False
    )
    for column, name in enumerate(names):
        for k, (command, by_name) in enumerate(results.items()):
            if name in by_name:
                for row, key in enumerate(("seconds", "megabytes")):
                    points = [point[key] for point in by_name[name]]
                    axes[row, column].loglog(GRID[name], points, f"C{k}o-", label=command)
        axes[1, column].set_xlabel(name)
        for ax in axes[:, column]:
            ax.grid(alpha=0.3)
            ax.set_xticks(GRID[name], [_short(value) for value in GRID[name]])
            ax.minorticks_off()
    axes[0, 0].set_ylabel("processor seconds")
    axes[1, 0].set_ylabel("peak MB")
    axes[1, 0].set_yticks([250, 500, 1000, 2000], ["250", "500", "1000", "2000"])
    lines, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=110)


def _short(value: int) -> str:
    """Return 1,280,000 as 1.28M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return str(value)


if __name__ == "__main__":
    main()
