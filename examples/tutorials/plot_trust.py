"""
When to trust the accuracy estimate
===================================

Adaptation can lower the accuracy, and without target labels this goes unnoticed. This example
compares the estimated and the true accuracy on three toy targets. In one of them, no method can
detect the failure without labels.
"""

import matplotlib.pyplot as plt
import numpy as np

import mixda
from mixda.datasets import DomainDataset, make_shifted_toy, make_toy
from mixda.selection import rank

# %%
# Three targets
# -------------
#
# *Shifted*: the target has shifted away from the sources. Adaptation is made for this case.
#
# *Rare class*: there is no shift, but one class is ten times rarer than in the sources. Optimal
# transport moves all mass of the sources to the target, so it tends to assign too many samples to
# the rare class.
#
# *Swapped*: the target looks like the sources, but its two classes are swapped. The samples do not
# reveal this.


def rare(data, share):
    """Keep this share of the second class of the target."""
    last = data.domain == len(data.domain_names) - 1
    drawn = np.random.default_rng(0).random(len(data.y)) < share
    keep = ~last | (data.y == 0) | drawn
    return DomainDataset(
        data.X[keep], data.y[keep], data.domain[keep], data.domain_names, data.class_names
    )


def swapped(data):
    """Swap the classes of the target."""
    last = data.domain == len(data.domain_names) - 1
    y = np.where(last, 1 - data.y, data.y)
    return DomainDataset(data.X, y, data.domain, data.domain_names, data.class_names)


unshifted = make_toy(n_samples=200, separation=4, span=10, random_state=0)
tasks = {
    "shifted": make_shifted_toy(random_state=2).as_task(),
    "rare class": rare(unshifted, 0.1).as_task(),
    "swapped": swapped(unshifted).as_task(),
}
fig, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for ax, (name, task) in zip(axes, tasks.items(), strict=True):
    source = task.sample_domain > 0
    mixda.plot.samples(task.X[source], ax=ax, alpha=0.1)
    mixda.plot.samples(task.X_target, task.y_target, ax=ax, classes=[0, 1])
    ax.set_title(name)
plt.show()

# %%
# Sources are gray. The target is colored by its true classes, which no method below uses.
#
# Estimated and true accuracy
# ---------------------------

for name, task in tasks.items():
    alone = mixda.SourceOnly(scale="sources")
    alone.fit(task.X, task.y, sample_domain=task.sample_domain)
    plain = mixda.GMMWBT(preset="paper", random_state=0)
    plain.fit(task.X, task.y, sample_domain=task.sample_domain)
    model = mixda.AutoMSDA(max_rows=300, random_state=0)
    model.fit(task.X, task.y, sample_domain=task.sample_domain)
    print(f"{name}\n    {model.trust_}")
    for label, fitted in (("source only", alone), ("plain GMM-WBT", plain), ("AutoMSDA", model)):
        print(f"    true accuracy, {label}: {fitted.score(task.X_target, task.y_target):.1%}")

# %%
# * *Shifted*: the estimate is close to the true accuracy, and adaptation helps.
# * *Rare class*: plain GMM-WBT is much less accurate than source-only. No source has a rare
#   class, so held-out sources cannot reveal the problem. `AutoMSDA` also compares the class
#   proportions that ordinary classifiers see in the target with their errors on held-out sources.
#   The difference is too large to be an error, so it declines adaptation and matches scales to the
#   proportions. It can miss a difference that comes with a large shift. If you know the
#   proportions, pass them as `target_shares`.
# * *Swapped*: the estimate is high, and the predictions are wrong. The estimate assumes that the
#   target relates to the sources as the sources relate to each other. Only labels reveal that this
#   assumption fails. A dozen labeled target samples tell you more than any estimate.
#
# Scores for your own selection
# -----------------------------
#
# The scores in :mod:`mixda.selection` work with all estimators of mixda. Leave-one-source-out
# solves the same kind of problem, with labels to check the result.

task = tasks["shifted"]
candidates = {
    "source only": mixda.SourceOnly(),
    "GMM-WBT": mixda.GMMWBT(preset="paper", random_state=0),
    "GMM-WBT, scaled per domain": mixda.GMMWBT(scale="domain", preset="paper", random_state=0),
}
for score in ("leave_one_source_out", "importance_weighted", "information"):
    ranking = rank(candidates, task.X, task.y, task.sample_domain, score)
    print(score, {name: round(value, 3) for name, value in ranking.items()})
for name, candidate in candidates.items():
    candidate.fit(task.X, task.y, sample_domain=task.sample_domain)
    print(f"true accuracy, {name}: {candidate.score(task.X_target, task.y_target):.1%}")

# %%
# Importance weighting evaluates a method on source rows, which is misleading for methods that fit
# the target. No score is always right. It is a good sign if several agree.
#
# Outliers
# --------
#
# A model also flags outliers: samples whose density is lower than that of 99.9 % of the samples of
# all domains.

model = candidates["GMM-WBT"].to_model()
outliers = np.array([[30.0, 0.0], [-20.0, 15.0]])
print(f"flagged target samples: {model.novelty(task.X_target).mean():.1%}")
print("flagged outliers:", model.novelty(outliers))
mixda.plot.certainty(model.predict_proba(task.X_target)).set_title("certainty on the target")
plt.show()
