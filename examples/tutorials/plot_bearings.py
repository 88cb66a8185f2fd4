"""
Bearing faults, end to end
==========================

Three machines have labeled vibration recordings. A fourth machine runs at another speed, has
another resonance frequency and a less sensitive sensor, and its recordings are not labeled. This
example classifies the faults of the fourth machine, estimates the accuracy without its labels, and
writes a report.

**The signals are simulated**, so nothing has to be downloaded. The last section shows how to run
the same steps on the bearing data of Case Western Reserve University.
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
# In a damaged bearing, an impact occurs each time a ball rolls over the defect. The rate depends
# on the location of the defect: 3.6 impacts per shaft revolution on the outer race, 5.4 on the
# inner race, and 4.7 for a damaged ball (geometry of a 6205 bearing). Each impact excites the
# resonance of the housing. Impacts on the inner race are modulated as the defect rotates with
# the shaft.

RATE = 12_000  # samples per second
WINDOW = 1_024  # samples per window: 85 ms, two and a half revolutions
IMPACTS = {"normal": 0.0, "ball": 4.714, "inner race": 5.415, "outer race": 3.585}
MACHINES = {  # revolutions per minute, resonance in Hz, gain of the sensor
    "test bench": (1797, 3000, 1.0),
    "line 1": (1772, 2850, 0.8),
    "line 2": (1750, 3150, 1.3),
    "plant": (1700, 2600, 0.6),
}


def vibration(fault, machine, n_samples, rng):
    """Simulate the shaft rotation, decaying oscillations after each impact, and noise."""
    speed, resonance, gain = MACHINES[machine]
    turns = speed / 60 * np.arange(n_samples) / RATE
    x = 0.3 * np.sin(2 * np.pi * turns + rng.uniform(0, 6)) + 0.2 * np.sin(4 * np.pi * turns)
    if IMPACTS[fault]:
        period = RATE / (IMPACTS[fault] * speed / 60)
        number = np.arange(int(n_samples / period))
        times = ((number + rng.normal(0, 0.02, len(number))) * period).clip(0).astype(int)
        modulation = {"inner race": 0.8, "ball": 0.5, "outer race": 0.0}[fault]
        impacts = np.zeros(n_samples)
        impacts[times] = 1 + modulation * np.cos(2 * np.pi * turns[times])
        delay = np.arange(200) / RATE
        response = np.exp(-900 * delay) * np.sin(2 * np.pi * resonance * delay)
        x += (1.2 if fault == "ball" else 2.0) * np.convolve(impacts, response)[:n_samples]
    return gain * (x + 0.35 * rng.standard_normal(n_samples))


def record_all(n_windows=60, seed=0):
    """Simulate windows of each fault on each machine."""
    rng = np.random.default_rng(seed)
    signals, y, domain = [], [], []
    for k, machine in enumerate(MACHINES):
        for code, fault in enumerate(IMPACTS):
            signal = vibration(fault, machine, n_windows * WINDOW, rng)
            signals.append(signal.reshape(n_windows, WINDOW))
            y += [code] * n_windows
            domain += [k] * n_windows
    return np.concatenate(signals), np.array(y), np.array(domain)


signals, y, domain = record_all()
fig, axes = plt.subplots(4, 2, figsize=(10, 5.5), sharex=True, sharey=True, layout="constrained")
for column, machine in enumerate(("test bench", "plant")):
    for code, fault in enumerate(IMPACTS):
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
# Magnitude spectra do not depend on where a window starts. The four machines are four domains. The
# plant is the target; its labels (`task.y_target`) are only used at the end.

spectra = np.abs(np.fft.rfft(signals, axis=1, norm="ortho")[:, 1:])
data = DomainDataset(spectra, y, domain, tuple(MACHINES), tuple(IMPACTS))
task = data.as_task("plant")
print(data)

# %%
# Without adaptation
# ------------------
#
# A classifier trained on the three labeled machines is applied to the plant.

alone = mixda.SourceOnly(scale="sources").fit(task.X, task.y, sample_domain=task.sample_domain)
print(f"source-only accuracy: {alone.score(task.X_target, task.y_target):.1%}")

# %%
# With adaptation
# ---------------
#
# :class:`~mixda.AutoMSDA` combines ordinary classifiers and adaptation methods, weights them by
# how they do on held-out machines, and estimates the accuracy on the plant without its labels.

model = mixda.AutoMSDA(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
print(model.trust_)

# %%
# The labels of the plant show the true accuracy.

predicted = model.predict(task.X_target)
print(f"accuracy after adaptation: {np.mean(predicted == task.y_target):.1%}")

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, title, labels in (
    (axes[0], "source only", alone.predict(task.X_target)),
    (axes[1], "adapted", predicted),
):
    names = np.array(data.class_names)
    mixda.plot.confusion(names[task.y_target], names[labels], ax=ax, classes=names)
    ax.set_title(title)
plt.show()

# %%
# A single method
# ---------------
#
# A single GMM-DaDiL in the feature space of a small network takes less time than AutoMSDA. It does
# not estimate its accuracy.

single = mixda.GMMDaDiL(encoder="mlp", random_state=0)
single.fit(task.X, task.y, sample_domain=task.sample_domain)
print(f"accuracy of GMM-DaDiL: {single.score(task.X_target, task.y_target):.1%}")
mixda.plot.domain_map(
    [*single.source_mixtures_, single.unlabeled_mixture_], names=data.domain_names
).set_xlabel("distances between the machines (MW2)")
plt.show()

# %%
# Save the model, write a report
# ------------------------------
#
# The file of the model contains no samples. The report is a self-contained HTML page;
# :ref:`sphx_glr_gallery_tutorials_plot_csv_files.py` shows one.

folder = Path(tempfile.mkdtemp())
model.save(folder / "plant.mixda", domain_names=data.domain_names)
loaded = mixda.load(folder / "plant.mixda")
assert np.array_equal(loaded.predict(task.X_target), predicted)
loaded.report(folder / "plant.html", X=task.X_target)
for file in sorted(folder.iterdir()):
    print(f"{file.name}: {file.stat().st_size / 1024:.0f} kB")

# %%
# Real data
# ---------
#
# If the folder given by the environment variable `MIXDA_DATA` contains the recordings of Case
# Western Reserve University, only the data change:
#
# .. code-block:: python
#
#     data = mixda.datasets.load_cwru()  # loads 0, 1 and 3 hp, spectra of 2048 samples
#     task = data.as_task("1730 rpm")
#     model = mixda.AutoMSDA(random_state=0)
#     model.fit(task.X, task.y, sample_domain=task.sample_domain)
#     print(model.trust_, model.score(task.X_target, task.y_target))
#
# :doc:`/results` has the accuracies of all methods on these data and the commands to reproduce
# them.
