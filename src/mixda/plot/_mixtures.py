"""Figures of samples, mixtures and transport plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_choice, check_X
from mixda.plot._common import (
    UNLABELED,
    check_dims,
    colors,
    component_colors,
    draw_ellipses,
    new_axes,
    style_plane,
)
from mixda.views import feature_plane, order_plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mixda.mixture import Mixture
    from mixda.transport import TransportResult


def samples(
    X: ArrayLike,
    y: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    classes: ArrayLike | None = None,
    dims: tuple[int, int] = (0, 1),
    size: float = 6.0,
    alpha: float = 0.5,
) -> Axes:
    """Plot samples, colored by class, or gray without labels.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,), optional
        Class of each sample.
    ax : matplotlib Axes, optional
        Axes to draw on; by default a new figure.
    classes : array-like of shape (nc,), optional
        All classes, in the order of the colors; by default the sorted classes of `y`.
    dims : pair of int
        The two features to show.
    size, alpha : float
        Area (points²) and opacity of a dot.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> ax = mixda.plot.samples([[0, 0], [1, 1]], ["ok", "fault"])  # doctest: +SKIP
    """
    X = check_X(X)
    ax = new_axes(ax)
    i, j = check_dims(dims, X.shape[1])
    style: dict[str, Any] = {"s": size, "alpha": alpha, "linewidths": 0}
    if y is None:
        ax.scatter(X[:, i], X[:, j], color=UNLABELED, **style)
    else:
        y = np.asarray(y)
        names = np.unique(y) if classes is None else np.asarray(classes)
        for name, color in zip(names, colors(len(names)), strict=True):
            rows = y == name
            ax.scatter(X[rows, i], X[rows, j], color=color, label=str(name), **style)
    return style_plane(ax)


def mixture(
    m: Mixture,
    ax: Axes | None = None,
    *,
    dims: tuple[int, int] = (0, 1),
    n_stds: float = 2.0,
    alpha: float = 0.22,
    color: str | None = None,
) -> Axes:
    """Plot the components of a mixture as ellipses, colored by class, or gray without labels.

    The half-axes of an ellipse are `n_stds` standard deviations; the area of the dot at its center
    is proportional to the component's weight. The color of a component with a soft label is the
    average of the colors of its classes.

    Parameters
    ----------
    m : Mixture
    ax : matplotlib Axes, optional
    dims : pair of int
        The two features to show.
    n_stds : float
        Half-axes of an ellipse, in standard deviations.
    alpha : float
        Opacity of the ellipses.
    color : str, optional
        Color of all components, instead of the colors of the classes.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> p = mixda.Mixture([0.5, 0.5], [[0, 0], [4, 4]], [[1, 2], [2, 1]], [[1, 0], [0, 1]])
    >>> ax = mixda.plot.mixture(p)  # doctest: +SKIP
    """
    ax = new_axes(ax)
    plane = feature_plane(m.n_features, check_dims(dims, m.n_features))
    centers, roots = plane.place(m)
    shades = component_colors(m, color)
    draw_ellipses(ax, centers, n_stds * roots, shades, alpha=alpha, linewidth=1.2)
    ax.scatter(
        centers[:, 0],
        centers[:, 1],
        s=22.0 * m.weights * m.n_components,
        color=shades,
        zorder=3,
        edgecolor="white",
        linewidths=0.5,
    )
    return style_plane(ax)


def plan(
    result: TransportResult,
    p: Mixture,
    q: Mixture,
    ax: Axes | None = None,
    *,
    kind: str = "lines",
    dims: tuple[int, int] = (0, 1),
) -> Axes:
    """Plot a transport plan between two mixtures, as lines or as a matrix.

    Parameters
    ----------
    result : TransportResult
        ``transport_plan(p, q)``.
    p, q : Mixture
    ax : matplotlib Axes, optional
    kind : {"lines", "matrix"}
        "lines" connects components that exchange mass, with a width that grows with the mass, on
        top of both mixtures. "matrix" shows the plan itself: the components of `p` as rows,
        grouped by class, and those of `q` as columns.
    dims : pair of int
        The two features that "lines" shows.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> p = mixda.Mixture([1.0], [[0, 0]], [[1, 1]])
    >>> ax = mixda.plot.plan(mixda.transport_plan(p, p), p, p)  # doctest: +SKIP
    """
    check_choice(kind, "kind", ("lines", "matrix"))
    if result.plan.shape != (p.n_components, q.n_components):
        raise MixdaError(
            f"result.plan has shape {result.plan.shape}, but p and q have {p.n_components} and "
            f"{q.n_components} components. Pass the mixtures that the plan was computed for, in "
            "the same order."
        )
    ax = new_axes(ax)
    return (
        _plan_matrix(result.plan, p, q, ax)
        if kind == "matrix"
        else _plan_lines(result.plan, p, q, ax, dims)
    )


def _plan_lines(plan: Array, p: Mixture, q: Mixture, ax: Axes, dims: tuple[int, int]) -> Axes:
    i, j = check_dims(dims, p.n_features)
    mixture(p, ax, dims=dims)
    mixture(q, ax, dims=dims)
    shades, largest = component_colors(p), plan.max()
    for row, column in zip(*np.nonzero(plan > 1e-3 * largest), strict=True):
        ends = np.stack([p.means[row], q.means[column]])
        mass = plan[row, column] / largest
        ax.plot(
            ends[:, i],
            ends[:, j],
            color=shades[row],
            alpha=0.35 + 0.5 * mass,
            linewidth=0.5 + 2.0 * mass,
            zorder=2,
            solid_capstyle="round",
        )
    return style_plane(ax)


def _plan_matrix(plan: Array, p: Mixture, q: Mixture, ax: Axes) -> Axes:
    ordered = order_plan(plan, p.labels, q.labels)
    image = ax.imshow(ordered.mass, cmap="Blues", vmin=0.0, aspect="auto")
    _draw_strip(ax, component_colors(p)[ordered.rows], "y")
    _draw_strip(ax, component_colors(q)[ordered.columns], "x")
    ax.set(xticks=[], yticks=[], xlabel="components of q", ylabel="components of p")
    ax.figure.colorbar(image, ax=ax, label="mass", shrink=0.8)
    return ax


def _draw_strip(ax: Axes, shades: Array, axis: str) -> None:
    """Draw the colors of the components along the left ("y") or upper ("x") side."""
    from matplotlib.patches import Rectangle

    width = 0.03
    transform = ax.get_yaxis_transform() if axis == "y" else ax.get_xaxis_transform()
    for k, shade in enumerate(shades):
        corner = (-width, k - 0.5) if axis == "y" else (k - 0.5, 1.0)
        size = (width, 1.0) if axis == "y" else (1.0, width)
        ax.add_patch(
            Rectangle(corner, *size, transform=transform, color=shade, clip_on=False, linewidth=0)
        )
