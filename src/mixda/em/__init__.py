"""Fitting mixtures to samples by expectation-maximization."""

from mixda.em._cache import kept_mixture as kept_mixture
from mixda.em._fit import fit_domains, fit_labeled_mixture, fit_mixture
from mixda.em._search import units_of as units_of

__all__ = ["fit_domains", "fit_labeled_mixture", "fit_mixture"]
