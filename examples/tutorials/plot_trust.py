"""
When to trust it, and when not
==============================

Adaptation can hurt, and without labels of the target nobody sees it. This page shows what mixda
can tell you without labels, on three toys where the truth is known, and where it cannot know.
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
# *Moved*: the target has moved away from the sources; this is what adaptation is for.
# *Rare class*: nothing has moved, but one class is ten times rarer than in the sources. Optimal
# transport brings all of the sources' mass to the target, so it is inclined to find the rare class
# where it is not. *Swapped*: the target looks like the sources, but its two classes have changed
# places. Nothing in the samples says so.


def rare(data, share):
    """Keep this share of the target's second class."""
    last = data.domain == len(data.domain_names) - 1
    drawn = np.random.default_rng(0).random(len(data.y)) < share
    keep = ~last | (data.y == 0) | drawn
    return DomainDataset(
        data.X[keep], data.y[keep], data.domain[keep], data.domain_names, data.class_names
    )


def swapped(data):
    """Exchange the classes of the target."""
    last = data.domain == len(data.domain_names) - 1
    y = np.where(last, 1 - data.y, data.y)
    return DomainDataset(data.X, y, data.domain, data.domain_names, data.class_names)


calm = make_toy(n_samples=200, separation=4, span=10, random_state=0)
tasks = {
    "moved": make_shifted_toy(random_state=2).as_task(),
    "rare class": rare(calm, 0.1).as_task(),
    "swapped": swapped(calm).as_task(),
}
fig, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for ax, (name, task) in zip(axes, tasks.items(), strict=True):
    source = task.sample_domain > 0
    mixda.plot.samples(task.X[source], ax=ax, alpha=0.1)
    mixda.plot.samples(task.X_target, task.y_target, ax=ax, classes=[0, 1])
    ax.set_title(name)
plt.show()

# %%
# Grey are the sources, in color is the target with its true classes, which no method below sees.
#
# What it says, and the truth
# ---------------------------

for name, task in tasks.items():
    alone = mixda.SourceOnly(scale="sources")
    alone.fit(task.X, task.y, sample_domain=task.sample_domain)
    plain = mixda.GMMWBT(scale=None, classifier="map", random_state=0)
    plain.fit(task.X, task.y, sample_domain=task.sample_domain)
    model = mixda.AutoMSDA(max_rows=300, random_state=0)
    model.fit(task.X, task.y, sample_domain=task.sample_domain)
    print(f"{name}\n    {model.trust_}")
    for words, fitted in (("sources only", alone), ("plain GMM-WBT", plain), ("AutoMSDA", model)):
        print(f"    truth, {words}: {fitted.score(task.X_target, task.y_target):.1%}")

# %%
# Read it like this.
#
# * *Moved*: the estimate is near the truth, and adapting was right.
# * *Rare class*: plain GMM-WBT is far worse than no adaptation. None of the sources has a rare
#   class, so leaving sources out cannot show the danger. `AutoMSDA` looks at the target too: its
#   samples are typical of the sources' classes, only the shares differ, so adaptation is declined.
#   Where the target has moved *and* its proportions differ, this does not help; look at the
#   predicted proportions in the report if you expect that.
# * *Swapped*: the estimate is high and all wrong. An estimate without labels assumes that the
#   target relates to the sources as these relate to each other. Only labels show where this fails:
#   a dozen labeled samples of the target are worth more than any estimate.
#
# Choose by yourself
# ------------------
#
# The scores that `AutoMSDA` builds on can be used with any estimator. Leaving one source out in
# turn is the one that solves the very problem, with labels to check it.

task = tasks["moved"]
candidates = {
    "sources only": mixda.SourceOnly(),
    "GMM-WBT": mixda.GMMWBT(scale=None, classifier="map", random_state=0),
    "GMM-WBT, own scale": mixda.GMMWBT(scale="domain", classifier="map", random_state=0),
}
for score in ("leave_one_source_out", "importance_weighted", "information"):
    found = rank(candidates, task.X, task.y, task.sample_domain, score)
    print(score, {name: round(value, 3) for name, value in found.items()})
for name, candidate in candidates.items():
    candidate.fit(task.X, task.y, sample_domain=task.sample_domain)
    print(f"truth, {name}: {candidate.score(task.X_target, task.y_target):.1%}")

# %%
# Importance weighting looks at rows of the sources, and those of a method that follows the target
# are judged wrongly there. No score is right everywhere; agreement of several is a good sign.
#
# Samples that look like nothing known
# ------------------------------------
#
# A model also marks samples that are far from every domain it has seen: less dense than all but one
# in a thousand samples of the domains themselves.

model = candidates["GMM-WBT"].to_model()
strangers = np.array([[30.0, 0.0], [-20.0, 15.0]])
print(
    "of the target:", model.novelty(task.X_target).mean(), "of strangers:", model.novelty(strangers)
)
mixda.plot.certainty(model.predict_proba(task.X_target)).set_title("certainty on the target")
plt.show()
