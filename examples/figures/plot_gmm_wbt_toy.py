"""
GMM-WBT on the toy dataset of section 4.1
=========================================

There are three labeled sources and an unlabeled target. Each domain is rotated and deformed a
little more than the previous one (figure 3 of the paper). GMM-WBT has three steps: fit a mixture to
each domain, compute the barycenter of the sources, and transport it to the target.
"""

# %%
# The data
# --------
import matplotlib.pyplot as plt
import numpy as np

import mixda
from mixda.transport import barycentric_map

data = mixda.datasets.make_toy(random_state=0)
classes = np.arange(len(data.class_names))

# %%
# (a) Samples and (b) mixtures
# ----------------------------
#
# Sources have five components per class. The target is unlabeled, so its ten components have no
# labels and are gray.

sources = [
    mixda.fit_labeled_mixture(*data.samples_of(k), n_components=5, random_state=0) for k in range(3)
]
X_target, y_target = data.samples_of("target")
target = mixda.fit_mixture(X_target, n_components=10, random_state=0)

fig, axes = plt.subplots(2, 4, figsize=(12, 4.4), sharex=True, sharey=True, layout="constrained")
for k, (name, m) in enumerate(zip(data.domain_names, [*sources, target], strict=True)):
    X, y = data.samples_of(k)
    mixda.plot.samples(X, None if name == "target" else y, ax=axes[0, k], classes=classes)
    mixda.plot.mixture(m, ax=axes[1, k])
    axes[0, k].set_title(name)
axes[0, 0].set_ylabel("(a) data")
axes[1, 0].set_ylabel("(b) mixtures")
plt.show()

# %%
# (c) GMM-WBT
# -----------
#
# Top: the transport plan between the components of the barycenter B (left) and of the target
# (right). Bottom: B, and the labeled target mixture after transport.

B = mixda.barycenter(sources, random_state=0).mixture
result = mixda.transport_plan(B, target)
adapted = barycentric_map(B, target, result.plan)

fig, axes = plt.subplot_mosaic(
    [["plan", "plan"], ["B", "adapted"]],
    figsize=(9, 5.4),
    layout="constrained",
)
offset = np.array([20.0, 0.0])  # draw the target next to the barycenter, not on top of it
beside = mixda.Mixture(target.weights, target.means + offset, target.stds)
mixda.plot.plan(result, B, beside, ax=axes["plan"])
axes["plan"].set(title="transport plan between B (left) and the target (right)", xticks=[])
mixda.plot.mixture(B, ax=axes["B"]).set_title("barycenter B of the sources")
mixda.plot.samples(X_target, ax=axes["adapted"], alpha=0.2)
mixda.plot.mixture(adapted, ax=axes["adapted"])
accuracy = np.mean(adapted.predict(X_target) == y_target)
for name in ("B", "adapted"):
    axes[name].set(xlim=(-5, 14), ylim=(-4, 9))
axes["adapted"].set_title(f"labeled target mixture, accuracy {accuracy:.1%}")
plt.show()

# %%
# A toy dataset that needs adaptation
# -----------------------------------
#
# On the dataset above, a classifier trained on the sources is already perfect on the target. On the
# following dataset, the classes are closer and the target is shifted, and adaptation helps.

from sklearn.linear_model import LogisticRegression  # noqa: E402

task = mixda.datasets.make_shifted_toy(random_state=0).as_task()
is_source = task.sample_domain > 0
source_only = LogisticRegression().fit(task.X[is_source], task.y[is_source])
wbt = mixda.GMMWBT(n_components=5, n_init=3, preset="paper", random_state=0)
wbt.fit(task.X, task.y, sample_domain=task.sample_domain)

fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained")
mixda.plot.samples(task.X[is_source], task.y[is_source], ax=axes[0], alpha=0.2)
axes[0].set_title("sources")
for ax, name, model in ((axes[1], "source only", source_only), (axes[2], "GMM-WBT", wbt)):
    mixda.plot.samples(task.X_target, model.predict(task.X_target), ax=ax, classes=[0, 1])
    accuracy = np.mean(model.predict(task.X_target) == task.y_target)
    ax.set_title(f"target, {name}\naccuracy {accuracy:.1%}")
plt.show()
