"""Encoders that are linear: their matrix, and the way back to the columns of the user."""

from __future__ import annotations

import numpy as np

from mixda._core.typing import Array
from mixda.rules import Affine, Chain, Linear, Rule


def as_linear(rule: Rule | None, n_features: int) -> tuple[Array, Array] | None:
    r"""Return `coef` (d, m) and `intercept` (m,) of a rule :math:`z = x W + b`, if it is one.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.model import as_linear
    >>> from mixda.rules import Affine, ReLU
    >>> as_linear(Affine(np.array([1.0]), np.array([2.0])), 1)
    (array([[0.5]]), array([-0.5]))
    >>> as_linear(ReLU(), 1) is None
    True
    """
    if rule is None:
        return np.eye(n_features), np.zeros(n_features)
    if isinstance(rule, Affine):
        return np.diag(1.0 / rule.scale), -rule.mean / rule.scale
    if isinstance(rule, Linear):
        return rule.coef, rule.intercept
    if not isinstance(rule, Chain):
        return None
    coef, intercept = np.eye(n_features), np.zeros(n_features)
    for step in rule.steps:
        part = as_linear(step, coef.shape[1])
        if part is None:
            return None
        coef, intercept = coef @ part[0], intercept @ part[0] + part[1]
    return coef, intercept


def decode(rule: Rule | None, n_features: int, Z: Array) -> Array | None:
    """Return the rows that an encoder maps to `Z`; None if they are not unique.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.model import decode
    >>> from mixda.rules import Affine
    >>> decode(Affine(np.array([1.0]), np.array([2.0])), 1, np.array([[3.0]]))
    array([[7.]])
    """
    linear = as_linear(rule, n_features)
    if linear is None or np.linalg.matrix_rank(linear[0]) < n_features:
        return None
    decoded: Array = (Z - linear[1]) @ np.linalg.pinv(linear[0])
    return decoded
