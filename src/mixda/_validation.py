"""Checks at the border: each turns a mistake into one sentence for the person who made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]  # float64, or float32 where only products need it

_ACCEPTED_KINDS = "fiub"


def check_array(value: ArrayLike, name: str, ndim: int) -> Array:
    """Return `value` as a finite, C-ordered float64 array of `ndim` dimensions."""
    array = np.asarray(value)
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} holds values that are not numbers; encode or drop those columns first."
            ) from None
    if array.dtype.kind not in _ACCEPTED_KINDS:
        raise ValueError(f"{name} must be real numbers, got an array of dtype {array.dtype}.")
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}.")
    array = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} contains NaN or infinite values; remove or impute them before fitting."
        )
    return array


def check_X(X: ArrayLike, name: str = "X", n_features: int | None = None) -> Array:
    """Return samples as a finite float64 array of shape (n, d) with n, d ≥ 1."""
    array = check_array(X, name, ndim=2)
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}); at least one sample is needed.")
    if n_features is not None and array.shape[1] != n_features:
        raise ValueError(
            f"{name} has {array.shape[1]} features, but {n_features} are expected; "
            "use the same columns as in the fit."
        )
    return array


def check_simplex(value: ArrayLike, name: str, size: int | None = None) -> Array:
    """Return a probability vector: non-negative, summing to one."""
    array = check_array(value, name, ndim=1)
    if size is not None and array.shape[0] != size:
        raise ValueError(f"{name} must have length {size}, got {array.shape[0]}.")
    if array.size == 0 or (array < 0).any() or abs(array.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"{name} must be non-negative and sum to one, got sum {array.sum():.6g} and "
            f"minimum {array.min(initial=np.inf):.6g}; divide by the sum."
        )
    return array


def check_positive_int(value: Any, name: str) -> int:
    """Return a count of at least one."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")
    return int(value)


def check_choice(value: Any, name: str, choices: Sequence[Any]) -> Any:
    """Return `value` if it is one of `choices`."""
    if not any(value is choice or value == choice for choice in choices):
        accepted = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {accepted}, got {value!r}.")
    return value


def check_random_state(random_state: Any) -> np.random.Generator:
    """Return a generator from None, a seed, a ``RandomState`` or a ``Generator``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if random_state is None or (isinstance(random_state, (int, np.integer)) and random_state >= 0):
        return np.random.default_rng(random_state)
    raise ValueError(
        f"random_state must be None, a non-negative integer or a numpy generator, "
        f"got {random_state!r}."
    )
