"""
How to add a method
===================

A method is a class of about twenty lines. The base class handles domain ids, labels of any type,
scaling and encoding, data frames, prediction, saving and reports. It also drops target labels
before the method runs.

The method in this example gives more weight to sources that are close to the target. Each domain
is summarized by a mixture. A source at distance :math:`\\mathcal{MW}_2` from the target has weight
:math:`\\exp(-\\mathcal{MW}_2^2 / 2 h^2)`, and the classifier is a labeled mixture of the weighted
samples.
"""

# %%
# The method
# ----------
#
# A method implements three hooks, which receive encoded samples `Z` and integer classes. As in
# scikit-learn, `__init__` stores its parameters unchanged (among them `encoder`, `scale` and
# `random_state`), and learned attributes end with an underscore.

import numpy as np

import mixda
from mixda.estimators import MultiSourceClassifier
from mixda.rules import Posterior


class NearSources(MultiSourceClassifier):
    """Labeled mixture of all sources, weighted by their proximity to the target."""

    def __init__(self, n_components=3, width=0.5, encoder=None, scale="sources", random_state=None):
        self.n_components = n_components
        self.width = width
        self.encoder = encoder
        self.scale = scale
        self.random_state = random_state

    def _fit_domains(self, sources, target, rng):
        weights = np.ones(len(sources))  # equal weights if there is no target
        if target is not None:
            q = mixda.fit_mixture(target, self.n_components, random_state=rng)
            mixtures = [
                mixda.fit_mixture(Z, self.n_components, random_state=rng) for Z, _ in sources
            ]
            squares = np.array([mixda.mw2(p, q, squared=True) for p in mixtures])
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
# `_rule` returns the same classifier as `_predict_encoded`, built from the closed set of
# formulas in :mod:`mixda.rules`. This is why loading a model file never executes code from it.
#
# Using the method
# ----------------
#
# The class works in pipelines, with splitters and scorers, in model files and reports, and as a
# candidate of :class:`~mixda.AutoMSDA`, which falls back to the source classifier if that is
# clearly better.

data = mixda.datasets.make_toy(separation=4, span=60, random_state=0)
task = data.as_task()
alone = mixda.SourceOnly().fit(task.X, task.y, sample_domain=task.sample_domain)
model = NearSources(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
print("weights of the three sources:", model.weights_.round(2).tolist())
print(f"source-only accuracy: {alone.score(task.X_target, task.y_target):.1%}")
print(f"NearSources accuracy: {model.score(task.X_target, task.y_target):.1%}")

auto = mixda.AutoMSDA({"near sources": NearSources()}, random_state=0)
auto.fit(task.X, task.y, sample_domain=task.sample_domain)
print(auto.trust_)

# %%
# The sources are rotated away from the target, so the closest source is the most informative.

import matplotlib.pyplot as plt  # noqa: E402

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True, sharey=True, layout="constrained")
for ax, title, fitted in ((axes[0], "source only", alone), (axes[1], "NearSources", model)):
    mixda.plot.samples(task.X_target, fitted.predict(task.X_target), ax=ax, classes=[0, 1])
    ax.set_title(f"{title}: {fitted.score(task.X_target, task.y_target):.1%}")
plt.show()

# %%
# Adding the method to mixda
# --------------------------
#
# 1. Put the class in a file of `src/mixda/estimators/`, and its numerical code in functions in a
#    lower package. A method that works on mixtures subclasses `MixtureClassifier`
#    (`src/mixda/estimators/_mixture_classifier.py`) and implements only `_adapt(sources, target,
#    rng)`, which returns the labeled target mixture. It then also works on `.gmm` files.
# 2. Add one line to the list in `src/mixda/estimators/_registry.py`. The `mixda` namespace, the
#    command line and the benchmarks read this list.
# 3. Run the contract test, `pytest tests/estimators/test_contract.py`. It runs scikit-learn's
#    estimator checks, tests SKADA compatibility, saving and loading, and checks that target labels
#    are never used. Then add tests against a known answer.
# 4. List the class in `docs/api.rst` and mention it in `CHANGELOG.md`.
#
# The class above passes the contract: `tests/test_examples.py` checks it.
