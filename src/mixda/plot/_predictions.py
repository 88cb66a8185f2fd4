"""Figures of predictions: class proportions, certainty, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import check_array, check_names, check_X
from mixda.plot._common import SOURCE, TARGET, domain_labels, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def class_proportions(
    shares: ArrayLike,
    ax: Axes | None = None,
    *,
    classes: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> Axes:
    """Share of every class in every domain, a row per class: rings are sources, squares the target.

    Parameters
    ----------
    shares : array-like of shape (L, nc)
        One row per domain, target last; for instance ``mixture.class_proportions``.
    ax : matplotlib Axes, optional
    classes : array-like of shape (nc,), optional
        Names of the classes; by default 0, 1, …
    names : sequence of str, optional
        Names of the domains; by default "source 1" … "target".

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> ax = mixda.plot.class_proportions([[0.5, 0.5], [0.8, 0.2]])  # doctest: +SKIP
    """
    table = check_array(shares, "shares", ndim=2)
    labels = domain_labels(len(table), names)
    ticks = np.arange(table.shape[1]) if classes is None else check_names(classes, "classes")
    if len(ticks) != table.shape[1]:
        raise MixdaError(f"classes must be {table.shape[1]} names, got {len(ticks)}.")
    ax = new_axes(ax)
    rows = np.arange(table.shape[1])
    for k, row in enumerate(table[:-1]):
        ax.scatter(row, rows, facecolor="none", edgecolor=SOURCE, label=labels[k])
    ax.scatter(table[-1], rows, color=TARGET, marker="s", label=labels[-1], zorder=3)
    ax.set_yticks(rows, [str(name) for name in ticks])
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.08 * table.max()), xlabel="share of the domain")
    ax.grid(axis="x", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return ax


def certainty(
    proba: ArrayLike, ax: Axes | None = None, *, bins: Sequence[float] | None = None
) -> Axes:
    """How many samples got their class with how much probability.

    Parameters
    ----------
    proba : array-like of shape (n, nc)
        ``predict_proba`` of the samples.
    ax : matplotlib Axes, optional
    bins : sequence of float, optional
        Edges of the steps, from 0 to 1; by default tenths.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> ax = mixda.plot.certainty([[0.9, 0.1], [0.4, 0.6]])  # doctest: +SKIP
    """
    best = check_X(proba, "proba").max(axis=1)
    edges = np.linspace(0, 1, 11) if bins is None else np.asarray(bins, dtype=float)
    ax = new_axes(ax)
    ax.hist(best, edges.tolist(), color=SOURCE, edgecolor="white")
    ax.set(xlabel="probability of the predicted class", ylabel="samples")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def confusion(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    ax: Axes | None = None,
    *,
    classes: ArrayLike | None = None,
) -> Axes:
    """Confusion matrix: rows are true classes, columns predicted ones, shades shares of a row.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
    ax : matplotlib Axes, optional
    classes : array-like of shape (nc,), optional
        All classes in their order; by default those of both arguments, sorted.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> ax = mixda.plot.confusion(["a", "b"], ["a", "a"])  # doctest: +SKIP
    """
    from mixda.views import confusion_counts, label_codes

    truth, guess = check_names(y_true, "y_true"), check_names(y_pred, "y_pred")
    if len(truth) != len(guess):
        raise MixdaError(f"y_true has {len(truth)} labels, but y_pred has {len(guess)}.")
    both = np.unique(np.concatenate([truth, guess]))  # numbers become texts if the other has texts
    names = both if classes is None else check_names(classes, "classes")
    (true, unknown), (said, strange) = label_codes(truth, names), label_codes(guess, names)
    if unknown or strange:
        raise MixdaError(f"classes does not hold {(unknown + strange)[0]!r}; name all that occur.")
    counts = confusion_counts(true, said, len(names))
    ax = new_axes(ax)
    ax.imshow(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), "Blues", vmin=0, vmax=1)
    _numbers(ax, counts)
    ticks = [str(name) for name in names]
    ax.set_xticks(range(len(names)), ticks, rotation=90 if max(map(len, ticks)) > 3 else 0)
    ax.set_yticks(range(len(names)), ticks)
    ax.set(xlabel="predicted", ylabel="true")
    return ax


def _numbers(ax: Axes, counts: NDArray[np.intp]) -> None:
    """Write the counts into the cells, unless there are too many to read."""
    if len(counts) > 15:
        return
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    for (i, j), count in np.ndenumerate(counts):
        if count:
            shade = "white" if shares[i, j] > 0.5 else "black"
            ax.text(j, i, str(count), ha="center", va="center", color=shade, fontsize=8)
