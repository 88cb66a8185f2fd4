"""Rules of ordinary classifiers that are not linear: clipping, ranks, random features, trees.

None of them holds a sample: ranks are kept as a few quantiles, kernels as random frequencies, trees
as thresholds and leaf values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import Array, check_array, check_number
from mixda.rules._base import Rule, set_fields

_ROWS_AT_A_TIME = 1024  # rows × trees × outputs numbers are held at once


@dataclass(frozen=True, eq=False)
class Clip(Rule):
    """Limit every number to ``[-bound, bound]``, so that no outlier decides alone.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Clip
    >>> Clip(8.0)(np.array([[1.0, -20.0]]))
    array([[ 1., -8.]])
    """

    bound: float

    def __post_init__(self) -> None:
        check_number(self.bound, "bound", above=True)

    def __call__(self, X: Array) -> Array:
        return np.clip(X, -self.bound, self.bound)


@dataclass(frozen=True, eq=False)
class Interpolate(Rule):
    r"""A piecewise-linear map of each feature, constant outside of its knots.

    With the quantiles of a domain as `knots` and normal scores as `values`, it turns each feature
    into a standard normal one (rank-to-normal).

    Parameters
    ----------
    knots : ndarray of shape (m, d)
        Non-decreasing along the first axis.
    values : ndarray of shape (m, d)

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Interpolate
    >>> Interpolate(np.array([[0.0], [10.0]]), np.array([[-1.0], [1.0]]))(np.array([[5.0], [99.0]]))
    array([[0.],
           [1.]])
    """

    knots: Array
    values: Array

    def __post_init__(self) -> None:
        set_fields(self, knots=check_array(self.knots, "knots", 2))
        set_fields(self, values=check_array(self.values, "values", 2))
        if self.knots.shape != self.values.shape or len(self.knots) == 0:
            raise MixdaError(
                f"knots and values must have the same shape with at least one row, got "
                f"{self.knots.shape} and {self.values.shape}."
            )
        if (np.diff(self.knots, axis=0) < 0).any():
            raise MixdaError("knots must not decrease along the first axis.")

    def __call__(self, X: Array) -> Array:
        columns = [
            np.interp(X[:, j], self.knots[:, j], self.values[:, j])
            for j in range(self.knots.shape[1])
        ]
        return np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class Fourier(Rule):
    r"""Random Fourier features :math:`(\cos x^\top W, \sin x^\top W) / \sqrt{m}`.

    Their inner products approximate a Gaussian kernel, so that a linear classifier on them stands
    in for a kernel machine without holding support vectors, which are samples.

    Parameters
    ----------
    frequencies : ndarray of shape (d, m)

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Fourier
    >>> Fourier(np.array([[0.0]]))(np.array([[3.0]]))
    array([[1., 0.]])
    """

    frequencies: Array

    def __post_init__(self) -> None:
        set_fields(self, frequencies=check_array(self.frequencies, "frequencies", 2))

    def __call__(self, X: Array) -> Array:
        phases = X @ self.frequencies
        waves = np.hstack([np.cos(phases), np.sin(phases)])
        return np.asarray(waves / np.sqrt(self.frequencies.shape[1]))


@dataclass(frozen=True, eq=False)
class Trees(Rule):
    r"""Sum of the leaf values of decision trees, :math:`b + \sum_t v_{\text{leaf}_t(x)}`.

    At an inner node a row goes to the left child where its feature is at most the threshold, in
    single precision, as in scikit-learn. The right child follows the left one directly.

    Parameters
    ----------
    feature : ndarray of shape (n_nodes,)
        Feature that an inner node looks at; ignored in leaves.
    threshold : ndarray of shape (n_nodes,)
    child : ndarray of shape (n_nodes,)
        Position of the left child, beyond that of the node itself; in leaves, minus one minus
        the row of `leaves`.
    roots : ndarray of shape (n_trees,)
    leaves : ndarray of shape (n_leaves, m)
    offset : ndarray of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.rules import Trees
    >>> stump = Trees(
    ...     feature=np.array([0, 0, 0]),
    ...     threshold=np.array([0.5, 0.0, 0.0]),
    ...     child=np.array([1, -1, -2]),
    ...     roots=np.array([0]),
    ...     leaves=np.array([[1.0, 0.0], [0.0, 1.0]]),
    ...     offset=np.zeros(2),
    ... )
    >>> stump(np.array([[0.2], [0.9]]))
    array([[1., 0.],
           [0., 1.]])
    """

    feature: NDArray[Any]
    threshold: NDArray[Any]
    child: NDArray[Any]
    roots: NDArray[Any]
    leaves: NDArray[Any]
    offset: Array

    def __post_init__(self) -> None:
        for name in ("feature", "child", "roots"):
            array = np.asarray(getattr(self, name))
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise MixdaError(f"{name} of trees must be a list of integers.")
            set_fields(self, **{name: array.astype(np.int32, copy=False)})
        leaves = np.asarray(self.leaves)
        check_array(leaves, "leaves", 2)
        check_array(self.threshold, "threshold", 1)
        set_fields(
            self,
            threshold=np.asarray(self.threshold, dtype=np.float32),
            leaves=leaves if leaves.dtype == np.float16 else leaves.astype(np.float32, copy=False),
            offset=check_array(self.offset, "offset", 1),
        )
        self._check_structure()

    def _check_structure(self) -> None:
        n, places = len(self.child), np.arange(len(self.child))
        inner = self.child >= 0
        sound = (
            n > 0
            and len(self.feature) == len(self.threshold) == n
            and len(self.offset) == self.leaves.shape[1]
            and ((self.roots >= 0) & (self.roots < n)).all()
            and (self.feature >= 0).all()
            and (self.child[inner] > places[inner]).all()  # so that every walk ends
            and (self.child[inner] + 1 < n).all()
            and (-self.child[~inner] <= len(self.leaves)).all()
        )
        if not sound:
            raise MixdaError("the arrays of the trees do not fit together; save the model again.")

    def __call__(self, X: Array) -> Array:
        if X.shape[1] <= self.feature.max(initial=0):
            raise MixdaError(f"the trees need {self.feature.max() + 1} features, got {X.shape[1]}.")
        scores = np.empty((len(X), len(self.offset)))
        for start in range(0, len(X), _ROWS_AT_A_TIME):
            rows = slice(start, start + _ROWS_AT_A_TIME)
            scores[rows] = self._score(X[rows].astype(np.float32))
        return scores

    def _score(self, X: NDArray[np.float32]) -> Array:
        node = np.tile(self.roots, (len(X), 1))  # (rows, trees)
        row = np.arange(len(X))[:, None]
        child = self.child[node]
        while (child >= 0).any():
            right = X[row, self.feature[node]] > self.threshold[node]
            node = np.where(child >= 0, child + right, node)
            child = self.child[node]
        scores = np.tile(self.offset, (len(X), 1))
        for leaf in (-1 - child).T:
            scores += self.leaves[leaf]
        return scores
