"""``mixda demo``: four csv files, and the commands that a user would type."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda.cli._output import Output
from mixda.datasets import load_digit_scanners
from mixda.tables import open_table, write_table

SOURCES = ("office", "archive", "library")
TARGET = "phone"

Run = Callable[[Sequence[str]], object]


def run_demo(folder: Path, seed: int, run: Run) -> None:
    """Write the files, run the commands, print the accuracies and the path of the report."""
    out = Output()
    folder.mkdir(parents=True, exist_ok=True)
    truth = write_scanners(folder, seed)
    files = [str(folder / f"{name}.csv") for name in SOURCES]
    mixtures = [str(folder / "office.gmm"), *files[1:]]  # the office shares no page
    target = str(folder / f"{TARGET}.csv")
    out.say(f"wrote the files of four scanners to {folder}; three of them have a column digit\n")

    def typed(*arguments: str) -> None:
        out.say(f"$ mixda {shlex.join(arguments)}")
        run(arguments)
        out.say("")

    typed("fit", files[0], "--label", "digit", "--seed", str(seed), "-o", mixtures[0])
    scores = []
    for words, method, sources in (
        ("source only", "source", files),
        ("GMM-DaDiL, the office as a .gmm", "dadil", mixtures),
        ("auto, from all files", "auto", files),
    ):
        model, predictions = str(folder / f"{method}.mixda"), folder / f"{method}.csv"
        given = [*sources, "--target", target, "--label", "digit", "--method", method]
        typed("adapt", *given, "--seed", str(seed), "-o", model)
        typed("predict", model, target, "--quiet", "-o", str(predictions))
        predicted = open_table(predictions).read(["confidence"], "label").y
        scores.append((words, f"{np.mean(predicted == truth):.1%}"))
    page = folder / "report.html"
    typed("report", model, "--data", target, "-o", str(page))
    title = f"accuracy on the {TARGET} (its labels are used here only)"
    out.table(title, ["model", "accuracy"], scores)
    out.say(f"report: {page.resolve()}")


def write_scanners(folder: Path, seed: int) -> NDArray[np.int64]:
    """Write one csv file per scanner, that of the target without labels, which are returned."""
    data = load_digit_scanners(random_state=seed)
    for name in data.domain_names:
        X, y = data.samples_of(name)
        columns: dict[str, Any] = {f"pixel{k}": X[:, k] for k in range(X.shape[1])}
        if name != TARGET:
            columns["digit"] = y
        write_table(folder / f"{name}.csv", [columns])
    return data.samples_of(TARGET)[1]
