"""What the figures share: colors, axes, and how a mixture gets its colors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.validation import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mixda.mixture import Mixture

UNLABELED = "#8a8a8a"
SOURCE, TARGET = "#545e6b", "#1a5fa0"
# Okabe and Ito's colors without black, then Tol's dark ones for a second round
PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#332288", "#882255", "#999933", "#117733", "#44AA99", "#661100"),
)


def colors(n: int) -> list[str]:
    """Return `n` colors that color-blind readers can tell apart, as far as `n` allows.

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
            "figures need matplotlib, which is not installed; run: pip install 'mixda[report]'"
        ) from None
    return plt


def new_axes(ax: Axes | None) -> Axes:
    plt = pyplot()
    return plt.subplots(figsize=(4.5, 4.0), layout="constrained")[1] if ax is None else ax


def check_dims(dims: tuple[int, int], n_features: int) -> tuple[int, int]:
    try:
        i, j = (int(dim) for dim in dims)
        known = min(i, j) >= 0 and max(i, j) < n_features
    except (TypeError, ValueError):
        known = False
    if not known:
        raise MixdaError(f"dims must be two features among 0 to {n_features - 1}, got {dims!r}.")
    return i, j


def component_colors(m: Mixture, color: str | None = None) -> Array:
    from matplotlib.colors import to_rgb

    if color is not None or m.labels is None:
        return np.tile(to_rgb(color or UNLABELED), (m.n_components, 1))
    shades: Array = m.labels @ np.array([to_rgb(color) for color in colors(m.labels.shape[1])])
    return np.clip(shades, 0.0, 1.0)


def plane(ax: Axes) -> Axes:
    """Leave a plane with equal units and no more ink than it needs."""
    ax.set_aspect("equal", adjustable="box")
    ax.autoscale_view()
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=2.5, labelsize=8)
    return ax


def domain_labels(n_domains: int, names: Sequence[str] | None) -> list[str]:
    if names is None:
        return [*(f"source {k}" for k in range(1, n_domains)), "target"]
    if len(names) != n_domains:
        raise MixdaError(
            f"domain_names must be {n_domains} names, the sources in their order and then the "
            f"target, got {len(names)}."
        )
    return [str(name) for name in names]
