"""Domains in order of time: does `monitor` raise the alarm when it should, and does `update` help?

The first domains of a set are labeled sources. The model is adapted to one half of the next domain;
the other half is held back, and later domains follow one by one. The model is stale (never
changed), or updated with each domain that raises an alarm. Labels of these domains are used for the
accuracies only.

    python benchmarks/monitor.py                         # the tables of the documentation
    python benchmarks/monitor.py --methods GMMDaDiL --sets electricity --seeds 1
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

SETS = {"gas_drift": 2, "electricity": 2, "wisdm": 6, "cstr": 3, "hydraulic": 1}  # and sources
DETAILED = "gas_drift"  # whose batches get a table of their own
MOST_LATER = 5  # domains
N_SAMPLES = 4  # of held-back rows, per seed, for the false alarms
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
    names = list(data.domain_names)[: n_sources + 1 + MOST_LATER]
    batches = [data.samples_of(name) for name in names]
    later = range(n_sources + 1, len(names))
    rows = {name: Row() for name in [f"{names[n_sources]}, held back", *names[n_sources + 1 :]]}
    significant, false_alarms, in_time = [], [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, y = batches[n_sources]
        seen, held = np.array_split(rng.permutation(len(X)), 2)
        model = fit(method, batches[:n_sources], X[seen], seed).with_reference(X[seen])
        start = accuracy(model, X[held], y[held])
        note(rows[f"{names[n_sources]}, held back"], model, model, X[held], y[held])
        for _ in range(N_SAMPLES):  # other rows of the batch, in numbers from 30 to all held back
            some = rng.permutation(held)[: rng.integers(30, len(held))]
            drift = monitor(model, X[some])
            false_alarms.append(drift.alarm)
            significant.append(min(change.p_value for change in drift.columns) <= drift.level)
        current, first_fall, first_alarm = model, None, None
        for k in later:
            current = note(rows[names[k]], model, current, *batches[k])
            if first_alarm is None and rows[names[k]].alarms[-1]:
                first_alarm = k
            if first_fall is None and rows[names[k]].stale[-1] < start - FALL:
                first_fall = k
        if first_fall is not None:
            in_time.append((first_alarm or len(names)) <= first_fall)
    return rows, significant, false_alarms, in_time


def note(row, stale, current, X, y):
    """Record one batch; return the model after it."""
    drift = monitor(stale, X)
    row.stale.append(accuracy(stale, X, y))
    row.alarms.append(drift.alarm)
    row.n_moved.append(sum(change.alarm for change in drift.columns))
    row.moved.update(sensor(change.name) for change in drift.columns[:10] if change.alarm)
    if drift.accuracy is not None:
        row.estimated.append(drift.accuracy)
    if monitor(current, X).alarm:
        current = update(current, X)
    row.updated.append(accuracy(current, X, y))
    return current


def sensor(column):
    """Return the sensor of a column of gas drift; each of the 16 sensors has eight."""
    return f"sensor {int(column[1:]) // 8 + 1}"


def percent(values):
    return f"{100 * np.mean(values):.1f}" if len(values) else "–"


def count(flags):
    return f"{sum(flags)} of {len(flags)}" if flags else "–"


def summary(method, name, n_sources, results):
    """Return a line of the table of all sets."""
    rows, significant, false_alarms, in_time = results
    later = list(rows.values())[1:]
    return [
        f"{name}, {n_sources} sources" if n_sources > 1 else f"{name}, 1 source",
        method,
        count(false_alarms),
        count(significant),
        count([alarm for row in later for alarm in row.alarms]),
        count(in_time),
        percent([accuracy for row in later for accuracy in row.stale]),
        percent([accuracy for row in later for accuracy in row.updated]),
    ]


def details(rows):
    """Return a line of the table of gas drift for each batch."""
    return [
        [
            name,
            count(row.alarms),
            f"{np.mean(row.n_moved):.0f}",
            ", ".join(name for name, _ in row.moved.most_common(3)) or "–",
            percent(row.estimated),
            percent(row.stale),
            percent(row.updated),
        ]
        for name, row in rows.items()
    ]


SUMMARY_HEAD = ["set", "method", "false alarms", "columns alone", "alarms later", "in time"]
SUMMARY_HEAD += ["stale", "updated"]
DETAILS_HEAD = ["batch", "alarm", "columns that moved", "moved most", "estimated", "stale"]
DETAILS_HEAD += ["updated"]


def as_text(head, lines):
    widths = [max(len(line[k]) for line in [head, *lines]) for k in range(len(head))]
    rows = (
        [cell.ljust(w) for cell, w in zip(line, widths, strict=True)] for line in [head, *lines]
    )
    return "\n".join("  ".join(row).rstrip() for row in rows)


def as_rst(head, lines):
    cells = [
        f"   {'* -' if k == 0 else '  -'} {cell}"
        for line in [head, *lines]
        for k, cell in enumerate(line)
    ]
    return "\n".join([".. list-table::", "   :header-rows: 1", "", *cells, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", default="GMMWBT,GMMDaDiL,AutoMSDA", help="comma-separated")
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--auto-seeds", type=int, default=3, help="for AutoMSDA, which is slow")
    parser.add_argument("--rst", help="file for the tables of the documentation")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lines, pages = [], []
    for method, name in product(arguments.methods.split(","), arguments.sets.split(",")):
        start = time.perf_counter()
        seeds = arguments.auto_seeds if method == "AutoMSDA" else arguments.seeds
        results = run(method, load_published(name), SETS[name], seeds)
        lines.append(summary(method, name, SETS[name], results))
        print(as_text(SUMMARY_HEAD, lines[-1:]))
        if name == DETAILED:
            print(as_text(DETAILS_HEAD, details(results[0])))
            title = f"{method}, gas drift from {SETS[name]} batches:"
            pages += [title, "", as_rst(DETAILS_HEAD, details(results[0]))]
        print(f"({time.perf_counter() - start:.0f} s)\n", flush=True)
    if arguments.rst:
        with open(arguments.rst, "w", encoding="utf-8") as file:
            file.write("\n".join([as_rst(SUMMARY_HEAD, lines), *pages]))


if __name__ == "__main__":
    main()
