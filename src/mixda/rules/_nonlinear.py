"""Rules of ordinary classifiers that are not linear: clipping, ranks, random features, trees.

None of them holds a sample: ranks are kept as a few quantiles, kernels as random frequencies, trees
as thresholds and leaf values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.namespace import as_like, cast, check_numpy, empty, namespace
from mixda._core.typing import Array
from mixda._core.validation import check_array, check_number
from mixda.rules._base import Rule, set_fields


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
        clipped: Array = namespace(X).clip(X, -self.bound, self.bound)
        return clipped


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
        check_numpy(X, "a rule that interpolates between quantiles")
        columns = [
            np.interp(X[:, j], self.knots[:, j], self.values[:, j])
            for j in range(self.knots.shape[1])
        ]
        return np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class Fourier(Rule):
    r"""Random Fourier features :math:`(\cos x^\top W, \sin x^\top W) / \sqrt{m}`.

    Their inner products approximate a Gaussian kernel, so that a linear classifier on them stands
    in for a kernel machine without holding support vectors, which are samples. They are computed in
    single precision, where cosines are 16 times as fast.

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
        xp, single = namespace(X), cast(X, "float32")
        phases = single @ as_like(self.frequencies.astype(np.float32), single)
        m = self.frequencies.shape[1]
        waves: Array = empty((len(X), 2 * m), X)
        waves[:, :m], waves[:, m:] = xp.cos(phases), xp.sin(phases)
        waves /= math.sqrt(m)
        return waves


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
            and (self.roots[:1] == 0).all()
            and (np.diff(self.roots) > 0).all()
            and (self.roots < n).all()
            and (self.feature >= 0).all()
            and (self.child[inner] > places[inner]).all()  # so that every walk ends
            and (self.child[inner] + 1 < self._ends(places[inner])).all()
            and (-self.child[~inner] <= len(self.leaves)).all()
        )
        if not sound:
            raise MixdaError("the arrays of the trees do not fit together; save the model again.")

    def _ends(self, places: NDArray[Any]) -> NDArray[Any]:
        """Return the end of the tree that each node belongs to."""
        ends = np.append(self.roots, len(self.child))
        return np.asarray(ends[np.searchsorted(ends, places, side="right")])

    def __call__(self, X: Array) -> Array:
        check_numpy(X, "a rule with decision trees")
        if X.shape[1] <= self.feature.max(initial=0):
            raise MixdaError(f"the trees need {self.feature.max() + 1} features, got {X.shape[1]}.")
        single = np.ascontiguousarray(X, dtype=np.float32)
        scores = np.tile(self.offset, (len(X), 1))
        for tree in self._compiled:
            scores += tree.predict(single)
        return scores

    @cached_property
    def _compiled(self) -> list[Any]:
        """The trees as those of scikit-learn, whose compiled code walks down them."""
        stops = [*self.roots[1:], len(self.child)]
        return [self._tree(*ends) for ends in zip(self.roots, stops, strict=True)]

    def _tree(self, start: int, stop: int) -> Any:
        from sklearn.tree._tree import NODE_DTYPE, Tree

        own = slice(start, stop)
        inner = self.child[own] >= 0
        nodes = np.zeros(stop - start, dtype=NODE_DTYPE)
        nodes["left_child"] = np.where(inner, self.child[own] - start, -1)
        nodes["right_child"] = np.where(inner, self.child[own] - start + 1, -1)
        nodes["feature"], nodes["threshold"] = self.feature[own], self.threshold[own]
        nodes["missing_go_to_left"] = 1
        m = self.leaves.shape[1]
        values = np.zeros((len(nodes), 1, m))
        values[~inner, 0] = self.leaves[-1 - self.child[own][~inner]]
        tree = Tree(int(self.feature.max()) + 1, np.array([m], dtype=np.intp), 1)
        state = {"max_depth": len(nodes), "node_count": len(nodes), "nodes": nodes}
        tree.__setstate__({**state, "values": values})
        return tree
