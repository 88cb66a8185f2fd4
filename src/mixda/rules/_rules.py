"""The closed set of rules that a saved classifier is made of: arrays and fixed formulas, no code.

A rule is a frozen value that maps rows to rows. `mixda.estimators` turns fitted classifiers into
rules, and the file of a model holds them as names and arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.namespace import (
    as_indicator,
    as_like,
    at_least,
    copy_of,
    namespace,
    safe_log,
    take,
)
from mixda._core.typing import Array
from mixda._core.validation import check_array, check_number
from mixda.mixture import Mixture, normalize_log_rows
from mixda.rules._base import Rule, check_rules, set_fields

_MIN_PROBA = 1e-300  # below it, the logarithm is not taken


@dataclass(frozen=True, eq=False)
class Affine(Rule):
    r"""Standardization :math:`z = (x - \mu) / \sigma`; `mean` and `scale` have shape (d,).

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Affine
    >>> Affine(np.array([1.0]), np.array([2.0]))(np.array([[5.0]]))
    array([[2.]])
    """

    mean: Array
    scale: Array

    def __post_init__(self) -> None:
        set_fields(self, mean=check_array(self.mean, "mean", 1))
        set_fields(self, scale=check_array(self.scale, "scale", 1))
        if self.mean.shape != self.scale.shape or (self.scale == 0).any():
            raise MixdaError(
                f"scale must have {len(self.mean)} numbers other than zero, one per mean, got "
                f"{self.scale!r}."
            )

    def __call__(self, X: Array) -> Array:
        scaled: Array = (X - as_like(self.mean, X)) / as_like(self.scale, X)
        return scaled


@dataclass(frozen=True, eq=False)
class Linear(Rule):
    r"""Linear map :math:`z = x W + b`; `coef` has shape (d, m), `intercept` (m,).

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Linear
    >>> Linear(np.array([[2.0], [1.0]]), np.array([1.0]))(np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    coef: Array
    intercept: Array

    def __post_init__(self) -> None:
        set_fields(self, coef=check_array(self.coef, "coef", 2))
        set_fields(self, intercept=check_array(self.intercept, "intercept", 1))
        if self.coef.shape[1] != len(self.intercept):
            raise MixdaError(
                f"coef of shape {self.coef.shape} needs {self.coef.shape[1]} intercepts, got "
                f"{len(self.intercept)}."
            )

    def __call__(self, X: Array) -> Array:
        mapped: Array = X @ as_like(self.coef, X) + as_like(self.intercept, X)
        return mapped


@dataclass(frozen=True, eq=False)
class ReLU(Rule):
    r"""The positive part :math:`\max(0, x)` of each number."""

    def __call__(self, X: Array) -> Array:
        positive: Array = at_least(X, 0.0)
        return positive


@dataclass(frozen=True, eq=False)
class Step(Rule):
    """One where a number is positive, else zero: the decision between two classes."""

    def __call__(self, X: Array) -> Array:
        step: Array = as_indicator(X > 0.0, X)
        return step


@dataclass(frozen=True, eq=False)
class Sigmoid(Rule):
    r"""The logistic function :math:`1 / (1 + e^{-x})` of each number."""

    def __call__(self, X: Array) -> Array:
        xp = namespace(X)
        if xp is not np:
            proba: Array = 1.0 / (1.0 + xp.exp(-X))
            return proba
        from scipy.special import expit

        return np.asarray(expit(X))


@dataclass(frozen=True, eq=False)
class Softmax(Rule):
    r"""Probabilities :math:`e^{x_c} / \sum_{c'} e^{x_{c'}}` from rows of scores."""

    def __call__(self, X: Array) -> Array:
        proba: Array = copy_of(X)
        normalize_log_rows(proba)
        return proba


@dataclass(frozen=True, eq=False)
class Normalize(Rule):
    """Non-negative scores plus `least`, divided by the sum of their row."""

    least: float = 0.0

    def __call__(self, X: Array) -> Array:
        scores = X + self.least
        proba: Array = scores / scores.sum(axis=1)[:, None]
        return proba


@dataclass(frozen=True, eq=False)
class Smooth(Rule):
    r"""Smoothing with the uniform distribution, :math:`(1 - \epsilon) p + \epsilon / n_c`.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Smooth
    >>> Smooth(0.1)(np.array([[1.0, 0.0]]))
    array([[0.95, 0.05]])
    """

    share: float

    def __post_init__(self) -> None:
        check_number(self.share, "share", most=1)

    def __call__(self, X: Array) -> Array:
        smoothed: Array = (1.0 - self.share) * X + self.share / X.shape[1]
        return smoothed


@dataclass(frozen=True, eq=False)
class OneHot(Rule):
    """One at the largest score of a row (the first if several are equal), else zero."""

    def __call__(self, X: Array) -> Array:
        one_hot: Array = take(as_like(np.eye(X.shape[1]), X), X.argmax(axis=1))
        return one_hot


@dataclass(frozen=True, eq=False)
class Posterior(Rule):
    r"""Class probabilities :math:`P(y \mid x) = \sum_k P(k \mid x) v_{k,y}` of a labeled mixture.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda import Mixture
    >>> from mixda.rules import Posterior
    >>> p = Mixture([0.5, 0.5], [[0.0], [9.0]], [[1.0], [1.0]], [[1, 0], [0, 1]])
    >>> Posterior(p)(np.array([[4.5]]))
    array([[0.5, 0.5]])
    """

    mixture: Mixture

    def __post_init__(self) -> None:
        if not isinstance(self.mixture, Mixture) or not self.mixture.is_labeled:
            raise MixdaError("mixture of a Posterior must be a labeled Mixture.")

    def __call__(self, X: Array) -> Array:
        return self.mixture.predict_proba(X)


@dataclass(frozen=True, eq=False)
class Chain(Rule):
    """Rules applied one after the other; an empty chain is the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Affine, Chain, ReLU
    >>> Chain((Affine(np.array([1.0]), np.array([1.0])), ReLU()))(np.array([[0.0], [3.0]]))
    array([[0.],
           [2.]])
    """

    steps: tuple[Rule, ...]

    def __post_init__(self) -> None:
        set_fields(self, steps=check_rules(self.steps))

    def __call__(self, X: Array) -> Array:
        for step in self.steps:
            X = step(X)
        return X


@dataclass(frozen=True, eq=False)
class Average(Rule):
    r"""Weighted average :math:`\sum_i w_i r_i(x)` of rules.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Average, OneHot, Softmax
    >>> Average(np.array([0.5, 0.5]), (OneHot(), Softmax()))(np.array([[0.0, 0.0]]))
    array([[0.75, 0.25]])
    """

    weights: Array
    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        set_fields(self, weights=check_array(self.weights, "weights", 1))
        set_fields(self, rules=check_rules(self.rules, len(self.weights)))

    def __call__(self, X: Array) -> Array:
        total = float(self.weights[0]) * self.rules[0](X)
        for weight, rule in zip(self.weights[1:], self.rules[1:], strict=True):
            total += float(weight) * rule(X)
        return total


@dataclass(frozen=True, eq=False)
class Product(Rule):
    r"""Log-linear pool of probabilities, :math:`p(y \mid x) \propto \prod_i p_i(y \mid x)^{a_i}`.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Product, Softmax
    >>> p = Softmax()
    >>> Product(np.array([1.0, 1.0]), (p, p))(np.log([[0.2, 0.8]])).round(3)
    array([[0.059, 0.941]])
    """

    powers: Array
    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        set_fields(self, powers=check_array(self.powers, "powers", 1))
        set_fields(self, rules=check_rules(self.rules, len(self.powers)))

    def __call__(self, X: Array) -> Array:
        parts = zip(self.powers, self.rules, strict=True)
        logs: Any = sum(float(power) * safe_log(rule(X), _MIN_PROBA) for power, rule in parts)
        return Softmax()(logs)


@dataclass(frozen=True, eq=False)
class Reweight(Rule):
    r"""Reweighted classes, :math:`\propto p(y \mid x)^{a} e^{b_y}`, with a temperature :math:`1/a`.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Reweight
    >>> Reweight(np.log([1.0, 3.0]))(np.array([[0.5, 0.5]])).round(2)
    array([[0.25, 0.75]])
    """

    log_odds: Array
    power: float = 1.0

    def __post_init__(self) -> None:
        set_fields(self, log_odds=check_array(self.log_odds, "log_odds", 1))
        check_number(self.power, "power")

    def __call__(self, X: Array) -> Array:
        return Softmax()(self.power * safe_log(X, _MIN_PROBA) + as_like(self.log_odds, X))
