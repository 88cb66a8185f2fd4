"""Figures of a dictionary: how the learning went, and what the domains are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import Array
from mixda.plot._common import UNLABELED, colors, domain_labels, new_axes, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mixda.dictionary import Dictionary, History


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
    names = domain_labels(past.domain_loss.shape[1], domain_names)
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
    """Barycentric coordinates of every domain as stacked bars, one color per atom.

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
    ax = new_axes(ax)
    lam = np.asarray(dictionary.coordinates)
    names = domain_labels(lam.shape[0], domain_names)
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


def _three_axes(axes: Sequence[Axes] | None) -> NDArray[Any]:
    if axes is None:
        axes = pyplot().subplots(1, 3, figsize=(11, 3.4), layout="constrained")[1]
    panels: NDArray[Any] = np.asarray(axes, dtype=object)
    if panels.shape != (3,):
        raise MixdaError(f"axes must be three matplotlib Axes, got shape {panels.shape}.")
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
    """One curve per column of `values`, in the color of its domain."""
    for k, color in enumerate(colors(values.shape[1])):
        label = None if names is None else names[k]
        ax.plot(x, values[:, k], color=color, linestyle=line, linewidth=1.3, label=label)
