"""Time ``import mixda`` and ``import sklearn.mixture, ot``, its main dependencies.

Run ``python benchmarks/import_time.py``. Each statement runs in new interpreters, alternating. The
result is the best of a few rounds, minus the start-up time of the interpreter.
"""

from __future__ import annotations

import subprocess
import sys
import time

STATEMENTS = ("pass", "import sklearn.mixture, ot", "import mixda", "from mixda import *")
ROUNDS = 5


def main() -> None:
    best = dict.fromkeys(STATEMENTS, float("inf"))
    for _ in range(ROUNDS):
        for statement in STATEMENTS:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            best[statement] = min(best[statement], time.perf_counter() - start)
    bare = best["pass"]
    reference = best["import sklearn.mixture, ot"] - bare
    for statement in STATEMENTS[1:]:
        seconds = best[statement] - bare
        print(f"{statement:<28} {seconds:6.3f} s {seconds / reference:6.2f}x")


if __name__ == "__main__":
    main()
