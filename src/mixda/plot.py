"""Small matplotlib figures of samples, mixtures, plans and dictionaries; each returns its axes.

Matplotlib is imported when a figure is drawn, never on ``import mixda``. Colours come from palettes
that colour-blind readers can tell apart; grey always means "no label".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixda._validation import Array, check_choice, check_X

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mixda.dictionary import Dictionary, History
    from mixda.mixture import Mixture
    from mixda.transport import TransportResult

UNLABELED = "#8a8a8a"
# Okabe and Ito's colours without black, then Tol's dark ones for a second round
PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#332288", "#882255", "#999933", "#117733", "#44AA99", "#661100"),
)


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
    """Scatter of samples, coloured by class, grey without labels.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,), optional
        Class of every sample.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    classes : array-like of shape (nc,), optional
        All class names in the order of their colours; by default those of `y`, sorted.
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
    ax = _axes(ax)
    i, j = _check_dims(dims, X.shape[1])
    style: dict[str, Any] = {"s": size, "alpha": alpha, "linewidths": 0}
    if y is None:
        ax.scatter(X[:, i], X[:, j], color=UNLABELED, **style)
    else:
        y = np.asarray(y)
        names = np.unique(y) if classes is None else np.asarray(classes)
        for name, color in zip(names, colors(len(names)), strict=True):
            rows = y == name
            ax.scatter(X[rows, i], X[rows, j], color=color, label=str(name), **style)
    return _plane(ax)


def mixture(
    m: Mixture,
    ax: Axes | None = None,
    *,
    dims: tuple[int, int] = (0, 1),
    n_stds: float = 2.0,
    alpha: float = 0.22,
    color: str | None = None,
) -> Axes:
    """Ellipses of a mixture's components, coloured by class, grey without labels.

    An ellipse is `n_stds` standard deviations wide on each side of a mean; the area of the dot in
    its middle is proportional to the component's weight. A component with a soft label has the
    average of its classes' colours.

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
        One colour for all components instead of those of the classes.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> p = mixda.Mixture([0.5, 0.5], [[0, 0], [4, 4]], [[1, 2], [2, 1]], [[1, 0], [0, 1]])
    >>> ax = mixda.plot.mixture(p)  # doctest: +SKIP
    """
    ax = _axes(ax)
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Ellipse

    i, j = _check_dims(dims, m.n_features)
    shades = _component_colors(m, color)
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
    return _plane(ax)


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
        raise ValueError(
            f"the plan has shape {result.plan.shape}, but the mixtures have {p.n_components} and "
            f"{q.n_components} components; give the mixtures it was computed for, in their order."
        )
    ax = _axes(ax)
    return (
        _plan_matrix(result.plan, p, q, ax)
        if kind == "matrix"
        else _plan_lines(result.plan, p, q, ax, dims)
    )


def history(
    dictionary: Dictionary,
    axes: Sequence[Axes] | None = None,
    *,
    domain_names: Sequence[str] | None = None,
) -> NDArray[Any]:
    """Loss, negative log-likelihood and barycentric coordinates over the iterations (figure 4a).

    Parameters
    ----------
    dictionary : Dictionary
    axes : sequence of three matplotlib Axes, optional
    domain_names : sequence of str, optional
        Names of the sources in their order, then of the target.

    Returns
    -------
    ndarray of three matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> axes = mixda.plot.history(dictionary)  # doctest: +SKIP
    """
    past = dictionary.history
    names = _domain_names(past.domain_loss.shape[1], domain_names)
    panels = _three_axes(axes)
    iterations = np.arange(len(past.loss))  # row 0 is the start
    _draw_loss(panels[0], iterations, past, names)
    if past.nll is None:
        note = "not recorded; give samples\nto learn_dictionary"
        panels[1].annotate(note, (0.2, 0.5), xycoords="axes fraction", color=UNLABELED)
    else:
        _curves(panels[1], iterations, past.nll, names)
    panels[1].set_ylabel("negative log-likelihood")
    _draw_coordinates(panels[2], iterations, past.coordinates)
    for ax in panels:
        ax.set_xlabel("iteration")
        ax.spines[["top", "right"]].set_visible(False)
    return panels


def coordinates(
    dictionary: Dictionary, ax: Axes | None = None, *, domain_names: Sequence[str] | None = None
) -> Axes:
    """Barycentric coordinates of every domain as stacked bars, one colour per atom.

    Parameters
    ----------
    dictionary : Dictionary
    ax : matplotlib Axes, optional
    domain_names : sequence of str, optional
        Names of the sources in their order, then of the target.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> ax = mixda.plot.coordinates(dictionary)  # doctest: +SKIP
    """
    ax = _axes(ax)
    lam = np.asarray(dictionary.coordinates)
    names = _domain_names(lam.shape[0], domain_names)
    left = np.zeros(len(lam))
    for c, color in enumerate(colors(lam.shape[1])):
        ax.barh(names, lam[:, c], left=left, color=color, edgecolor="white", label=f"atom {c + 1}")
        left = left + lam[:, c]
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), xlabel="barycentric coordinates")
    ax.tick_params(left=False)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(ncols=min(lam.shape[1], 4), loc="lower left", bbox_to_anchor=(0, 1.0), frameon=False)
    return ax


def colors(n: int) -> list[str]:
    """Return `n` colours that colour-blind readers can tell apart, as far as `n` allows.

    Examples
    --------
    >>> from mixda.plot import colors
    >>> colors(2)
    ['#0072B2', '#D55E00']
    """
    if n <= len(PALETTE):
        return list(PALETTE[:n])
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(color) for color in colormaps["turbo"](np.linspace(0.05, 0.95, n))]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "figures need matplotlib, which is not installed; run: pip install 'mixda[report]'"
        ) from None
    return plt


def _axes(ax: Axes | None) -> Axes:
    plt = _pyplot()
    return plt.subplots(figsize=(4.5, 4.0), layout="constrained")[1] if ax is None else ax


def _check_dims(dims: tuple[int, int], n_features: int) -> tuple[int, int]:
    try:
        i, j = (int(dim) for dim in dims)
        known = min(i, j) >= 0 and max(i, j) < n_features
    except (TypeError, ValueError):
        known = False
    if not known:
        raise ValueError(f"dims must be two features among 0 to {n_features - 1}, got {dims!r}.")
    return i, j


def _component_colors(m: Mixture, color: str | None = None) -> Array:
    from matplotlib.colors import to_rgb

    if color is not None or m.labels is None:
        return np.tile(to_rgb(color or UNLABELED), (m.n_components, 1))
    shades: Array = m.labels @ np.array([to_rgb(color) for color in colors(m.labels.shape[1])])
    return np.clip(shades, 0.0, 1.0)


def _plane(ax: Axes) -> Axes:
    """Leave a plane with equal units and no more ink than it needs."""
    ax.set_aspect("equal", adjustable="box")
    ax.autoscale_view()
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=2.5, labelsize=8)
    return ax


def _plan_lines(plan: Array, p: Mixture, q: Mixture, ax: Axes, dims: tuple[int, int]) -> Axes:
    i, j = _check_dims(dims, p.n_features)
    mixture(p, ax, dims=dims)
    mixture(q, ax, dims=dims)
    shades, largest = _component_colors(p), plan.max()
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
    return _plane(ax)


def _plan_matrix(plan: Array, p: Mixture, q: Mixture, ax: Axes) -> Axes:
    rows, columns = _by_class(p), _by_class(q)
    if q.labels is None:  # put the mass of a good matching on the diagonal
        position = np.empty(len(rows))
        position[rows] = np.arange(len(rows))
        mass = np.maximum(plan.sum(axis=0), np.finfo(float).tiny)
        columns = np.argsort((position @ plan) / mass, kind="stable")
    image = ax.imshow(plan[np.ix_(rows, columns)], cmap="Blues", vmin=0.0, aspect="auto")
    for order, m, place in ((rows, p, "y"), (columns, q, "x")):
        _strip(ax, _component_colors(m)[order], place)
    ax.set(xticks=[], yticks=[], xlabel="components of q", ylabel="components of p")
    ax.figure.colorbar(image, ax=ax, label="mass", shrink=0.8)
    return ax


def _by_class(m: Mixture) -> NDArray[np.intp]:
    if m.labels is None:
        return np.arange(m.n_components)
    return np.argsort(m.labels.argmax(axis=1), kind="stable")


def _strip(ax: Axes, shades: Array, place: str) -> None:
    """Draw the colours of the components along one side of the matrix."""
    from matplotlib.patches import Rectangle

    width = 0.03
    transform = ax.get_yaxis_transform() if place == "y" else ax.get_xaxis_transform()
    for k, shade in enumerate(shades):
        corner = (-width, k - 0.5) if place == "y" else (k - 0.5, 1.0)
        size = (width, 1.0) if place == "y" else (1.0, width)
        ax.add_patch(
            Rectangle(corner, *size, transform=transform, color=shade, clip_on=False, linewidth=0)
        )


def _three_axes(axes: Sequence[Axes] | None) -> NDArray[Any]:
    if axes is None:
        axes = _pyplot().subplots(1, 3, figsize=(11, 3.4), layout="constrained")[1]
    panels: NDArray[Any] = np.asarray(axes, dtype=object)
    if panels.shape != (3,):
        raise ValueError(f"axes must be three matplotlib Axes, got shape {panels.shape}.")
    return panels


def _draw_loss(ax: Axes, iterations: NDArray[Any], past: History, names: list[str]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.plot(iterations, past.loss, color="black", label="total")
    _curves(ax, iterations, past.domain_loss, names)
    if (past.loss > 0).all():
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_ylabel("loss")
    ax.legend(frameon=False, fontsize=8)


def _draw_coordinates(ax: Axes, iterations: NDArray[Any], values: Array) -> None:
    for c in range(values.shape[2]):
        line = ("-", "--", ":", "-.")[c % 4]
        _curves(ax, iterations, values[:, :, c], None, line)
        ax.plot([], [], color="black", linestyle=line, label=f"atom {c + 1}")
    ax.set(ylabel="coordinates", ylim=(-0.03, 1.03))
    columns = min(values.shape[2], 4)
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    ax.legend(frameon=False, fontsize=8, ncols=columns, **place)


def _curves(
    ax: Axes, x: NDArray[Any], values: Array, names: Sequence[str] | None, line: str = "-"
) -> None:
    """One curve per column of `values`, in the colour of its domain."""
    for k, color in enumerate(colors(values.shape[1])):
        label = None if names is None else names[k]
        ax.plot(x, values[:, k], color=color, linestyle=line, linewidth=1.3, label=label)


def _domain_names(n_domains: int, names: Sequence[str] | None) -> list[str]:
    if names is None:
        return [*(f"source {k}" for k in range(1, n_domains)), "target"]
    if len(names) != n_domains:
        raise ValueError(
            f"domain_names must be {n_domains} names, the sources in their order and then the "
            f"target, got {len(names)}."
        )
    return [str(name) for name in names]
