"""The order in which the rows and columns of a transport plan are shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixda._core.typing import Array

UNLABELED = -1


@dataclass(frozen=True, eq=False)
class OrderedPlan:
    """A transport plan with rows grouped by class and its mass near the diagonal.

    Attributes
    ----------
    rows, columns : ndarray of int
        Original positions of the rows and columns shown.
    mass : ndarray of shape (n_rows, n_columns)
        ``plan[rows][:, columns]``.
    row_classes : ndarray of int of shape (n_rows,)
        Most probable class of each row shown; `UNLABELED` without labels.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    mass: Array
    row_classes: NDArray[np.intp]


def order_plan(
    plan: Array, row_labels: Array | None = None, column_labels: Array | None = None
) -> OrderedPlan:
    """Order a plan by class; columns without labels follow the rows that send them mass.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.views import order_plan
    >>> plan = np.array([[0.0, 0.5], [0.5, 0.0]])
    >>> order_plan(plan).columns
    array([1, 0])
    >>> order_plan(plan, row_labels=np.array([[0.0, 1.0], [1.0, 0.0]])).rows
    array([1, 0])
    """
    classes = most_probable_classes(row_labels, plan.shape[0])
    rows = np.argsort(classes, kind="stable")
    if column_labels is None:
        columns = _along_diagonal(plan, rows)
    else:
        columns = np.argsort(column_labels.argmax(axis=1), kind="stable")
    return OrderedPlan(rows, columns, plan[np.ix_(rows, columns)], classes[rows])


def most_probable_classes(labels: Array | None, n_components: int) -> NDArray[np.intp]:
    """Return the most probable class of each component; `UNLABELED` without labels."""
    if labels is None:
        return np.full(n_components, UNLABELED, dtype=np.intp)
    classes: NDArray[np.intp] = labels.argmax(axis=1)
    return classes


def _along_diagonal(plan: Array, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Sort the columns by the mean position of the rows that send them mass."""
    position = np.empty(len(rows))
    position[rows] = np.arange(len(rows))
    mass = np.maximum(plan.sum(axis=0), np.finfo(float).tiny)
    return np.argsort((position @ plan) / mass, kind="stable")
