"""
How to add a method
===================

A method is a class of some twenty lines. The base class takes care of domain ids, labels of any
type, scaling and encoding, data frames, prediction, saving and reports, and it drops the target's
labels before anything can look at them.

The method of this page is real, if modest: sources that are near the target count more. Each
domain is summed up as a mixture, a source at the distance :math:`\\mathcal{MW}_2` from the target
has the weight :math:`\\exp(-\\mathcal{MW}_2^2 / 2 h^2)`, and the classifier is a labeled mixture
of the weighted samples.
"""

# %%
# The method
# ----------
#
# Three hooks. They see encoded samples `Z` and classes as integers; parameters are kept as they
# were given, among them `encoder`, `scale` and `random_state`; what is learned ends with an
# underscore.

import numpy as np

import mixda
from mixda.estimators import MultiSourceClassifier
from mixda.rules import Posterior


class NearSources(MultiSourceClassifier):
    """Learn from all sources, those near the target first."""

    def __init__(self, n_components=3, width=0.5, encoder=None, scale="sources", random_state=None):
        self.n_components = n_components
        self.width = width
        self.encoder = encoder
        self.scale = scale
        self.random_state = random_state

    def _fit_domains(self, sources, target, rng):
        weights = np.ones(len(sources))  # without a target all are equal
        if target is not None:
            goal = mixda.fit_mixture(target, self.n_components, random_state=rng)
            here = [mixda.fit_mixture(Z, self.n_components, random_state=rng) for Z, _ in sources]
            squares = np.array([mixda.mw2(p, goal, squared=True) for p in here])
            weights = np.exp((squares.min() - squares) / (2 * self.width**2))
        self.weights_ = weights / weights.sum()
        self.mixture_ = mixda.fit_labeled_mixture(
            np.concatenate([Z for Z, _ in sources]),
            np.concatenate([codes for _, codes in sources]),
            self.n_components,
            sample_weight=np.repeat(weights, [len(Z) for Z, _ in sources]),
            classes=np.arange(len(self.classes_)),
            min_std=0.1,
            random_state=rng,
        )

    def _predict_encoded(self, Z):
        return self.mixture_.predict_proba(Z)

    def _rule(self):
        return Posterior(self.mixture_)


# %%
# `_rule` says the same as `_predict_encoded` with the closed set of :mod:`mixda.rules`, numbers and
# fixed formulas. That is what makes the model a file that runs no code when it is opened.
#
# It works at once
# ----------------
#
# With pipelines, splitters and scorers, in a file, in a report, and as a candidate of
# :class:`~mixda.AutoMSDA`, which drops it if the sources' own classifier does clearly better.

data = mixda.datasets.make_toy(separation=4, span=60, random_state=0)
task = data.as_task()
alone = mixda.SourceOnly().fit(task.X, task.y, sample_domain=task.sample_domain)
model = NearSources(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
print("weights of the three sources:", model.weights_.round(2).tolist())
print(f"sources only {alone.score(task.X_target, task.y_target):.1%}")
print(f"near sources {model.score(task.X_target, task.y_target):.1%}")

auto = mixda.AutoMSDA({"near sources": NearSources()}, random_state=0)
auto.fit(task.X, task.y, sample_domain=task.sample_domain)
print(auto.trust_)

# %%
# The sources turn away from the target, so the nearest of them knows most.

import matplotlib.pyplot as plt  # noqa: E402

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True, sharey=True, layout="constrained")
for ax, words, fitted in ((axes[0], "sources only", alone), (axes[1], "near sources", model)):
    mixda.plot.samples(task.X_target, fitted.predict(task.X_target), ax=ax, classes=[0, 1])
    ax.set_title(f"{words}: {fitted.score(task.X_target, task.y_target):.1%} right")
plt.show()

# %%
# To make it part of mixda
# ------------------------
#
# 1. Write the class in a file of `src/mixda/estimators/`, with its numerics as functions from
#    values to values in a package of their own. A method over mixtures subclasses
#    `MixtureClassifier` (in `_mixture_classifier.py`) instead and implements only
#    `_adapt(sources, target, rng)`: mixtures in, the labeled mixture of the target out. It then
#    also works on `.gmm` files. :mod:`mixda.estimators.utils` has the building blocks.
# 2. Add one line to `_ALL` in `src/mixda/estimators/_registry.py`: the class, its name on the
#    command line, and its entry in the benchmark. `mixda`, the command line, the benchmark and the
#    tests read this list.
# 3. The contract test (`tests/estimators/test_contract.py`) finds it there: scikit-learn's own
#    checks without an expected failure, SKADA, no leak of target labels, a second fit, clones,
#    pickles and files. Add tests of what is true of this method alone, against an oracle or a
#    limit with a known answer.
#
# The class above passes the contract: `tests/test_examples.py` checks it.
