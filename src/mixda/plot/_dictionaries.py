"""Figures of a dictionary: learning curves and barycentric coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda.plot._common import UNLABELED, colors, domain_labels, new_axes, pyplot
from mixda.views import Curves, barycentric_coordinates, learning_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mixda.dictionary import Dictionary


def history(
    dictionary: Dictionary,
    axes: Sequence[Axes] | None = None,
    *,
    domain_names: Sequence[str] | None = None,
) -> NDArray[Any]:
    """Plot loss, negative log-likelihood and coordinates over the iterations (figure 4a).

    Parameters
    ----------
    dictionary : Dictionary
    axes : sequence of three matplotlib Axes, optional
    domain_names : sequence of str, optional
        Names of the sources in order, then of the target.

    Returns
    -------
    ndarray of three matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> axes = mixda.plot.history(dictionary)  # doctest: +SKIP
    """
    history = dictionary.history
    names = domain_labels(history.domain_loss.shape[1], domain_names, "domain_names")
    loss, nll = learning_curves(dictionary, names)
    panels = _three_axes(axes)
    _draw_loss(panels[0], loss)
    if nll is None:
        note = "not recorded; pass samples\nto learn_dictionary"
        panels[1].annotate(note, (0.2, 0.5), xycoords="axes fraction", color=UNLABELED)
    else:
        _draw_curves(panels[1], nll.values, nll.domains)
    panels[1].set_ylabel("negative log-likelihood")
    _draw_coordinates(panels[2], history.coordinates)
    for ax in panels:
        ax.set_xlabel("iteration")
        ax.spines[["top", "right"]].set_visible(False)
    return panels


def coordinates(
    dictionary: Dictionary, ax: Axes | None = None, *, domain_names: Sequence[str] | None = None
) -> Axes:
    """Plot the barycentric coordinates of each domain as stacked bars, one color per atom.

    Parameters
    ----------
    dictionary : Dictionary
    ax : matplotlib Axes, optional
    domain_names : sequence of str, optional
        Names of the sources in order, then of the target.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import mixda
    >>> ax = mixda.plot.coordinates(dictionary)  # doctest: +SKIP
    """
    ax = new_axes(ax)
    names = domain_labels(len(dictionary.coordinates), domain_names, "domain_names")
    shown = barycentric_coordinates(dictionary, names)
    left = np.zeros(len(shown.values))
    n_atoms = len(shown.atoms)
    for atom, values, color in zip(shown.atoms, shown.values.T, colors(n_atoms), strict=True):
        ax.barh(shown.domains, values, left=left, color=color, edgecolor="white", label=atom)
        left = left + values
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), xlabel="barycentric coordinates")
    ax.tick_params(left=False)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(ncols=min(n_atoms, 4), loc="lower left", bbox_to_anchor=(0, 1.0), frameon=False)
    return ax


def _three_axes(axes: Sequence[Axes] | None) -> NDArray[Any]:
    if axes is None:
        axes = pyplot().subplots(1, 3, figsize=(11, 3.4), layout="constrained")[1]
    panels: NDArray[Any] = np.asarray(axes, dtype=object)
    if panels.shape != (3,):
        raise MixdaError(f"axes must hold three matplotlib Axes, got shape {panels.shape}.")
    return panels


def _draw_loss(ax: Axes, loss: Curves) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    total = np.asarray(loss.total)
    ax.plot(np.arange(len(total)), total, color="black", label="total")
    _draw_curves(ax, loss.values, loss.domains)
    if (total > 0).all():
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_ylabel("loss")
    ax.legend(frameon=False, fontsize=8)


def _draw_coordinates(ax: Axes, values: Array) -> None:
    for c in range(values.shape[2]):
        line = ("-", "--", ":", "-.")[c % 4]
        _draw_curves(ax, values[:, :, c], None, line)
        ax.plot([], [], color="black", linestyle=line, label=f"atom {c + 1}")
    ax.set(ylabel="coordinates", ylim=(-0.03, 1.03))
    columns = min(values.shape[2], 4)
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    ax.legend(frameon=False, fontsize=8, ncols=columns, **place)


def _draw_curves(ax: Axes, values: Array, names: Sequence[str] | None, line: str = "-") -> None:
    """Draw a curve over the iterations per column of `values`, in the color of its domain."""
    iterations = np.arange(len(values))
    for k, color in enumerate(colors(values.shape[1])):
        label = None if names is None else names[k]
        ax.plot(iterations, values[:, k], color=color, linestyle=line, linewidth=1.3, label=label)
