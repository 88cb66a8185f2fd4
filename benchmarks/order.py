"""Count predictions that change with the order of rows, of sources or of classes, on all sets.

    python benchmarks/order.py --out out/order                   # all sets and methods
    python benchmarks/order.py --out out/order --sets cstr,gas* --methods GMMWBT,WBT

The first domain of each set is the target. Every method is fitted four times: to the data as they
are, to the rows in a random order, with the ids of the sources permuted, and with the order of the
classes permuted. Each cell (set, method) is one JSON file, so an interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from selection import SETS, load

import mixda
from mixda._core.atomic import write_atomically

METHODS = ("GMMOTDA", "GMMWBT", "GMMDaDiL", "WBT", "DaDiL", "AutoMSDA")
KINDS = ("rows", "sources", "classes")


def main() -> None:
    """Run the missing cells and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/order"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--rows", type=int, default=200, help="Per domain, at most.")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    methods = arguments.methods.split(",")
    for name in arguments.sets.split(","):
        for method in methods:
            path = arguments.out / f"{name.rstrip('*')}-{method}.json"
            if not path.exists():
                cell = changed(name, method, arguments.rows)
                write_atomically(path, json.dumps(cell).encode())
    print_table([json.loads(path.read_text()) for path in sorted(arguments.out.glob("*.json"))])


def changed(name: str, method: str, rows: int) -> dict[str, object]:
    """Share of the target's predictions that differ from those of the data as they are."""
    X, y, ids = load(name, 0, rows, 0)
    y = np.unique(y, return_inverse=True)[1]
    n_classes, X_target = int(y.max()) + 1, X[ids < 0]

    def predict(X: np.ndarray, y: np.ndarray, ids: np.ndarray) -> np.ndarray:
        model = getattr(mixda, method)(random_state=0).fit(X, y, sample_domain=ids)
        return model.predict(X_target)

    start = time.perf_counter()
    expected = predict(X, y, ids)
    seconds = time.perf_counter() - start
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    source = _derangement(rng, int(ids.max()) + 1)
    label = _derangement(rng, n_classes)
    again = {
        "rows": predict(X[order], y[order], ids[order]),
        "sources": predict(X, y, np.where(ids >= 0, source[np.maximum(ids, 0)], ids)),
        "classes": np.argsort(label)[predict(X, label[y], ids)],
    }
    shares = {kind: float((again[kind] != expected).mean()) for kind in KINDS}
    print(name, method, shares, f"{seconds:.1f} s", flush=True)
    return {"set": name, "method": method, "n": len(expected), **shares}


def _derangement(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a random permutation that is not the identity, unless there is no other."""
    order = rng.permutation(n)
    return np.roll(np.arange(n), 1) if (order == np.arange(n)).all() else order


def print_table(cells: list[dict]) -> None:
    """Print the mean and the largest share of changed predictions of each method."""
    print(f"\n{'changed predictions, %':24s}" + "".join(f"{kind:>16s}" for kind in KINDS))
    for method in METHODS:
        own = [cell for cell in cells if cell["method"] == method]
        if own:
            values = [[100.0 * cell[kind] for cell in own] for kind in KINDS]
            texts = [f"{np.mean(v):.2f} (max {max(v):.1f})" for v in values]
            print(f"{method:15s} {len(own):3d} sets" + "".join(f"{text:>16s}" for text in texts))


if __name__ == "__main__":
    main()
