"""Figures of samples, of mixtures and of the plans between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import Array, check_choice, check_X
from mixda.plot._common import (
    UNLABELED,
    check_dims,
    colors,
    component_colors,
    new_axes,
    plane,
)

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
    """Scatter of samples, colored by class, gray without labels.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,), optional
        Class of every sample.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    classes : array-like of shape (nc,), optional
        All class names in the order of their colors; by default those of `y`, sorted.
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
    return plane(ax)


def mixture(
    m: Mixture,
    ax: Axes | None = None,
    *,
    dims: tuple[int, int] = (0, 1),
    n_stds: float = 2.0,
    alpha: float = 0.22,
    color: str | None = None,
) -> Axes:
    """Ellipses of a mixture's components, colored by class, gray without labels.

    An ellipse is `n_stds` standard deviations wide on each side of a mean; the area of the dot in
    its middle is proportional to the component's weight. A component with a soft label has the
    average of its classes' colors.

    Parameters
    ----------
    m : Mixture
    ax : matplotlib Axes, optional
    dims : pair of int
        The two features to show.
    n_stds : float
        Half-axes of an ellipse, in standard deviations.
    alpha : float
        Opacity of the inside of an ellipse.
    color : str, optional
        One color for all components instead of those of the classes.

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
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Ellipse

    i, j = check_dims(dims, m.n_features)
    shades = component_colors(m, color)
    for center, std, shade in zip(m.means, m.stds, shades, strict=True):
        ax.add_patch(
            Ellipse(
                (center[i], center[j]),
                *(2.0 * n_stds * std[[i, j]]),
                facecolor=to_rgba(shade, alpha),
                edgecolor=to_rgba(shade, 0.9),
                linewidth=1.2,
            )
        )
    areas = 22.0 * m.weights * m.n_components
    ax.scatter(
        m.means[:, i],
        m.means[:, j],
        s=areas,
        color=shades,
        zorder=3,
        edgecolor="white",
        linewidths=0.5,
    )
    return plane(ax)


def plan(
    result: TransportResult,
    p: Mixture,
    q: Mixture,
    ax: Axes | None = None,
    *,
    kind: str = "lines",
    dims: tuple[int, int] = (0, 1),
) -> Axes:
    """Transport plan between two mixtures, as lines in the plane or as a matrix.

    Parameters
    ----------
    result : TransportResult
        ``transport_plan(p, q)``.
    p, q : Mixture
    ax : matplotlib Axes, optional
    kind : {"lines", "matrix"}
        "lines" joins the components that exchange mass, thicker for more, over the ellipses of
        both; "matrix" shows the plan itself with the components of `p` as rows, grouped by class,
        and those of `q` as columns.
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
            f"the plan has shape {result.plan.shape}, but the mixtures have {p.n_components} and "
            f"{q.n_components} components; give the mixtures it was computed for, in their order."
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
    return plane(ax)


def _plan_matrix(plan: Array, p: Mixture, q: Mixture, ax: Axes) -> Axes:
    from mixda.views import along_diagonal

    rows, columns = _by_class(p), _by_class(q)
    if q.labels is None:
        columns = along_diagonal(plan, rows)
    image = ax.imshow(plan[np.ix_(rows, columns)], cmap="Blues", vmin=0.0, aspect="auto")
    for order, m, place in ((rows, p, "y"), (columns, q, "x")):
        _strip(ax, component_colors(m)[order], place)
    ax.set(xticks=[], yticks=[], xlabel="components of q", ylabel="components of p")
    ax.figure.colorbar(image, ax=ax, label="mass", shrink=0.8)
    return ax


def _by_class(m: Mixture) -> NDArray[np.intp]:
    if m.labels is None:
        return np.arange(m.n_components)
    return np.argsort(m.labels.argmax(axis=1), kind="stable")


def _strip(ax: Axes, shades: Array, place: str) -> None:
    """Draw the colors of the components along one side of the matrix."""
    from matplotlib.patches import Rectangle

    width = 0.03
    transform = ax.get_yaxis_transform() if place == "y" else ax.get_xaxis_transform()
    for k, shade in enumerate(shades):
        corner = (-width, k - 0.5) if place == "y" else (k - 0.5, 1.0)
        size = (width, 1.0) if place == "y" else (1.0, width)
        ax.add_patch(
            Rectangle(corner, *size, transform=transform, color=shade, clip_on=False, linewidth=0)
        )
