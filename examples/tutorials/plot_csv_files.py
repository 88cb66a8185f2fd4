"""
My CSV files
============

Three labeled tables, one without labels, three commands. The tables are written here, so that
the page can be run; in their place stand your own, csv or parquet.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import mixda
from mixda.tables import open_table, write_table

# %%
# The files
# ---------
#
# Pumps on three test benches and one in a plant: temperature, current, pressure and two vibration
# levels. Every place has its own offsets and gains. The plant's file has no column `state`.

STATES = np.array(["ok", "worn", "blocked"])
CENTRES = np.array(
    [
        [60.0, 4.0, 2.5, 0.8, 0.4],
        [64.0, 4.4, 2.3, 1.7, 0.9],
        [71.0, 5.4, 3.4, 1.0, 0.5],
    ]
)
SPREADS = np.array([3.0, 0.35, 0.3, 0.3, 0.18])
COLUMNS = ("temperature", "current", "pressure", "vibration_low", "vibration_high")
folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(7)


def write_csv(name, n_rows, shift):
    """One place: its own offset and gain, and a column of labels unless it is the plant."""
    codes = rng.integers(0, 3, n_rows)
    X = CENTRES[codes] + SPREADS * rng.standard_normal((n_rows, 5))
    X = X + shift * np.array([6.0, -0.4, 0.2, 0.4, 0.2])
    columns = {"serial": 1000 + np.arange(n_rows)}
    columns |= {column: X[:, k].round(3) for k, column in enumerate(COLUMNS)}
    if name != "plant":
        columns["state"] = STATES[codes]
    write_table(folder / f"{name}.csv", [columns])
    return STATES[codes]


for name, shift in (("lab", 0.0), ("north", 0.4), ("south", -0.4)):
    write_csv(name, 400, shift)
truth = write_csv("plant", 500, 1.2)  # kept apart, to check at the end

print((folder / "lab.csv").read_text()[:270], "...\n")
print((folder / "plant.csv").read_text()[:270], "...")

# %%
# One: adapt
# ----------
#
# `serial` is a number but no measurement, so it is dropped. Every file is a domain of its own.


def run(command):
    """Type a command in the folder and show what it prints."""
    print(f"$ {command}")
    program, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    print(done.stdout + done.stderr)


run(
    "mixda adapt lab.csv north.csv south.csv --target plant.csv --label state --drop serial "
    "-o plant.mixda"
)

# %%
# The last lines are the estimate of the accuracy on the plant, made without its labels, and the
# file that was written.
#
# Two: predict
# ------------

run("mixda predict plant.mixda plant.csv --keep serial -o predictions.csv")
print((folder / "predictions.csv").read_text()[:420], "...")

# %%
# `confidence` is the probability of the label, `far` marks rows that are far from everything the
# model knows, and `note` says what was missing where there is no label.
#
# Three: report
# -------------

run("mixda report plant.mixda --data plant.csv -o report.html")

# %%
# This is the page. It is one file without links to the network, made to be sent to a colleague.


class Page:
    """An HTML file shown in a frame."""

    def __init__(self, path):
        self.html = path.read_text(encoding="utf-8")

    def _repr_html_(self):
        text = self.html.replace("&", "&amp;").replace('"', "&quot;")
        return (
            '<iframe title="report of the plant" style="width: 100%; height: 40rem; '
            f'border: 1px solid #999" srcdoc="{text}"></iframe>'
        )


Page(folder / "report.html")

# %%
# Was it right?
# -------------
#
# The truth was kept apart. You will not have it; this only checks the tool.

predicted = open_table(folder / "predictions.csv").read(["confidence"], "label").y
print(f"{np.mean(predicted == truth):.1%} of the plant's rows right")
run(
    "mixda adapt lab.csv north.csv south.csv --target plant.csv --label state --drop serial "
    "--method source --quiet -o alone.mixda"
)
alone = mixda.load(folder / "alone.mixda")
X = open_table(folder / "plant.csv").read(COLUMNS).X
print(f"{np.mean(alone.predict(X) == truth):.1%} right with the sources only")
mixda.plot.confusion(truth, predicted, classes=STATES).set_title("adapted")
plt.show()

# %%
# When something is wrong
# -----------------------
#
# A mistake is answered with one sentence and exit code 2, and no file is touched.

run("mixda adapt lab.csv north.csv --target plant.csv --label stat -o plant.mixda")
run("mixda predict plant.mixda predictions.csv -o again.csv")
print(sorted(path.name for path in folder.iterdir()))
