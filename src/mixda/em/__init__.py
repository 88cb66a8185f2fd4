"""Fitting Gaussian mixtures to samples by expectation-maximization."""

from mixda.em._cache import cached_mixture as cached_mixture
from mixda.em._cache import refine_mixture as refine_mixture
from mixda.em._fit import fit_domains, fit_labeled_mixture, fit_mixture
from mixda.em._private import fit_private_mixture
from mixda.em._private import gaussian_budget as gaussian_budget
from mixda.em._private import gaussian_delta as gaussian_delta
from mixda.em._search import feature_units as feature_units

__all__ = ["fit_domains", "fit_labeled_mixture", "fit_mixture", "fit_private_mixture"]
