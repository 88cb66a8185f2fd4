"""Validation of arguments: invalid input raises a `MixdaError` that tells what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array, Codes

LARGEST = 1e60  # accepted magnitude; deviations are at least 1 / LARGEST: powers stay finite

_NUMERIC_KINDS = "fiub"  # of dtypes: floats, integers, booleans
_MAX_SUM_ERROR = 1e-12  # of probabilities that are not renormalized


def check_array(value: ArrayLike, name: str, ndim: int, *, allow_nan: bool = False) -> Array:
    """Return `value` as a finite, C-ordered float64 array of `ndim` dimensions.

    With `allow_nan`, NaN is accepted too and marks missing values.
    """
    if hasattr(value, "toarray"):
        raise MixdaError(f"{name} is a sparse matrix; pass a dense array, {name}.toarray().")
    if np.ma.is_masked(value):
        raise MixdaError(f"{name} has masked values; remove or fill them first.")
    try:
        array = np.asarray(value)
    except ValueError:
        raise MixdaError(
            f"{name} has rows of different lengths; pass a rectangular array."
        ) from None
    except (TypeError, RuntimeError, NotImplementedError) as error:  # tensors on another device
        raise MixdaError(
            f"{name} is a {type(value).__name__} that numpy cannot read ({error}); pass a numpy "
            "array, or see 'GPU' in the documentation for what takes tensors."
        ) from None
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise MixdaError(
                f"{name} contains values that are not numbers; encode or drop these columns first."
            ) from None
    if array.dtype.kind not in _NUMERIC_KINDS:
        raise MixdaError(f"{name} must be real numbers, got an array of dtype {array.dtype}.")
    if array.ndim != ndim:
        raise MixdaError(f"{name} must have {ndim} dimension(s), got shape {array.shape}.")
    array = np.ascontiguousarray(array, dtype=np.float64)
    if array.max(initial=0.0) <= LARGEST and array.min(initial=0.0) >= -LARGEST:
        return array  # NaN compares false, so that it is looked for below
    if allow_nan:
        if np.isinf(array).any():
            raise MixdaError(
                f"{name} contains infinite values; correct them, or mark them as missing (NaN)."
            )
    elif not np.isfinite(array).all():
        raise MixdaError(
            f"{name} contains NaN or infinite values; remove or impute them before fitting."
        )
    check_magnitude(array, name)
    return array


def check_magnitude(array: Array, name: str) -> None:
    """Raise if values are so large that their powers overflow."""
    high, low = np.fmax.reduce(array, None, initial=0.0), np.fmin.reduce(array, None, initial=0.0)
    largest = max(high, -low)
    if largest > LARGEST:
        raise MixdaError(
            f"{name} has values up to {largest:.3g}, whose powers overflow; rescale it "
            f"(values up to {LARGEST:.0e} are accepted)."
        )


def check_X(
    X: ArrayLike, name: str = "X", n_features: int | None = None, *, allow_nan: bool = False
) -> Array:
    """Return samples as a float64 array of shape (n, d) with n, d ≥ 1; see `check_array`."""
    array = check_array(X, name, ndim=2, allow_nan=allow_nan)
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise MixdaError(f"{name} is empty (shape {array.shape}); at least one sample is needed.")
    if n_features is not None and array.shape[1] != n_features:
        raise MixdaError(
            f"{name} has {array.shape[1]} features, but {n_features} are expected; "
            "use the same columns as in the fit."
        )
    return array


def check_simplex(value: ArrayLike, name: str, size: int | None = None) -> Array:
    """Return a probability vector: non-negative, and renormalized if its sum is nearly one."""
    array = check_array(value, name, ndim=1)
    if size is not None and array.shape[0] != size:
        raise MixdaError(f"{name} must have length {size}, got {array.shape[0]}.")
    if array.size == 0 or (array < 0).any() or abs(array.sum() - 1.0) > 1e-6:
        raise MixdaError(
            f"{name} must be non-negative and sum to one, got sum {array.sum():.6g} and "
            f"minimum {array.min(initial=np.inf):.6g}; divide by the sum."
        )
    total = array.sum()
    return array if abs(total - 1.0) <= _MAX_SUM_ERROR else array / total


def check_names(values: Any, name: str) -> NDArray[Any]:
    """Return class names as an array of strings or of finite numbers, shape (n,)."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            if len({isinstance(value, str) for value in array.ravel()}) > 1:
                raise MixdaError
            array = np.array(array.tolist())
    except ValueError:
        raise MixdaError(f"{name} must be a list of strings or of numbers, not of both.") from None
    if array.ndim != 1 or array.dtype.kind not in "biufU":
        raise MixdaError(
            f"{name} must be a list of strings or of numbers, got an array of shape "
            f"{array.shape} and dtype {array.dtype}."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise MixdaError(f"{name} contains NaN or infinite values; give every sample a class.")
    return array


def check_positive_int(value: Any, name: str) -> int:
    """Return an integer of at least one."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 1:
        raise MixdaError(f"{name} must be a positive integer, got {value!r}.")
    return int(value)


def check_n_jobs(value: Any) -> int:
    """Return a number of jobs that joblib accepts."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or not value:
        raise MixdaError(
            f"n_jobs must be a positive number of jobs, or -1 for all cores, got {value!r}."
        )
    return int(value)


def check_number(
    value: Any,
    name: str,
    *,
    least: float = 0.0,
    most: float = np.inf,
    above: bool = False,
    also: str = "",
) -> float:
    """Return a finite number between `least` (excluded if `above`) and `most`.

    `also` names other accepted values in the message.
    """
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not (number and np.isfinite(value) and least <= value <= most) or (above and value == least):
        kind = "positive" if above or least > 0 else "non-negative"
        bound = f" of at least {least:g}" if least > 0 else ""
        bound += f" of at most {most:g}" if most < np.inf else ""
        raise MixdaError(f"{name} must be a {kind} number{bound}{also}, got {value!r}.")
    return float(value)


def check_tol(tol: Any) -> float:
    """Return the relative change at which to stop; a negative number or -inf means never."""
    if not isinstance(tol, (int, float, np.number)) or np.isnan(tol):
        raise MixdaError(f"tol must be a number, got {tol!r}.")
    return float(tol)


def check_choice(value: Any, name: str, choices: Sequence[Any]) -> Any:
    """Return `value` if it is one of `choices`."""
    if not any(value is choice or value == choice for choice in choices):
        accepted = ", ".join(repr(choice) for choice in choices)
        raise MixdaError(f"{name} must be one of {accepted}, got {value!r}.")
    return value


def is_word(value: Any, word: str) -> bool:
    """Return whether a value is this string; an array never is."""
    return isinstance(value, str) and value == word


def check_random_state(random_state: Any) -> np.random.Generator:
    """Return a generator from None, a seed, a ``RandomState`` or a ``Generator``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if random_state is None or (isinstance(random_state, (int, np.integer)) and random_state >= 0):
        return np.random.default_rng(random_state)
    raise MixdaError(
        f"random_state must be None, a non-negative integer or a numpy generator, "
        f"got {random_state!r}."
    )


def encode_classes(y: Any, classes: Any, n: int) -> tuple[NDArray[Any], Codes]:
    """Return the class names and, for each sample, the position of its class among them."""
    y = check_names(y, "y")
    if len(y) != n:
        raise MixdaError(f"y has length {len(y)}, but X has {n} samples.")
    present, codes = np.unique(y, return_inverse=True)
    if classes is None:
        return present, codes
    names = check_names(classes, "classes")
    if (names.dtype.kind == "U") != (present.dtype.kind == "U"):
        raise MixdaError("y and classes must both be strings or both be numbers.")
    if len(np.unique(names)) != len(names):
        raise MixdaError(f"classes must be distinct names, got {names.tolist()!r}.")
    unknown = np.setdiff1d(present, names)
    if unknown.size:
        raise MixdaError(
            f"y contains {unknown.tolist()!r}, which is not among classes={names.tolist()!r}."
        )
    order = np.argsort(names)
    return names, order[np.searchsorted(names, present, sorter=order)][codes]
