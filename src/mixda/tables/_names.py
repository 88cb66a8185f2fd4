"""Names of classes and domains: text, numbers, or numbers written as text.

Each name is read independently of the others, so that files read one by one agree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_INTEGER = re.compile(r"(?:\+(?!-))?(-?(?:0|[1-9]\d{0,17}))(?:\.0*)?")  # no leading zeros
_SCIENTIFIC = re.compile(r"[-+]?\d(?:\.\d*)?[eE][-+]?\d{1,2}")  # the format of numpy.savetxt


def class_names(values: NDArray[Any]) -> NDArray[Any]:
    """Return classes as integers if all of them are integers, else as strings.

    Each value is read on its own: "2.0" is always 2, and "002" is always text.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.tables import class_names
    >>> class_names(np.array(["1", "2.0", "3.000e+00"], dtype=object))
    array([1, 2, 3])
    >>> class_names(np.array(["1.0", "worn"], dtype=object))
    array(['1', 'worn'], dtype='<U4')
    >>> class_names(np.array(["001", "2"], dtype=object))
    array(['001', '2'], dtype='<U3')
    """
    distinct, codes = np.unique(values.astype(str), return_inverse=True)
    integers = [_parse_integer(name) for name in distinct.tolist()]
    if None not in integers:
        return np.asarray(np.array(integers, dtype=np.int64)[codes])
    return np.asarray(_as_strings(distinct, integers)[codes])


def one_kind_of_classes(labels: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the classes of several domains, all as integers or all as strings.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.tables._names import one_kind_of_classes
    >>> one_kind_of_classes([np.array([1, 2]), np.array(["1", "worn"])])
    [array(['1', '2'], dtype='<U4'), array(['1', 'worn'], dtype='<U4')]
    """
    together = class_names(np.concatenate([y.astype(str) for y in labels]))
    return np.split(together, np.cumsum([len(y) for y in labels])[:-1])


def domain_names(values: NDArray[Any]) -> NDArray[Any]:
    """Return the names of domains as strings: 3.0 is "3".

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.tables._names import domain_names
    >>> domain_names(np.array([3.0, 1.5]))
    array(['3', '1.5'], dtype='<U3')
    """
    distinct, codes = np.unique(values.astype(str), return_inverse=True)
    return _as_strings(distinct, [_parse_integer(name) for name in distinct.tolist()])[codes]


def _parse_integer(name: str) -> int | None:
    match = _INTEGER.fullmatch(name)
    if match is not None:
        return int(match[1])
    is_integer = (
        _SCIENTIFIC.fullmatch(name) and float(name).is_integer() and abs(float(name)) < 2**53
    )
    return int(float(name)) if is_integer else None


def _as_strings(names: NDArray[Any], integers: Sequence[int | None]) -> NDArray[Any]:
    pairs = zip(names.tolist(), integers, strict=True)
    return np.array([name if k is None else str(k) for name, k in pairs], dtype=str)
