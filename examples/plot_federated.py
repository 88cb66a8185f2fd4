"""
Sites that cannot share their data
==================================

Each site fits a mixture where its data are and sends the file: a few kilobytes, no sample. The hub
reads the files and learns the dictionary. Nothing else is exchanged, so the result is bit for bit
that of a machine that had all the data, and there is no federated mode to switch on.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import mixda

# %%
# Three labelled sites and one without labels, each with its own shift.
data = mixda.datasets.make_shifted_toy(random_state=2)
names = data.domain_names
sites = {name: (data.X[data.domain == k], data.y[data.domain == k]) for k, name in enumerate(names)}
*sources, target = names

# %%
# At the sites: fit, and write a file.
folder = Path(tempfile.mkdtemp())
for name in sources:
    X, y = sites[name]
    mixda.fit_labeled_mixture(X, y, n_components=5, random_state=0).save(folder / f"{name}.gmm")
mixda.fit_mixture(sites[target][0], n_components=10, random_state=0).save(folder / f"{target}.gmm")
for file in sorted(folder.glob("*.gmm")):
    print(f"{file.name}: {file.stat().st_size / 1024:.1f} kB")

# %%
# At the hub: files in, a labelled mixture of the target out.
received = {name: mixda.Mixture.load(folder / f"{name}.gmm") for name in names}
hub = mixda.learn_dictionary([received[name] for name in sources], received[target])

# %%
# The same with all the data in one place.
central = mixda.learn_dictionary(
    [mixda.fit_labeled_mixture(*sites[name], n_components=5, random_state=0) for name in sources],
    mixda.fit_mixture(sites[target][0], n_components=10, random_state=0),
)
assert hub.atoms == central.atoms
assert np.array_equal(hub.coordinates, central.coordinates)
X, y = sites[target]
print(f"accuracy on the target: {(hub.target.predict(X) == y).mean():.3f}, both ways")

# %%
# What the hub saw (left) and what it made of it (right).
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")
for name in sources:
    mixda.plot.mixture(received[name], ax=axes[0], alpha=0.15)
mixda.plot.mixture(received[target], ax=axes[0])
axes[0].set_title("Four files: three labelled, one not")
mixda.plot.samples(X, y, ax=axes[1], alpha=0.15)
mixda.plot.mixture(hub.target, ax=axes[1])
axes[1].set_title("The target's labelled mixture, on its data")
plt.show()
