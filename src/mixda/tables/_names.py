"""Names of classes and domains as tables hold them: text, numbers, or numbers written as text.

Each is read on its own, so that files that are read one by one agree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WHOLE = re.compile(r"(?:\+(?!-))?(-?(?:0|[1-9]\d{0,17}))(?:\.0*)?")  # and no zero in front
_POWER = re.compile(r"[-+]?\d(?:\.\d*)?[eE][-+]?\d{1,2}")  # as numpy.savetxt writes numbers


def class_names(values: NDArray[Any]) -> NDArray[Any]:
    """Classes as integers if all of them are whole numbers, else as strings.

    Each is read on its own: 2.0 is 2 whatever stands beside it, and 002 is a word.

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
    numbers = [_whole_number(name) for name in distinct.tolist()]
    if None not in numbers:
        return np.asarray(np.array(numbers, dtype=np.int64)[codes])
    return np.asarray(_names_of(distinct, numbers)[codes])


def one_kind_of_classes(labels: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Classes of several domains, all as integers or all as strings, as `class_names` decides.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.tables._names import one_kind_of_classes
    >>> one_kind_of_classes([np.array([1, 2]), np.array(["1", "worn"])])
    [array(['1', '2'], dtype='<U4'), array(['1', 'worn'], dtype='<U4')]
    """
    together = class_names(np.concatenate([part.astype(str) for part in labels]))
    return np.split(together, np.cumsum([len(part) for part in labels])[:-1])


def domain_names(values: NDArray[Any]) -> NDArray[Any]:
    """Return names as strings: 3.0 is "3".

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.tables._names import domain_names
    >>> domain_names(np.array([3.0, 1.5]))
    array(['3', '1.5'], dtype='<U3')
    """
    distinct, codes = np.unique(values.astype(str), return_inverse=True)
    return _names_of(distinct, [_whole_number(name) for name in distinct.tolist()])[codes]


def _whole_number(name: str) -> int | None:
    found = _WHOLE.fullmatch(name)
    if found is not None:
        return int(found[1])
    is_whole = _POWER.fullmatch(name) and float(name).is_integer() and abs(float(name)) < 2**53
    return int(float(name)) if is_whole else None


def _names_of(names: NDArray[Any], numbers: Sequence[int | None]) -> NDArray[Any]:
    pairs = zip(names.tolist(), numbers, strict=True)
    return np.array([name if number is None else str(number) for name, number in pairs], dtype=str)
