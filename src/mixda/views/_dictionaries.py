"""What the figures of a dictionary show: coordinates, learning curves, interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from mixda._core.progress import Progress
from mixda._core.typing import Array
from mixda.dictionary import Dictionary
from mixda.mixture import Mixture
from mixda.transport import features, squared_distances


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Barycentric coordinates of the domains: a row per domain (target last), a column per atom."""

    values: Array
    domains: tuple[str, ...]
    atoms: tuple[str, ...]


def barycentric_coordinates(dictionary: Dictionary, domain_names: Sequence[str]) -> Coordinates:
    """Return the coordinates of a dictionary with the names of their rows and columns."""
    values = np.asarray(dictionary.coordinates)
    atoms = tuple(f"atom {c + 1}" for c in range(values.shape[1]))
    return Coordinates(values, tuple(domain_names[: len(values)]), atoms)


@dataclass(frozen=True, eq=False)
class Curves:
    """A quantity over the iterations, row 0 before the first one.

    Attributes
    ----------
    title : str
    values : ndarray of shape (n_iter + 1, L)
        A column per domain, target last.
    domains : tuple of str
    total : ndarray of shape (n_iter + 1,) or None
        Sum over the domains, where the sum means something.
    """

    title: str
    values: Array
    domains: tuple[str, ...]
    total: Array | None = None


def learning_curves(
    dictionary: Dictionary, domain_names: Sequence[str]
) -> tuple[Curves, Curves | None]:
    """Return the loss and the negative log-likelihood, the latter None if it was not recorded."""
    history = dictionary.history
    names = tuple(domain_names[: history.domain_loss.shape[1]])
    loss = Curves("Loss", history.domain_loss, names, history.loss)
    if history.nll is None:
        return loss, None
    return loss, Curves("Negative log-likelihood", history.nll, names)


def interpolation_frames(
    dictionary: Dictionary, n_steps: int, verbose: bool = False
) -> list[list[Mixture]]:
    """Interpolate between the target and each atom, in `n_steps` steps per atom.

    Every path starts at the reconstruction of the target. Component k of a frame is matched to
    component k of the previous frame.
    """
    target = dictionary.coordinates[-1]
    n_atoms = len(dictionary.atoms)
    paths = [[dictionary.target] for _ in range(n_atoms)]
    with Progress(n_atoms * n_steps, "drawing the atoms", verbose) as progress:
        for c, (path, corner) in enumerate(zip(paths, np.eye(n_atoms), strict=True)):
            for step in range(1, n_steps + 1):
                t = step / n_steps
                lam = (1 - t) * target + t * corner
                path.append(_match_components(path[-1], dictionary.reconstruct(lam / lam.sum())))
                progress.update(c * n_steps + step)
    return paths


def _match_components(previous: Mixture, m: Mixture) -> Mixture:
    """Reorder the components of `m` by an optimal assignment to those of `previous`."""
    order = linear_sum_assignment(squared_distances(features(previous), features(m)))[1]
    parts = {name: getattr(m, name)[order] for name in ("weights", "means", "stds")}
    return replace(m, **parts, labels=None if m.labels is None else m.labels[order])
