"""Colors, axes and checks that the figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda.views import default_domain_names, ellipse_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mixda.mixture import Mixture

UNLABELED = "#8a8a8a"
SOURCE, TARGET = "#545e6b", "#1a5fa0"
# Okabe and Ito's palette without black, then Tol's muted palette
PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#332288", "#882255", "#999933", "#117733", "#44AA99", "#661100"),
)


def colors(n: int) -> list[str]:
    """Return `n` distinct colors; up to 12 come from palettes for color-blind readers.

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


def pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "mixda.plot requires matplotlib, which is not installed. Install it with: "
            "pip install 'mixda[report]'"
        ) from None
    return plt


def new_axes(ax: Axes | None) -> Axes:
    plt = pyplot()
    return plt.subplots(figsize=(4.5, 4.0), layout="constrained")[1] if ax is None else ax


def check_dims(dims: tuple[int, int], n_features: int) -> tuple[int, int]:
    try:
        i, j = (int(dim) for dim in dims)
        valid = min(i, j) >= 0 and max(i, j) < n_features
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise MixdaError(
            f"dims must be a pair of feature indices from 0 to {n_features - 1}, got {dims!r}."
        )
    return i, j


def component_colors(m: Mixture, color: str | None = None) -> Array:
    """Return an RGB color per component: the mean of its classes' colors, or `color`."""
    from matplotlib.colors import to_rgb

    if color is not None or m.labels is None:
        return np.tile(to_rgb(color or UNLABELED), (m.n_components, 1))
    shades: Array = m.labels @ np.array([to_rgb(color) for color in colors(m.labels.shape[1])])
    return np.clip(shades, 0.0, 1.0)


def draw_ellipses(
    ax: Axes,
    centers: Array,
    roots: Array,
    shades: Array,
    *,
    alpha: float,
    linewidth: float,
) -> None:
    """Draw the images of the unit circle under `roots`, shape (K, 2, 2), around the centers."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Ellipse

    for center, size, angle, shade in zip(centers, *ellipse_axes(roots), shades, strict=True):
        ax.add_patch(
            Ellipse(
                center,
                *(2 * size),
                angle=angle,
                facecolor=to_rgba(shade, alpha),
                edgecolor=to_rgba(shade, 0.9),
                linewidth=linewidth,
            )
        )


def style_plane(ax: Axes) -> Axes:
    """Give the axes equal units and remove what is not needed."""
    ax.set_aspect("equal", adjustable="box")
    ax.autoscale_view()
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=2.5, labelsize=8)
    return ax


def domain_labels(
    n_domains: int, names: Sequence[str] | None, parameter: str = "names"
) -> list[str]:
    """Return `names`, or default names, after checking that there is one per domain."""
    if names is None:
        return default_domain_names(n_domains)
    if len(names) != n_domains:
        raise MixdaError(
            f"{parameter} must hold {n_domains} names, the sources in order and then the target, "
            f"got {len(names)}."
        )
    return [str(name) for name in names]
