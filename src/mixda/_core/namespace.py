"""The library of an array: numpy, or torch or CuPy where scikit-learn's array dispatch is on."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import LARGEST

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
    if type(x) is np.ndarray:
        return np
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
    if namespace(array) is np:
        array = np.array(array)  # a copy, because torch cannot mark read-only memory
    return xp.asarray(array, dtype=x.dtype, **_device_of(x))


def to_numpy(x: Any) -> NDArray[Any]:
    """Return an array of any of the libraries in the memory of numpy."""
    if namespace(x) is np:
        return np.asarray(x)
    return np.asarray(x.detach().cpu() if namespace(x).__name__ == "torch" else x.get())


def to_float64(x: Any) -> NDArray[np.float64]:
    """Return an array of any of the libraries as float64 in the memory of numpy."""
    return np.asarray(to_numpy(x), dtype=np.float64)


def empty(shape: tuple[int, ...], x: Any) -> Any:
    """Return an array without values, with the library, the precision and the device of `x`."""
    xp = namespace(x)
    return xp.empty(shape, dtype=x.dtype, **_device_of(x))


def as_index(rows: Any, x: Any) -> Any:
    """Return an index or a mask of numpy for the rows of `x`, on its device."""
    xp = namespace(x)
    return rows if xp is np or isinstance(rows, slice) else xp.asarray(rows, **_device_of(x))


def take(x: Any, rows: Any) -> Any:
    """Return the rows of `x` that an index or a mask of numpy names."""
    return x[as_index(rows, x)]


def add_rows(values: Any, rows: Any, n: int) -> Any:
    """Return an array of n rows, where each of `values` is added to the row that `rows` names."""
    xp = namespace(values)
    total = xp.zeros_like(empty((n, values.shape[1]), values))
    if xp.__name__ == "torch":
        return total.index_add_(0, as_index(rows, values), values)
    xp.add.at(total, as_index(rows, values), values)
    return total


def multiply(matrix: Any, x: Any) -> Any:
    """Return the product of a sparse matrix of scipy with an array of any of the libraries."""
    return matrix @ x if namespace(x) is np else as_like(matrix.toarray(), x) @ x


def dtype_name(x: Any) -> str:
    """Return "float32" or "float64", the precision of `x`."""
    return str(x.dtype).rpartition(".")[2]


def cast(x: Any, dtype: str) -> Any:
    """Return a copy of `x` with the dtype of this name, on the same device."""
    xp = namespace(x)
    return x.to(getattr(xp, dtype), copy=True) if xp.__name__ == "torch" else x.astype(dtype)


def copy_of(x: Any) -> Any:
    """Return a copy of `x` in its own precision (numpy: float64)."""
    xp = namespace(x)
    if xp is np:
        return np.array(x, dtype=np.float64)
    return x.clone() if xp.__name__ == "torch" else x.copy()


def as_indicator(mask: Any, x: Any) -> Any:
    """Return ones where a mask is true, else zeros, in the precision of `x` (numpy: float64)."""
    xp = namespace(x)
    if xp.__name__ == "torch":
        return mask.to(x.dtype)
    return mask.astype(np.float64 if xp is np else x.dtype)


def at_least(x: Any, value: float) -> Any:
    """Return the larger one of each number and a constant."""
    xp = namespace(x)
    return np.maximum(x, value) if xp is np else xp.clip(x, value, None)


def safe_log(x: Any, least: float) -> Any:
    """Return logarithms of numbers that are raised to `least`, or to what the precision has."""
    xp = namespace(x)
    if xp is not np:
        least = max(least, float(xp.finfo(x.dtype).tiny))
    return xp.log(at_least(x, least))


def check_dispatched(x: Any, n_features: int | None = None) -> Any:
    """Return samples of another library as they are, if their shape and values are valid."""
    xp = namespace(x)
    d = "d" if n_features is None else n_features
    if x.ndim != 2 or 0 in x.shape or (n_features is not None and x.shape[1] != n_features):
        raise MixdaError(
            f"X must have shape (n, {d}) with n ≥ 1, got {tuple(x.shape)}; use the same "
            "columns as in the fit."
        )
    if x.dtype not in (xp.float32, xp.float64):
        raise MixdaError(f"X must be float32 or float64, got {x.dtype}; convert it.")
    if bool(xp.isinf(x).any()):
        raise MixdaError("X contains infinite values; correct them, or mark them as NaN.")
    largest = float(xp.amax(xp.abs(xp.nan_to_num(x))))
    if largest > LARGEST:
        raise MixdaError(f"X has values up to {largest:.3g}, whose powers overflow; rescale it.")
    return x.detach() if xp.__name__ == "torch" else x


def check_like(like: Any) -> Any:
    """Return an array whose library and device are to be used, or None, if it is valid."""
    if like is None:
        return None
    if not is_dispatched(like):
        raise MixdaError(
            "like must be an array of torch or CuPy, and "
            "sklearn.config_context(array_api_dispatch=True) must be on, got "
            f"{type(like).__name__}."
        )
    if dtype_name(like) not in ("float32", "float64"):
        raise MixdaError(f"like must be float32 or float64, got {like.dtype}.")
    return like


def check_numpy(x: Any, what: str) -> None:
    """Raise an error if `x` is of another library, naming what does not take its arrays."""
    xp = namespace(x)
    if xp is not np:
        raise MixdaError(
            f"{what} runs on the CPU and takes no arrays of {xp.__name__}; pass a numpy array "
            "(X.numpy(force=True) of torch, X.get() of CuPy)."
        )


def _device_of(x: Any) -> dict[str, Any]:
    return {"device": x.device} if namespace(x).__name__ == "torch" else {}
