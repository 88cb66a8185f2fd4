"""The closed set of rules a saved classifier is made of: numbers and fixed formulas, never code.

A rule is a frozen value that maps rows to rows. `mixda.estimators` turns fitted classifiers into
rules, and a model's file holds them as names and arrays.
"""

from mixda.rules._base import Rule
from mixda.rules._nonlinear import Clip, Fourier, Interpolate, Trees
from mixda.rules._pool import Pool
from mixda.rules._pool import smooth_logs as smooth_logs
from mixda.rules._rules import (
    Affine,
    Average,
    Chain,
    Linear,
    Normalize,
    OneHot,
    Posterior,
    Product,
    ReLU,
    Reweight,
    Sigmoid,
    Smooth,
    Softmax,
    Step,
)

RULES: tuple[type[Rule], ...] = (
    Affine,
    Linear,
    ReLU,
    Step,
    Sigmoid,
    Softmax,
    Normalize,
    Smooth,
    OneHot,
    Posterior,
    Chain,
    Average,
    Product,
    Reweight,
    Clip,
    Interpolate,
    Fourier,
    Trees,
    Pool,
)

FORMER_NAMES = {"Doubt": "Smooth"}  # rules in files of earlier versions
Doubt = Smooth

__all__ = [
    "Affine",
    "Average",
    "Chain",
    "Clip",
    "Doubt",
    "Fourier",
    "Interpolate",
    "Linear",
    "Normalize",
    "OneHot",
    "Pool",
    "Posterior",
    "Product",
    "ReLU",
    "Reweight",
    "Rule",
    "Sigmoid",
    "Smooth",
    "Softmax",
    "Step",
    "Trees",
]
