"""Products of rules: a log-linear pool, and the source classifier that is one of its factors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from mixda._core.typing import Array, Codes
from mixda.estimators.utils import train_head
from mixda.rules import Chain, Product, Rule, Smooth

_SMOOTHING = 0.05  # uniform share in each factor of a product, so that no factor has a veto
_TIE_BREAK = 1e-9


def log_linear_pool(rules: Sequence[Rule], power: float = 1.0) -> Rule:
    r"""Return the log-linear pool (product of experts) of the smoothed probabilities of rules.

    .. math:: p(y \mid x) \propto \prod_i
              \bigl((1 - \epsilon) \, p_i(y \mid x) + \epsilon / n_c\bigr)^a

    Far from the sources, two rules may be certain of different classes, which is an exact tie. The
    power of later rules is larger by one billionth, so that the last rule decides it instead of
    the order of the classes.
    """
    smoothed = tuple(Chain((rule, Smooth(_SMOOTHING))) for rule in rules)
    powers = np.asarray(power * (1.0 + _TIE_BREAK * np.arange(len(rules))), dtype=np.float64)
    return Product(powers, smoothed)


def train_rough(Z: Array, codes: Codes, sample_weight: Array | None = None) -> Any:
    """Train a logistic regression on the sources, to a tolerance that suffices for a product."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rough = LogisticRegression(max_iter=200, tol=1e-3)
        return train_head(rough, 0, Z, codes, sample_weight)
