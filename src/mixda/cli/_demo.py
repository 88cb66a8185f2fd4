"""``mixda demo``: four csv files, then the very commands that a user would type."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda.cli import run
from mixda.cli._output import Output
from mixda.datasets import load_digit_scanners
from mixda.tables import open_table, write_table

TARGET = "phone"


def run_demo(folder: Path, seed: int) -> None:
    """Write the files, run the commands, print how right they are and where the report is."""
    out = Output()
    folder.mkdir(parents=True, exist_ok=True)
    truth = _write_files(folder, seed)
    sources = [str(folder / f"{name}.csv") for name in ("office", "archive", "library")]
    mixtures = [str(folder / "office.gmm"), *sources[1:]]  # the others see no page of the office
    target = str(folder / f"{TARGET}.csv")
    out.say(f"four scanners wrote files to {folder}; only those of three have a column digit\n")
    seeded = ["--seed", str(seed)]
    _type(out, "fit", sources[0], "--label", "digit", *seeded, "-o", mixtures[0])
    scores = []
    for words, method, domains in (
        ("source only", "source", sources),
        ("GMM-DaDiL, the office as a .gmm", "dadil", mixtures),
        ("auto, from all files", "auto", sources),
    ):
        model, predictions = str(folder / f"{method}.mixda"), folder / f"{method}.csv"
        given = [*domains, "--target", target, "--label", "digit", "--method", method]
        _type(out, "adapt", *given, *seeded, "-o", model)
        _type(out, "predict", model, target, "--quiet", "-o", str(predictions))
        predicted = open_table(predictions).read(["confidence"], "label").y
        scores.append((words, f"{np.mean(predicted == truth):.1%}"))
    page = folder / "report.html"
    _type(out, "report", model, "--data", target, "-o", str(page))
    out.table(
        f"digits of the {TARGET} named correctly (its labels are used here only)",
        ["model", "accuracy"],
        scores,
    )
    out.say(f"report: {page.resolve()}")


def _write_files(folder: Path, seed: int) -> NDArray[np.int64]:
    """Write one csv per scanner, the target's without labels; return these."""
    data = load_digit_scanners(random_state=seed)
    for name in data.domain_names:
        X, y = data.samples_of(name)
        columns: dict[str, Any] = {f"pixel{k}": X[:, k] for k in range(X.shape[1])}
        if name != TARGET:
            columns["digit"] = y
        write_table(folder / f"{name}.csv", [columns])
    return data.samples_of(TARGET)[1]


def _type(out: Output, *arguments: str) -> None:
    out.say(f"$ mixda {shlex.join(arguments)}")
    code = run(arguments)
    if code:
        raise SystemExit(code)
    out.say("")
