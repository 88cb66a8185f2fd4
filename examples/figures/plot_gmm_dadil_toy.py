"""
GMM-DaDiL on the toy of section 4.1
===================================

GMM-DaDiL learns a few labeled mixtures, the atoms, such that every domain is a barycenter of
them (figure 4 of the paper). The target's own barycenter is a labeled mixture: a classifier.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import mixda

data = mixda.datasets.make_toy(random_state=0)
X_target, y_target = data.samples_of("target")
sources = [
    mixda.fit_labeled_mixture(*data.samples_of(k), n_components=5, random_state=0) for k in range(3)
]
target = mixda.fit_mixture(X_target, n_components=10, random_state=0)

# %%
# (a) Optimization
# ----------------
#
# As in the paper: three atoms that start from noise, Adam with a learning rate of 0.1, 200
# iterations. The loss and the negative log-likelihood of the samples under the reconstructions
# fall together while the coordinates settle.

dictionary = mixda.learn_dictionary(
    sources,
    target,
    n_atoms=3,
    optimizer="adam",
    init="random",
    n_iter=200,
    tol=0.0,
    samples=[data.samples_of(k)[0] for k in range(4)],
    random_state=0,
)
mixda.plot.history(dictionary, domain_names=data.domain_names)
plt.show()

# %%
# (b) Reconstructions
# -------------------
#
# Every domain as a labeled barycenter of the same three atoms, over its samples. The target's
# labels were never seen; they came with the atoms.

fig, axes = plt.subplots(1, 4, figsize=(12, 3.0), sharex=True, sharey=True, layout="constrained")
for k, (ax, name) in enumerate(zip(axes, data.domain_names, strict=True)):
    X, y = data.samples_of(k)
    m = dictionary.reconstruct(k)
    mixda.plot.samples(X, ax=ax, alpha=0.2)
    mixda.plot.mixture(m, ax=ax)
    ax.set_title(f"{name}\naccuracy {np.mean(m.predict(X) == y):.1%}")
plt.show()

# %%
# The coordinates say which atoms a domain is made of.

mixda.plot.coordinates(dictionary, domain_names=data.domain_names)
plt.show()

# %%
# The defaults of mixda
# ---------------------
#
# Started from the sources and minimized block by block, with all transport plans fixed within an
# iteration, the loss falls to where the run above ends within a few iterations.

faster = mixda.learn_dictionary(
    sources, target, samples=[data.samples_of(k)[0] for k in range(4)], random_state=0
)
mixda.plot.history(faster, domain_names=data.domain_names)
plt.show()

for name, d in (("random start, Adam", dictionary), ("defaults", faster)):
    below = np.flatnonzero(d.history.loss <= dictionary.history.loss[-1])[0]
    accuracy = np.mean(d.target.predict(X_target) == y_target)
    print(
        f"{name}: loss {dictionary.history.loss[-1]:.2f} at iteration {below}, at the end "
        f"{d.history.loss[-1]:.2f}, target accuracy {accuracy:.1%}"
    )
