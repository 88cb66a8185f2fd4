"""
CSV files and the command line
==============================

This example adapts from three labeled tables to an unlabeled one with three commands. The tables
are generated here; replace them with your own CSV or Parquet files.
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
# Pumps on three test benches and one in a plant, with temperature, current, pressure and two
# vibration levels. Each place has its own offset. The file of the plant has no column `state`.

STATES = np.array(["ok", "worn", "blocked"])
CENTERS = np.array(
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
    """Write the table of one place, with a label column unless it is the plant."""
    codes = rng.integers(0, 3, n_rows)
    X = CENTERS[codes] + SPREADS * rng.standard_normal((n_rows, 5))
    X = X + shift * np.array([6.0, -0.4, 0.2, 0.4, 0.2])
    columns = {"serial": 1000 + np.arange(n_rows)}
    columns |= {column: X[:, k].round(3) for k, column in enumerate(COLUMNS)}
    if name != "plant":
        columns["state"] = STATES[codes]
    write_table(folder / f"{name}.csv", [columns])
    return STATES[codes]


for name, shift in (("lab", 0.0), ("north", 0.4), ("south", -0.4)):
    write_csv(name, 400, shift)
truth = write_csv("plant", 500, 1.2)  # only used for scoring

print((folder / "lab.csv").read_text()[:270], "...\n")
print((folder / "plant.csv").read_text()[:270], "...")

# %%
# Step 1: adapt
# -------------
#
# `serial` is a number but not a measurement, so it is dropped. Each file is one domain.


def run(command):
    """Run a command in the folder and print its output."""
    print(f"$ {command}")
    program, *arguments = command.split()
    completed = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    print(completed.stdout + completed.stderr)


run(
    "mixda adapt lab.csv north.csv south.csv --target plant.csv --label state --drop serial "
    "-o plant.mixda"
)

# %%
# The last lines show the accuracy on the plant, estimated without its labels, and the output file.
#
# Step 2: predict
# ---------------

run("mixda predict plant.mixda plant.csv --keep serial -o predictions.csv")
print((folder / "predictions.csv").read_text()[:420], "...")

# %%
# `confidence` is the probability of the label. `far` flags outliers, which are far from all domains
# of the model. `note` gives the reason if a row has no label.
#
# Step 3: report
# --------------

run("mixda report plant.mixda --data plant.csv -o report.html")

# %%
# The report is a single file that works offline.


class Page:
    """Show an HTML file in a frame."""

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
# True accuracy
# -------------
#
# In this example the labels of the plant are known. In practice they are not.

predicted = open_table(folder / "predictions.csv").read(["confidence"], "label").y
print(f"accuracy after adaptation: {np.mean(predicted == truth):.1%}")
run(
    "mixda adapt lab.csv north.csv south.csv --target plant.csv --label state --drop serial "
    "--method source --quiet -o alone.mixda"
)
alone = mixda.load(folder / "alone.mixda")
X = open_table(folder / "plant.csv").read(COLUMNS).X
print(f"source-only accuracy: {np.mean(alone.predict(X) == truth):.1%}")
mixda.plot.confusion(truth, predicted, classes=STATES).set_title("adapted")
plt.show()

# %%
# Errors
# ------
#
# Invalid input results in an error message and exit code 2. No files are changed.

run("mixda adapt lab.csv north.csv --target plant.csv --label stat -o plant.mixda")
run("mixda predict plant.mixda predictions.csv -o again.csv")
print(sorted(path.name for path in folder.iterdir()))
