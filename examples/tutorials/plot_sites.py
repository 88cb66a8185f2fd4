"""
Sites that cannot share their data
==================================

Each site fits a mixture to its data and sends a file of a few kilobytes that contains no samples. A
hub adapts from these files and sends the model to the target site, which classifies its own
samples. Nothing else is exchanged. The result is identical to that of a single machine that fits
the same mixtures.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import mixda

# %%
# There are three labeled sites and one unlabeled site, each with its own shift.

data = mixda.datasets.make_shifted_toy(random_state=2)
*sources, target = data.domain_names
folder = Path(tempfile.mkdtemp())  # represents the files that are exchanged

# %%
# At each site: fit a mixture
# ---------------------------
#
# Labeled sites fit five components per class. The target site fits ten components in total.

for name in sources:
    X, y = data.samples_of(name)
    mixture = mixda.fit_labeled_mixture(X, y, 5, min_component_rows=5, random_state=0)
    mixture.save(folder / f"{name}.gmm")
X, truth = data.samples_of(target)  # truth is only used for scoring
mixture = mixda.fit_mixture(X, 10, min_component_rows=5, random_state=0)
mixture.save(folder / f"{target}.gmm")

for name in data.domain_names:
    sent, kept = (folder / f"{name}.gmm").stat().st_size, data.samples_of(name)[0].nbytes
    print(f"{name}: sends {sent / 1024:.1f} kB, keeps {kept / 1024:.1f} kB of samples")

# %%
# The size of a file depends on the number of components, classes and features, but not on the
# number of samples.
#
# .. note::
#
#    A component fitted to a single sample has that sample as its mean. With
#    ``min_component_rows=5``, every mean averages at least five rows, and ``save`` refuses others.
#
# At the hub: adapt from the files
# --------------------------------

received = [mixda.load(folder / f"{name}.gmm") for name in data.domain_names]
hub = mixda.GMMDaDiL(preset="paper", random_state=0)
hub.fit_mixtures(received[:-1], received[-1])
hub.save(folder / "model.mixda", domain_names=data.domain_names)

# %%
# At the target site: predict
# ---------------------------

model = mixda.load(folder / "model.mixda")
print(f"target accuracy: {np.mean(model.predict(X) == truth):.1%}")

# %%
# The mixtures that the hub received, and the labeled target mixture it computed:

fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharex=True, sharey=True, layout="constrained")
for mixture in received[:-1]:
    mixda.plot.mixture(mixture, ax=axes[0], alpha=0.15)
mixda.plot.mixture(received[-1], ax=axes[0])
axes[0].set_title("received: three labeled mixtures, one unlabeled")
mixda.plot.samples(X, truth, ax=axes[1], alpha=0.15)
mixda.plot.mixture(hub.target_mixture_, ax=axes[1])
axes[1].set_title("labeled target mixture and target samples")
plt.show()

# %%
# Comparison with a single machine
# --------------------------------
#
# A single machine that fits the same mixtures learns the same model.

central = mixda.GMMDaDiL(preset="paper", random_state=0)
central.fit_mixtures(
    [
        mixda.fit_labeled_mixture(*data.samples_of(name), n_components=5, random_state=0)
        for name in sources
    ],
    mixda.fit_mixture(X, n_components=10, random_state=0),
)
assert np.array_equal(central.dictionary_.coordinates, hub.dictionary_.coordinates)
assert np.array_equal(central.predict_proba(X), hub.predict_proba(X))
print("identical")

# %%
# On the command line
# -------------------
#
# .. code-block:: sh
#
#     mixda fit lab.csv --label state -o lab.gmm        # at each labeled site
#     mixda fit plant.csv -o plant.gmm                  # at the target site
#     mixda adapt lab.gmm north.gmm south.gmm --target plant.gmm -o plant.mixda   # at the hub
#     mixda predict plant.mixda plant.csv -o predictions.csv                      # at the target
#
# Mixture files and data files can be combined: `mixda adapt lab.gmm north.csv …`.
#
# Methods that need samples
# -------------------------
#
# `GMMDaDiL`, `GMMWBT` and `GMMOTDA` work on mixtures. Learned encoders, the sample-based methods
# and the accuracy estimate of `AutoMSDA` need samples. Instead of a learned encoder, all sites
# can apply the same pretrained network before they fit their mixtures.
