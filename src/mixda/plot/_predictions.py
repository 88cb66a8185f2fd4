"""Figures of predictions: class proportions, certainty, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mixda import views
from mixda._core.errors import MixdaError
from mixda._core.validation import check_array, check_names, check_X
from mixda.plot._common import SOURCE, TARGET, domain_labels, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_CLASSES_WITH_COUNTS = 15


def class_proportions(
    shares: ArrayLike,
    ax: Axes | None = None,
    *,
    classes: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> Axes:
    """Plot the proportion of each class in each domain.

    Circles are sources, squares are the target.

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
        raise MixdaError(f"classes must hold {table.shape[1]} names, got {len(ticks)}.")
    shown = views.ClassProportions(tuple(str(name) for name in ticks), table[:-1], table[-1])
    ax = new_axes(ax)
    rows = np.arange(len(shown.classes))
    for label, source in zip(labels, shown.sources, strict=False):
        ax.scatter(source, rows, facecolor="none", edgecolor=SOURCE, label=label)
    ax.scatter(shown.target, rows, color=TARGET, marker="s", label=labels[-1], zorder=3)
    ax.set_yticks(rows, shown.classes)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.08 * shown.largest), xlabel="proportion of the domain")
    ax.grid(axis="x", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return ax


def certainty(
    proba: ArrayLike, ax: Axes | None = None, *, bins: Sequence[float] | None = None
) -> Axes:
    """Plot a histogram of the probabilities of the predicted classes.

    Parameters
    ----------
    proba : array-like of shape (n, nc)
        Output of ``predict_proba``.
    ax : matplotlib Axes, optional
    bins : sequence of float, optional
        Edges of the bins, increasing; by default 0, 0.1, …, 1.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> ax = mixda.plot.certainty([[0.9, 0.1], [0.4, 0.6]])  # doctest: +SKIP
    """
    best = check_X(proba, "proba").max(axis=1)
    edges = np.linspace(0, 1, 11) if bins is None else check_array(bins, "bins", ndim=1)
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise MixdaError(f"bins must be at least two increasing numbers, got {bins!r}.")
    shown = views.certainty_bins(best, edges.tolist())
    ax = new_axes(ax)
    counts = [b.n_samples for b in shown]
    ax.bar(edges[:-1], counts, np.diff(edges), align="edge", color=SOURCE, edgecolor="white")
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
    """Plot a confusion matrix: true classes as rows, predicted classes as columns.

    The shade of a cell is its share of the row.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
    ax : matplotlib Axes, optional
    classes : array-like of shape (nc,), optional
        All classes, in order; by default the sorted classes of `y_true` and `y_pred`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> ax = mixda.plot.confusion(["a", "b"], ["a", "a"])  # doctest: +SKIP
    """
    true, predicted = check_names(y_true, "y_true"), check_names(y_pred, "y_pred")
    if len(true) != len(predicted):
        raise MixdaError(
            f"y_true and y_pred must have the same length, got {len(true)} and {len(predicted)}."
        )
    both = np.unique(np.concatenate([true, predicted]))  # text if one of them is text
    names = both if classes is None else check_names(classes, "classes")
    codes, not_listed = views.label_codes(predicted, names)
    shown = views.confusion(true, codes, names)
    not_listed += shown.unknown
    if not_listed:
        raise MixdaError(
            f"classes does not contain {not_listed[0]!r}. Pass all classes that occur."
        )
    ax = new_axes(ax)
    ax.imshow(shown.row_shares, "Blues", vmin=0, vmax=1)
    _write_counts(ax, shown)
    ticks = [str(name) for name in names]
    ax.set_xticks(range(len(names)), ticks, rotation=90 if max(map(len, ticks)) > 3 else 0)
    ax.set_yticks(range(len(names)), ticks)
    ax.set(xlabel="predicted", ylabel="true")
    return ax


def _write_counts(ax: Axes, shown: views.Confusion) -> None:
    """Write the counts into the cells, unless there are too many to read."""
    if len(shown.counts) > _MAX_CLASSES_WITH_COUNTS:
        return
    shares = shown.row_shares
    for (i, j), count in np.ndenumerate(shown.counts):
        if count:
            shade = "white" if shares[i, j] > 0.5 else "black"
            ax.text(j, i, str(count), ha="center", va="center", color=shade, fontsize=8)
