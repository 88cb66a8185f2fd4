"""What the figures of predictions show: confusion, certainty, class proportions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix

from mixda._core.typing import Array

_ROUNDING = 1e-9  # a probability may exceed 1 by rounding


@dataclass(frozen=True, eq=False)
class Confusion:
    """A confusion matrix.

    Attributes
    ----------
    true_classes : tuple
        Names of the rows: the classes, then the labels that are none of them.
    classes : tuple
        Names of the columns.
    counts : ndarray of int of shape (n_true_classes, n_classes)
    codes : ndarray of int of shape (n,)
        Row of each sample.
    """

    true_classes: tuple[Any, ...]
    classes: tuple[Any, ...]
    counts: NDArray[np.intp]
    codes: NDArray[np.intp]

    @property
    def unknown(self) -> tuple[Any, ...]:
        """True classes that are never predicted because they are not in `classes`."""
        return self.true_classes[len(self.classes) :]

    @property
    def row_shares(self) -> Array:
        """Counts divided by the sum of their row."""
        shares: Array = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        return shares


def confusion(
    y_true: NDArray[Any], predicted: NDArray[np.intp], classes: NDArray[Any]
) -> Confusion:
    """Compare labels with predicted positions in `classes`.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.views import confusion
    >>> shown = confusion(np.array(["a", "a", "c"]), np.array([0, 1, 1]), np.array(["a", "b"]))
    >>> shown.counts
    array([[1, 1],
           [0, 0],
           [0, 1]])
    >>> shown.unknown
    ('c',)
    """
    codes, unknown = label_codes(y_true, classes)
    names = tuple(classes.tolist())
    n_rows = len(names) + len(unknown)
    if n_rows == 1:  # scikit-learn warns about a single label, even if it is listed
        return Confusion(names, names, np.array([[len(codes)]]), codes)
    counts = confusion_matrix(codes, predicted, labels=np.arange(n_rows))[:, : len(names)]
    return Confusion((*names, *unknown), names, counts, codes)


def label_codes(
    labels: NDArray[Any], classes: NDArray[Any]
) -> tuple[NDArray[np.intp], tuple[Any, ...]]:
    """Return the position of each label in `classes`, and the labels that are not in it.

    Unknown labels get the positions after the classes. If only one of the arrays holds text, both
    are compared as text.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.views import label_codes
    >>> label_codes(np.array(["1", "0", "b"]), np.array([0, 1]))
    (array([1, 0, 2]), ('b',))
    """
    if (labels.dtype.kind == "U") != (classes.dtype.kind == "U"):
        labels, classes = labels.astype(str), classes.astype(str)
    position = {name: k for k, name in enumerate(classes.tolist())}
    unknown = [name for name in np.unique(labels).tolist() if name not in position]
    position.update({name: len(classes) + k for k, name in enumerate(unknown)})
    return np.array([position[name] for name in labels.tolist()], dtype=np.intp), tuple(unknown)


def wilson_interval(n_correct: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion.

    Examples
    --------
    >>> from mixda.views import wilson_interval
    >>> [round(x, 3) for x in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    interval = binomtest(n_correct, n).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


@dataclass(frozen=True)
class CertaintyBin:
    """Predictions whose probability lies in [low, high); the last bin includes `high`.

    `accuracy` is None where labels are not known or the bin is empty.
    """

    low: float
    high: float
    n_samples: int
    accuracy: float | None = None


def certainty_bins(
    probability: Array, edges: Sequence[float], correct: NDArray[np.bool_] | None = None
) -> list[CertaintyBin]:
    """Count predictions by the probability of their class.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.views import certainty_bins
    >>> proba, correct = np.array([0.4, 0.9, 1.0]), np.array([True, False, True])
    >>> [(b.n_samples, b.accuracy) for b in certainty_bins(proba, [0.0, 0.5, 1.0], correct)]
    [(1, 1.0), (2, 0.5)]
    """
    bins = []
    for low, high in pairwise(edges):
        below = probability <= high + _ROUNDING if high == edges[-1] else probability < high
        inside = (probability >= low) & below
        accuracy = float(correct[inside].mean()) if correct is not None and inside.any() else None
        bins.append(CertaintyBin(float(low), float(high), int(inside.sum()), accuracy))
    return bins


@dataclass(frozen=True, eq=False)
class ClassProportions:
    """Proportion of each class (columns) in the sources, the target and the target's labels."""

    classes: tuple[str, ...]
    sources: Array
    target: Array
    true: Array | None = None

    @property
    def largest(self) -> float:
        """The largest proportion shown."""
        true = np.zeros(0) if self.true is None else self.true
        return float(np.concatenate([self.sources.ravel(), self.target, true]).max())
