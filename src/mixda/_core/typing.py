"""Types that signatures share."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]  # float64, or float32 where it only enters matrix products
Codes = NDArray[np.intp]  # position of each sample's class in the list of classes
Ids = NDArray[np.int64]  # domain of each sample: sources ≥ 0, targets < 0
Source = tuple[Array, Codes]  # samples of a labeled domain
PathArgument = str | PathLike[str]
