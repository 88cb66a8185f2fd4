"""
Axis-aligned mixtures need more components
==========================================

All mixtures in mixda are axis-aligned: a component has one standard deviation per feature and no
correlations, so it can be estimated even if there are more features than samples. Correlated data
therefore need more components (figure 2 of the paper). Here, one, three and eight components are
fitted to samples of a correlated Gaussian.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import mixda

rng = np.random.default_rng(0)
covariance = [[4.0, 3.4], [3.4, 4.0]]
X = rng.multivariate_normal([0.0, 0.0], covariance, 1500)
X_new = rng.multivariate_normal([0.0, 0.0], covariance, 1500)

# %%
# The log-likelihood of new samples measures the quality of the fit. The last panel shows the true
# Gaussian, which no model can exceed on average.

fig, axes = plt.subplots(1, 4, figsize=(12, 3.4), sharex=True, sharey=True, layout="constrained")
for ax, n_components in zip(axes, (1, 3, 8), strict=False):
    m = mixda.fit_mixture(X, n_components=n_components, n_init=3, random_state=0)
    mixda.plot.samples(X, ax=ax, alpha=0.25)
    mixda.plot.mixture(m, ax=ax, color=mixda.plot.PALETTE[0])
    plural = "s" if n_components > 1 else ""
    ax.set_title(f"{n_components} component{plural}\nlog-likelihood {m.score(X_new):.2f}")

correlated = np.linalg.slogdet(2 * np.pi * np.array(covariance))[1]
mahalanobis = np.einsum("ni,ij,nj->n", X_new, np.linalg.inv(covariance), X_new)
true_score = -0.5 * (correlated + mahalanobis.mean())
circle = np.linspace(0, 2 * np.pi, 200)
ellipse = 2.0 * np.linalg.cholesky(covariance) @ np.array([np.cos(circle), np.sin(circle)])
mixda.plot.samples(X, ax=axes[3], alpha=0.25)
axes[3].plot(*ellipse, color=mixda.plot.PALETTE[1])
axes[3].set_title(f"true Gaussian\nlog-likelihood {true_score:.2f}")
plt.show()
