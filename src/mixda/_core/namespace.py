"""The library of an array: numpy, or torch or CuPy where scikit-learn's array dispatch is on."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError

_OTHERS = ("torch", "cupy")


def namespace(x: Any) -> Any:
    """Return the module with the functions for `x`: `torch`, `cupy`, or else `numpy`.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda._core.namespace import namespace
    >>> namespace(np.zeros(3)).__name__
    'numpy'
    """
    root = type(x).__module__.partition(".")[0]
    return importlib.import_module(root) if root in _OTHERS else np


def is_dispatched(x: Any) -> bool:
    """Return whether results for `x` are arrays of its own library, on its own device.

    That is off by default. Like scikit-learn's estimators, mixda follows
    ``sklearn.config_context(array_api_dispatch=True)``.
    """
    if namespace(x) is np:
        return False
    from sklearn import get_config

    return bool(get_config()["array_api_dispatch"])


def as_like(array: Any, x: Any) -> Any:
    """Return an array with the library, the precision and the device of `x`."""
    xp = namespace(x)
    if xp is np:
        return array
    options = {"device": x.device} if xp.__name__ == "torch" else {}
    # a copy, because torch cannot mark read-only memory
    return xp.asarray(np.array(array), dtype=x.dtype, **options)


def to_numpy(x: Any) -> NDArray[Any]:
    """Return an array of any of the libraries in the memory of numpy."""
    if namespace(x) is np:
        return np.asarray(x)
    return np.asarray(x.cpu() if namespace(x).__name__ == "torch" else x.get())


def empty(shape: tuple[int, ...], x: Any) -> Any:
    """Return an array without values, with the library, the precision and the device of `x`."""
    xp = namespace(x)
    options = {"device": x.device} if xp.__name__ == "torch" else {}
    return xp.empty(shape, dtype=x.dtype, **options)


def check_dispatched(x: Any, n_features: int) -> Any:
    """Return samples of another library as they are, if their shape and values are valid."""
    xp = namespace(x)
    if x.ndim != 2 or x.shape[0] == 0 or x.shape[1] != n_features:
        raise MixdaError(
            f"X must have shape (n, {n_features}) with n ≥ 1, got {tuple(x.shape)}; use the same "
            "columns as in the fit."
        )
    if x.dtype not in (xp.float32, xp.float64):
        raise MixdaError(f"X must be float32 or float64, got {x.dtype}; convert it.")
    if bool(xp.isinf(x).any()):
        raise MixdaError("X contains infinite values; correct them, or mark them as NaN.")
    return x
