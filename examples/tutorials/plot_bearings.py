"""
Bearing faults, end to end
==========================

Three machines with labeled vibration records, and a fourth that runs at another speed, rings at
another frequency and is wired to a weaker sensor. Nobody has labeled its records. This page goes
from signals to named faults, to an estimate of how often the names are right, and to a report.

**The signals here are simulated**, so that the page needs no download. The last section has the
same steps for the real bearings of Case Western Reserve University.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import mixda
from mixda.datasets import DomainDataset

# %%
# The signals
# -----------
#
# A damaged bearing is struck once each time that a ball rolls over the damage. How often depends on
# where it is: 3.6 times per turn of the shaft on the outer race, 5.4 times on the inner race, 4.7
# times for a damaged ball (the geometry of a 6205 bearing). Every stroke makes the housing ring.
# Strokes on the inner race come and go as the damage turns with the shaft.

RATE = 12_000  # samples per second
WINDOW = 1_024  # samples in a window: 85 ms, two and a half turns
STROKES = {"normal": 0.0, "ball": 4.714, "inner race": 5.415, "outer race": 3.585}
MACHINES = {  # turns per minute, ringing in Hz, gain of the sensor
    "test bench": (1797, 3000, 1.0),
    "line 1": (1772, 2850, 0.8),
    "line 2": (1750, 3150, 1.3),
    "plant": (1700, 2600, 0.6),
}


def vibration(fault, machine, n_samples, rng):
    """Shaft, strokes that ring, and noise."""
    speed, ringing, gain = MACHINES[machine]
    turns = speed / 60 * np.arange(n_samples) / RATE
    x = 0.3 * np.sin(2 * np.pi * turns + rng.uniform(0, 6)) + 0.2 * np.sin(4 * np.pi * turns)
    if STROKES[fault]:
        every = RATE / (STROKES[fault] * speed / 60)
        number = np.arange(int(n_samples / every))
        times = ((number + rng.normal(0, 0.02, len(number))) * every).clip(0).astype(int)
        swing = {"inner race": 0.8, "ball": 0.5, "outer race": 0.0}[fault]
        strokes = np.zeros(n_samples)
        strokes[times] = 1 + swing * np.cos(2 * np.pi * turns[times])
        after = np.arange(200) / RATE
        echo = np.exp(-900 * after) * np.sin(2 * np.pi * ringing * after)
        x += (1.2 if fault == "ball" else 2.0) * np.convolve(strokes, echo)[:n_samples]
    return gain * (x + 0.35 * rng.standard_normal(n_samples))


def record_all(n_windows=60, seed=0):
    """Windows of every fault on every machine."""
    rng = np.random.default_rng(seed)
    signals, y, domain = [], [], []
    for k, machine in enumerate(MACHINES):
        for code, fault in enumerate(STROKES):
            signal = vibration(fault, machine, n_windows * WINDOW, rng)
            signals.append(signal.reshape(n_windows, WINDOW))
            y += [code] * n_windows
            domain += [k] * n_windows
    return np.concatenate(signals), np.array(y), np.array(domain)


signals, y, domain = record_all()
fig, axes = plt.subplots(4, 2, figsize=(10, 5.5), sharex=True, sharey=True, layout="constrained")
for column, machine in enumerate(("test bench", "plant")):
    for code, fault in enumerate(STROKES):
        rows = (y == code) & (domain == list(MACHINES).index(machine))
        ax = axes[code, column]
        ax.plot(np.arange(WINDOW) / RATE * 1000, signals[rows][0], lw=0.6, color="#0072B2")
        ax.spines[["top", "right"]].set_visible(False)
        if column == 0:
            ax.set_ylabel(fault)
    axes[0, column].set_title(machine)
    axes[-1, column].set_xlabel("ms")
plt.show()

# %%
# Features
# --------
#
# The magnitudes of the spectrum do not depend on when the window began. Four machines are four
# domains; the plant is the target, and its labels are put aside (`task.y_target`) until the end.

spectra = np.abs(np.fft.rfft(signals, axis=1, norm="ortho")[:, 1:])
data = DomainDataset(spectra, y, domain, tuple(MACHINES), tuple(STROKES))
task = data.as_task("plant")
print(data)

# %%
# Without adaptation
# ------------------
#
# A classifier of the three labeled machines, used on the plant as it is.

alone = mixda.SourceOnly(scale="sources").fit(task.X, task.y, sample_domain=task.sample_domain)
print(f"sources only: {alone.score(task.X_target, task.y_target):.1%} of the plant's windows right")

# %%
# With adaptation
# ---------------
#
# :class:`~mixda.AutoMSDA` adapts in several ways, tries each of them on machines whose labels it
# has, and says what it expects on the plant. It does so without a label of the plant.

model = mixda.AutoMSDA(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
print(model.trust_)

# %%
# Now the labels that were put aside come in, to check.

named = model.predict(task.X_target)
print(f"adapted: {np.mean(named == task.y_target):.1%} right")

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, words, answers in (
    (axes[0], "sources only", alone.predict(task.X_target)),
    (axes[1], "adapted", named),
):
    names = np.array(data.class_names)
    mixda.plot.confusion(names[task.y_target], names[answers], ax=ax, classes=names)
    ax.set_title(words)
plt.show()

# %%
# One method by name
# ------------------
#
# On signals, a single GMM-DaDiL in the space of a small network is often as good and takes a
# fraction of the time. It brings no estimate of its accuracy.

single = mixda.GMMDaDiL(encoder="mlp", random_state=0)
single.fit(task.X, task.y, sample_domain=task.sample_domain)
print(f"GMM-DaDiL: {single.score(task.X_target, task.y_target):.1%} right")
mixda.plot.domain_map(
    [*single.source_mixtures_, single.unlabeled_mixture_], names=data.domain_names
).set_xlabel("distances between the machines (MW2)")
plt.show()

# %%
# Keep it, report it
# ------------------
#
# The model is a file without samples. The report is one HTML page for a colleague; see
# :ref:`sphx_glr_gallery_tutorials_plot_csv_files.py` for what it looks like.

folder = Path(tempfile.mkdtemp())
model.save(folder / "plant.mixda", domain_names=data.domain_names)
again = mixda.load(folder / "plant.mixda")
assert np.array_equal(again.predict(task.X_target), named)
page = again.report(folder / "plant.html", X=task.X_target)
for file in sorted(folder.iterdir()):
    print(f"{file.name}: {file.stat().st_size / 1024:.0f} kB")

# %%
# The real bearings
# -----------------
#
# With the records of Case Western Reserve University in the folder that the environment variable
# `MIXDA_DATA` names, only the data change:
#
# .. code-block:: python
#
#     data = mixda.datasets.load_cwru()  # loads 0, 1 and 3 hp, spectra of 2048 samples
#     task = data.as_task("1730 rpm")
#     model = mixda.AutoMSDA(random_state=0)
#     model.fit(task.X, task.y, sample_domain=task.sample_domain)
#     print(model.trust_, model.score(task.X_target, task.y_target))
#
# Accuracies of all methods on them, and the commands that make the tables, are on the page
# :doc:`/results`.
