"""Compare the deep methods in feature mode with source-only networks on real features.

Run ``MIXDA_DATA=... python benchmarks/deep_feature_mode.py``. Each domain in turn serves as the
target. Features are standardized per domain, or with the sources if ``--scale sources`` is given.
For each seed, all methods start from the same source-only network. "start" is this network;
"source-only" is trained for the additional epochs of the adaptation as well. Accuracies are those
of the last epoch on the unlabeled target used for adaptation, as mean ± standard deviation over
seeds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from mixda.benchmark import SUITES
from mixda.benchmark._suites import thin
from mixda.datasets import DomainDataset
from mixda.deep import KD3A, M3SDA, CoMDA, LtCMSDA

DATA = {
    "digits": "digits4",
    "office": "office-caltech",
    "surf": "office-caltech-surf",
    "gas": "gas-drift",
}
METHODS: dict[str, Callable[..., object]] = {
    "M3SDA": M3SDA,
    "M3SDA beta": lambda **options: M3SDA(variant="beta", **options),
    "LtC-MSDA": LtCMSDA,
    "KD3A": KD3A,
    "Co-MDA": CoMDA,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=["digits", "office"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--pretrain-epochs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=500, help="maximum number of rows per domain")
    parser.add_argument("--scale", default="domain")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name in arguments.data:
        compare(thin(SUITES[DATA[name]].load(), arguments.rows), arguments)


def compare(data: DomainDataset, arguments: argparse.Namespace) -> None:
    print(f"\n{data.description}: {data}\n{vars(arguments)}", flush=True)
    rows = ["start", "source-only", *arguments.methods]
    scores = {row: np.zeros((len(data.domain_names), arguments.seeds)) for row in rows}
    seconds = dict.fromkeys(rows, 0.0)
    for t, target in enumerate(data.domain_names):
        for seed in range(arguments.seeds):
            for row, (score, elapsed) in run(data, target, seed, arguments).items():
                scores[row][t, seed] = 100 * score
                seconds[row] += elapsed / scores[row].size
        print_rows(scores, rows, t, target)
    print(
        f"\n{'':12s}" + "".join(f"{name:>15s}" for name in (*data.domain_names, "average", "s/fit"))
    )
    for row in rows:
        cells = [
            f"{s.mean():8.2f} ±{s.std():5.2f}" for s in (*scores[row], scores[row].mean(axis=0))
        ]
        print(f"{row:12s}" + "".join(f"{cell:>15s}" for cell in cells) + f"{seconds[row]:15.1f}")


def run(
    data: DomainDataset, target: str, seed: int, arguments: argparse.Namespace
) -> dict[str, tuple[float, float]]:
    """Return the accuracy and time of each method on one task, including the baselines."""
    task = data.as_task(target)
    options = {"scale": arguments.scale, "device": "cpu", "random_state": seed}
    short, long = arguments.pretrain_epochs, arguments.pretrain_epochs + arguments.epochs
    models = {
        "start": M3SDA(epochs=0, pretrain_epochs=short, **options),
        "source-only": M3SDA(epochs=0, pretrain_epochs=long, **options),
        **{
            name: METHODS[name](epochs=arguments.epochs, pretrain_epochs=short, **options)
            for name in arguments.methods
        },
    }
    result = {}
    for name, model in models.items():
        begin = time.perf_counter()
        model.fit(task.X, task.y, sample_domain=task.sample_domain)
        elapsed = time.perf_counter() - begin
        result[name] = model.score(task.X_target, task.y_target), elapsed
    return result


def print_rows(scores: dict[str, np.ndarray], rows: list[str], t: int, target: str) -> None:
    means = "  ".join(f"{row} {scores[row][t].mean():.2f}" for row in rows)
    print(f"  target {target}: {means}", flush=True)


if __name__ == "__main__":
    main()
