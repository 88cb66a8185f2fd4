"""Heart disease in four hospitals, from CSV files with their gaps to predictions.

What do gaps cost, and what would dropping rows cost?

The 13 raw attributes of each hospital are written to a CSV file as they are: up to all cells of a
column are empty. Each hospital in turn is the target of `mixda check`, `adapt`, `predict` and
`report`, with default options and no preparation, and with `--method source`, a logistic regression
of all sources whose gaps are filled. Compared with

* rows dropped: `--missing drop`, which leaves out every row with an empty cell;
* columns, then rows dropped: columns that are more than half empty in some hospital are left out
  first (`--drop`);
* complete rows: a logistic regression on the complete rows of the sources, with means in place of
  the gaps of the target.

Rows that get no prediction count as wrong. Labels of the target are used for scoring only.

With `--junk`, a clean set (electricity, four periods of 300 rows) is adapted as it is and with ten
columns of text, identifiers, dates and gaps added.

    python benchmarks/real_tables.py             # the table of the documentation
    python benchmarks/real_tables.py --junk
"""

import argparse
import contextlib
import io
import json
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mixda.cli import run
from mixda.datasets import load_published

LABEL = "diagnosis"
HALF = 0.5


def write_hospitals(folder):
    """Write one CSV file per hospital; return the tables by name."""
    data = np.load(Path(os.environ["MIXDA_DATA"], "heart_disease_4hospitals.npz"))
    tables = {}
    for k, name in enumerate(data["doms"].tolist()):
        rows = data["d"] == k
        table = pd.DataFrame(data["X_raw13_with_nan"][rows], columns=data["raw_names"].tolist())
        tables[name] = table.assign(**{LABEL: data["cls"][data["y"][rows]]})
        tables[name].to_csv(folder / f"{name}.csv", index=False)
    return tables


def command(*words):
    """Run a command; return its exit code and its JSON output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        code = run([*words, "--json"])
    text = printed.getvalue()
    return code, json.loads(text) if text else {}


def by_commands(folder, names, target, *options):
    """Return accuracy, share of rows with a prediction and estimated accuracy; None if refused."""
    sources = [str(folder / f"{name}.csv") for name in names if name != target]
    rows, model = str(folder / f"{target}.csv"), str(folder / "m.mixda")
    task = [*sources, "--target", rows, "--label", LABEL]
    dropped = options[options.index("--drop") :] if "--drop" in options else ()
    if command("check", *task, *dropped)[0]:
        return None
    code, adapted = command("adapt", *task, *options, "-o", model)
    if code:
        return None
    missing = ["--missing", "drop"] if "--missing" in options else []
    out = str(folder / "p.csv")
    assert command("predict", model, rows, *missing, "-o", out)[0] == 0
    page = str(folder / "r.html")
    assert command("report", model, "--data", rows, "-o", page)[0] == 0
    found, truth = pd.read_csv(out)["label"], pd.read_csv(rows)[LABEL]
    estimate = adapted["estimate"] and adapted["estimate"]["accuracy"]
    return (found == truth).mean(), found.notna().mean(), estimate


def by_complete_rows(tables, target):
    complete = pd.concat([t for name, t in tables.items() if name != target]).dropna()
    if complete[LABEL].nunique() < 2:
        return None
    X, y = complete.drop(columns=LABEL), complete[LABEL]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y)
    rows = tables[target].drop(columns=LABEL).fillna(X.mean())
    return (model.predict(rows) == tables[target][LABEL]).mean(), len(complete)


def percent(value):
    return "–" if value is None else f"{100 * value:.1f}"


def add_junk(table, name, rng):
    n = len(table)
    return table.assign(
        serial=np.arange(n) + 7000,
        part_id=rng.choice(10**8, n, replace=False),
        uuid=[f"{name}{k:08x}" for k in rng.choice(10**8, n, replace=False)],
        timestamp=1_700_000_000 + 60 * np.arange(n),
        date=pd.date_range("2024-01-01", periods=n).astype(str),
        site=f"site {name}",
        site_code=len(name) + ord(name[-1]),
        remark=[f"remark {k}" for k in rng.integers(0, 10**6, n)],
        operator=rng.choice(["A", "B", "C"], n),
        probe=np.where(rng.random(n) < HALF, np.nan, rng.standard_normal(n)),
    )


def junk():
    """Accuracy on each period, of the clean tables and with ten more columns."""
    data = load_published("electricity")
    rng = np.random.default_rng(0)
    names = [str(name) for name in data.domain_names[:4]]
    with tempfile.TemporaryDirectory() as place:
        for change in (False, True):
            folder = Path(place, str(change))
            folder.mkdir()
            for name in names:
                X, y = (values[:300] for values in data.samples_of(name))
                table = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
                table[LABEL] = np.array(["down", "up"])[y]
                table = add_junk(table, name, rng) if change else table
                table.to_csv(folder / f"{name}.csv", index=False)
        for target in names:
            scores = [
                by_commands(Path(place, kind), names, target)[0] for kind in ("False", "True")
            ]
            print(target, "clean", percent(scores[0]), "with junk", percent(scores[1]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--junk", action="store_true", help="add ten columns to a clean set")
    warnings.simplefilter("ignore")
    if parser.parse_args().junk:
        junk()
        return
    head = [
        "target",
        "with gaps",
        "estimated",
        "source, with gaps",
        "rows dropped",
        "columns, then rows",
        "answered",
    ]
    print(" | ".join([*head, "complete rows", "of", "most frequent class"]))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tables = write_hospitals(folder)
        for target in tables:
            gaps = by_commands(folder, tables, target)
            source = by_commands(folder, tables, target, "--method", "source")
            rows = by_commands(folder, tables, target, "--missing", "drop")
            empty = [
                column
                for column in tables[target].columns
                if max(table[column].isna().mean() for table in tables.values()) > HALF
            ]
            both = by_commands(
                folder, tables, target, "--missing", "drop", "--drop", ",".join(empty)
            )
            plain = by_complete_rows(tables, target)
            majority = pd.concat([t[LABEL] for n, t in tables.items() if n != target]).mode()[0]
            print(
                target,
                *(percent(gaps and gaps[k]) for k in (0, 2)),
                percent(source and source[0]),
                percent(rows and rows[0]),
                *(percent(both and both[k]) for k in (0, 1)),
                percent(plain and plain[0]),
                plain and plain[1],
                percent((tables[target][LABEL] == majority).mean()),
                sep=" | ",
                flush=True,
            )


if __name__ == "__main__":
    main()
