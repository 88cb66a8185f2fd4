"""
GMM-WBT on the toy of section 4.1
=================================

Three labeled sources and an unlabeled target, each turned and deformed a little further
(figure 3 of the paper). GMM-WBT takes three steps: fit a mixture to every domain, average the
labeled ones into a barycenter, and carry the barycenter onto the target along a transport plan.
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
# (a) samples, (b) their mixtures
# -------------------------------
#
# Five components per class for the sources. The target has no labels, so its ten components have
# none either: they are gray.

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
# Upper part: the plan between the components of the barycenter B (left) and of the target
# (right). Lower part: B, and the labeled mixture that the plan makes on the target.

B = mixda.barycenter(sources, random_state=0).mixture
result = mixda.transport_plan(B, target)
adapted = barycentric_map(B, target, result.plan)

fig, axes = plt.subplot_mosaic(
    [["plan", "plan"], ["B", "adapted"]],
    figsize=(9, 5.4),
    layout="constrained",
)
offset = np.array([20.0, 0.0])  # draw the target beside the barycenter, not on top of it
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
# A toy that needs it
# -------------------
#
# On the toy above a classifier trained on the sources alone is perfect already. When the classes
# are closer and the target has moved, it is not.

from sklearn.linear_model import LogisticRegression  # noqa: E402

task = mixda.datasets.make_shifted_toy(random_state=0).as_task()
is_source = task.sample_domain > 0
source_only = LogisticRegression().fit(task.X[is_source], task.y[is_source])
wbt = mixda.GMMWBT(n_components=5, n_init=3, scale=None, classifier="map", random_state=0)
wbt.fit(task.X, task.y, sample_domain=task.sample_domain)

fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained")
mixda.plot.samples(task.X[is_source], task.y[is_source], ax=axes[0], alpha=0.2)
axes[0].set_title("sources")
for ax, name, model in ((axes[1], "source only", source_only), (axes[2], "GMM-WBT", wbt)):
    mixda.plot.samples(task.X_target, model.predict(task.X_target), ax=ax, classes=[0, 1])
    accuracy = np.mean(model.predict(task.X_target) == task.y_target)
    ax.set_title(f"target as seen by {name}\naccuracy {accuracy:.1%}")
plt.show()
