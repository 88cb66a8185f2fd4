"""Gas sensor drift in order of time: when does `monitor` raise the alarm, and does `update` help?

The first batches are labeled sources. The model is adapted to one half of the next batch; the other
half is held back, and later batches follow one by one. The model is stale (never changed), or
updated with each batch that raises an alarm. Labels of batches are used for the accuracies only.

    python benchmarks/monitor.py                         # the table of the documentation
    python benchmarks/monitor.py --methods GMMDaDiL --seeds 1
"""

import argparse
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from itertools import product

import numpy as np

import mixda
from mixda.datasets import load_published
from mixda.monitoring import monitor, update

N_SPLITS = 20  # of held-back rows against reference rows, per seed, for the false alarms
FALL = 0.05  # of the accuracy, after which there should have been an alarm


@dataclass
class Row:
    """What was seen on one batch, over seeds."""

    stale: list = field(default_factory=list)
    updated: list = field(default_factory=list)
    alarms: list = field(default_factory=list)
    moved: Counter = field(default_factory=Counter)
    n_moved: list = field(default_factory=list)
    estimated: list = field(default_factory=list)


def fit(method, sources, target, seed):
    X = np.concatenate([*(X for X, _ in sources), target])
    y = np.concatenate([*(y for _, y in sources), np.full(len(target), sources[0][1][0])])
    sizes = [*(len(X) for X, _ in sources), len(target)]
    ids = np.repeat([*range(len(sources)), -1], sizes)
    estimator = getattr(mixda, method)(random_state=seed).fit(X, y, sample_domain=ids)
    return estimator.to_model()


def accuracy(model, X, y):
    return float(np.mean(model.predict(X) == y))


def run(method, data, n_sources, seeds):
    names = list(data.domain_names)
    batches = [data.samples_of(name) for name in names]
    later = range(n_sources + 1, len(names))
    rows = {name: Row() for name in [f"{names[n_sources]}, held back", *names[n_sources + 1 :]]}
    false_alarms, in_time = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, y = batches[n_sources]
        seen, held = np.array_split(rng.permutation(len(X)), 2)
        bare = fit(method, batches[:n_sources], X[seen], seed)
        model = bare.with_reference(X[seen])
        start = accuracy(model, X[held], y[held])
        note(rows[f"{names[n_sources]}, held back"], model, model, X[held], y[held])
        for _ in range(N_SPLITS):  # other rows of the batch, in numbers from 30 to all held back
            some = rng.permutation(held)[: rng.integers(30, len(held))]
            false_alarms.append(monitor(model, X[some]).alarm)
        current, first_fall, first_alarm = model, None, None
        for k in later:
            current = note(rows[names[k]], model, current, *batches[k])
            if first_alarm is None and rows[names[k]].alarms[-1]:
                first_alarm = k
            if first_fall is None and rows[names[k]].stale[-1] < start - FALL:
                first_fall = k
        in_time.append(first_fall is None or (first_alarm or len(names)) <= first_fall)
    return rows, false_alarms, in_time


def note(row, stale, current, X, y):
    """Record one batch; return the model after it."""
    drift = monitor(stale, X)
    row.stale.append(accuracy(stale, X, y))
    row.alarms.append(drift.alarm)
    row.n_moved.append(sum(change.alarm for change in drift.columns))
    row.moved.update(change.name for change in drift.columns[:3] if change.alarm)
    if drift.accuracy is not None:
        row.estimated.append(drift.accuracy)
    if monitor(current, X).alarm:
        current = update(current, X)
    row.updated.append(accuracy(current, X, y))
    return current


def percent(values):
    return f"{100 * np.mean(values):.1f}" if len(values) else "–"


def table(title, rows, false_alarms, in_time, rst):
    head = ["batch", "alarm", "columns that moved", "moved most", "estimated", "stale", "updated"]
    lines = [
        [
            name,
            f"{sum(row.alarms)} of {len(row.alarms)}",
            f"{np.mean(row.n_moved):.0f}",
            ", ".join(name for name, _ in row.moved.most_common(3)) or "–",
            percent(row.estimated),
            percent(row.stale),
            percent(row.updated),
        ]
        for name, row in rows.items()
    ]
    says = (
        f"{title}: {sum(false_alarms)} false alarms in {len(false_alarms)} samples of held-back "
        f"rows; first alarm in time in {sum(in_time)} of {len(in_time)} runs."
    )
    if rst:
        cells = [head, *lines]
        body = [
            f"   {'* -' if k == 0 else '  -'} {cell}"
            for line in cells
            for k, cell in enumerate(line)
        ]
        return "\n".join([says, "", ".. list-table::", "   :header-rows: 1", "", *body, ""])
    widths = [max(len(line[k]) for line in [head, *lines]) for k in range(len(head))]
    text = [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True))
        for line in [head, *lines]
    ]
    return "\n".join([says, *text, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", default="GMMDaDiL,AutoMSDA", help="comma-separated")
    parser.add_argument("--sources", default="2,3", help="numbers of sources, comma-separated")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rst", help="file for the table of the documentation")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    data = load_published("gas_drift")
    pages = []
    for method, n in product(arguments.methods.split(","), arguments.sources.split(",")):
        start = time.perf_counter()
        results = run(method, data, int(n), arguments.seeds)
        title = f"{method} from {n} batches"
        print(table(title, *results, rst=False))
        print(f"({time.perf_counter() - start:.0f} s)\n", flush=True)
        pages.append(table(title, *results, rst=True))
    if arguments.rst:
        with open(arguments.rst, "w", encoding="utf-8") as file:
            file.write("\n".join(pages))


if __name__ == "__main__":
    main()
