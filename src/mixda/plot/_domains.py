"""Figures of several domains: a map, and the components of all of them in one plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixda import views
from mixda._core.errors import MixdaError
from mixda.mixture import Mixture
from mixda.plot._common import (
    SOURCE,
    TARGET,
    component_colors,
    domain_labels,
    draw_ellipses,
    new_axes,
    pyplot,
)
from mixda.transport import align_labels, check_same_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def domain_map(
    mixtures: Sequence[Mixture], ax: Axes | None = None, *, names: Sequence[str] | None = None
) -> Axes:
    r"""Plot the domains such that their distances approximate :math:`\mathcal{MW}_2`.

    The points come from classical multidimensional scaling of the pairwise distances.

    Parameters
    ----------
    mixtures : sequence of Mixture
        Sources first, target last (drawn as a square).
    ax : matplotlib Axes, optional
    names : sequence of str, optional
        Names of the domains; by default "source 1" … "target".

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> p, q = (mixda.Mixture([1.0], [[x]], [[1.0]]) for x in (0.0, 3.0))
    >>> ax = mixda.plot.domain_map([p, q], names=["old", "new"])  # doctest: +SKIP
    """
    check_same_features(mixtures)
    labels = domain_labels(len(mixtures), names)
    ax = new_axes(ax)
    shown = views.domain_map(mixtures, labels)
    for k, (point, label) in enumerate(zip(shown.points, shown.names, strict=True)):
        is_target = k == len(shown.points) - 1
        color, marker = (TARGET, "s") if is_target else (SOURCE, "o")
        ax.scatter(point[0], point[1], color=color, marker=marker, s=45)
        ax.annotate(label, point, xytext=(7, 4), textcoords="offset points")
    ax.set_title(f"error of the distances shown: {shown.error:.0%}", fontsize=8, loc="left")
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.2)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def components(
    mixtures: Sequence[Mixture],
    axes: Sequence[Axes] | None = None,
    *,
    names: Sequence[str] | None = None,
    n_stds: float = 1.0,
) -> NDArray[Any]:
    """Plot the components of several mixtures in the plane that best separates their classes.

    Two features are shown as they are. With more, the plane is spanned by linear discriminants of
    the labeled mixtures. All panels show the same plane.

    Parameters
    ----------
    mixtures : sequence of Mixture
        Labeled mixtures are colored by class; the others are gray.
    axes : sequence of matplotlib Axes, optional
        One per mixture.
    names : sequence of str, optional
        Titles of the panels; by default "source 1" … "target".
    n_stds : float
        Half-axes of an ellipse, in standard deviations.

    Returns
    -------
    ndarray of matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> axes = mixda.plot.components([*sources, target])  # doctest: +SKIP
    """
    mixtures = list(mixtures)
    check_same_features(mixtures)
    titles = domain_labels(len(mixtures), names)
    aligned, classes = align_labels(mixtures)
    mixtures = [
        m if labels is None else replace(m, labels=labels, classes=classes)
        for m, labels in zip(mixtures, aligned, strict=True)
    ]
    panels = _panels(axes, len(mixtures))
    plane = views.common_plane([m for m in mixtures if m.is_labeled] or mixtures)
    for ax, m, title in zip(panels, mixtures, titles, strict=True):
        centers, roots = plane.place(m)
        shades = component_colors(m)
        draw_ellipses(ax, centers, n_stds * roots, shades, alpha=0.2, linewidth=1.0)
        ax.scatter(centers[:, 0], centers[:, 1], s=8, color=shades, zorder=3)
        ax.autoscale_view()
        ax.set_title(title, fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(length=2.5, labelsize=8)
    return panels


def _panels(axes: Sequence[Axes] | None, n: int) -> NDArray[Any]:
    if axes is None:
        columns = min(n, 4)
        rows = -(-n // columns)
        size = (2.4 * columns, 2.5 * rows)
        options = {"sharex": True, "sharey": True, "squeeze": False, "layout": "constrained"}
        figure, grid = pyplot().subplots(rows, columns, figsize=size, **options)
        for ax in grid.ravel()[n:]:
            figure.delaxes(ax)
        axes = grid.ravel()[:n]
    panels: NDArray[Any] = np.asarray(axes, dtype=object).ravel()
    if panels.shape != (n,):
        raise MixdaError(f"axes must hold {n} matplotlib Axes, one per mixture, got {len(panels)}.")
    return panels
