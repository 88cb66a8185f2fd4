"""What all rules share: a frozen value that maps rows to rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda.mixture import frozen


class Rule:
    """Base of all rules: a pure function of rows, ``rule(X)`` of shape (n, d) → (n, m)."""

    def __call__(self, X: Array) -> Array:
        """Apply the rule to the rows of `X`."""
        raise NotImplementedError


def set_fields(rule: Rule, **values: Any) -> None:
    """Set fields of a frozen rule; arrays become read-only."""
    for name, value in values.items():
        object.__setattr__(rule, name, frozen(value) if isinstance(value, np.ndarray) else value)


def check_rules(rules: Any, size: int | None = None) -> tuple[Rule, ...]:
    """Return rules as a tuple of the given length, or raise."""
    checked: tuple[Rule, ...] = tuple(rules)
    others = [type(rule).__name__ for rule in checked if not isinstance(rule, Rule)]
    if others:
        raise MixdaError(f"rules must be Rule objects, got {others[0]}.")
    if size is not None and (size == 0 or len(checked) != size):
        raise MixdaError(f"there must be one rule per weight, got {len(checked)} for {size}.")
    return checked
