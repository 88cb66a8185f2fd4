"""
Sites that cannot share their data
==================================

Each site fits a mixture where its data are and sends the file: a few kilobytes, no sample. The hub
adapts on the files. The target's site gets a model back and names its samples itself. Nothing else
is exchanged, so the result is that of a machine that had all the data, to the last bit, and there
is no federated mode to switch on.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import mixda

# %%
# Three labeled sites and one without labels, each with its own shift.

data = mixda.datasets.make_shifted_toy(random_state=2)
*sources, target = data.domain_names
folder = Path(tempfile.mkdtemp())  # stands for the mail between the sites

# %%
# At the sites: fit, and send a file
# ----------------------------------
#
# The labeled sites fit some components per class, the target's site some in all.

for name in sources:
    X, y = data.samples_of(name)
    mixture = mixda.fit_labeled_mixture(X, y, n_components=5, random_state=0)
    mixture.save(folder / f"{name}.gmm")
X, truth = data.samples_of(target)  # the truth serves to check, at the end
mixda.fit_mixture(X, n_components=10, random_state=0).save(folder / f"{target}.gmm")

for name in data.domain_names:
    sent, kept = (folder / f"{name}.gmm").stat().st_size, data.samples_of(name)[0].nbytes
    print(f"{name}: {sent / 1024:.1f} kB sent, {kept / 1024:.1f} kB of samples stay")

# %%
# The size of a file depends on components, classes and features, not on samples: it is the same
# for a site with a billion rows.
#
# .. note::
#
#    A component that was fitted to a single sample has that sample as its mean. Where this
#    matters, fit few components for the size of the smallest class.
#
# At the hub: adapt on the files
# ------------------------------

received = [mixda.load(folder / f"{name}.gmm") for name in data.domain_names]
hub = mixda.GMMDaDiL(scale=None, classifier="map", random_state=0)
hub.fit_mixtures(received[:-1], received[-1])
hub.save(folder / "model.mixda", domain_names=data.domain_names)

# %%
# Back at the target's site: predict
# ----------------------------------

model = mixda.load(folder / "model.mixda")
print(f"{np.mean(model.predict(X) == truth):.1%} of the target right")

# %%
# What the hub saw, and what it made of it.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharex=True, sharey=True, layout="constrained")
for mixture in received[:-1]:
    mixda.plot.mixture(mixture, ax=axes[0], alpha=0.15)
mixda.plot.mixture(received[-1], ax=axes[0])
axes[0].set_title("four files: three labeled, one not")
mixda.plot.samples(X, truth, ax=axes[1], alpha=0.15)
mixda.plot.mixture(hub.target_mixture_, ax=axes[1])
axes[1].set_title("the target's labeled mixture, on its samples")
plt.show()

# %%
# The same with all the data in one place
# ---------------------------------------
#
# One machine that fits the same mixtures itself learns the same model.

central = mixda.GMMDaDiL(scale=None, classifier="map", random_state=0)
central.fit_mixtures(
    [
        mixda.fit_labeled_mixture(*data.samples_of(name), n_components=5, random_state=0)
        for name in sources
    ],
    mixda.fit_mixture(X, n_components=10, random_state=0),
)
assert np.array_equal(central.dictionary_.coordinates, hub.dictionary_.coordinates)
assert np.array_equal(central.predict_proba(X), hub.predict_proba(X))
print("bit for bit the same")

# %%
# With the command line
# ---------------------
#
# .. code-block:: sh
#
#     mixda fit lab.csv --label state -o lab.gmm        # at each labeled site
#     mixda fit plant.csv -o plant.gmm                  # at the target's site
#     mixda adapt lab.gmm north.gmm south.gmm --target plant.gmm -o plant.mixda   # at the hub
#     mixda predict plant.mixda plant.csv -o predictions.csv                      # at the target
#
# Files and data may be mixed: `mixda adapt lab.gmm north.csv …`.
#
# What needs samples
# ------------------
#
# Mixtures carry the GMM methods (`GMMDaDiL`, `GMMWBT`, `GMMOTDA`). An encoder learned from
# samples, the methods over samples, and the trust estimate of `AutoMSDA` need the samples
# themselves. Features that are good already, or the same fixed network at all sites, make up for
# the encoder.
