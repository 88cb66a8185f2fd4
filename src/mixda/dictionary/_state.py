"""The values that dictionary learning passes from step to step, all of them frozen."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from mixda._core.namespace import namespace
from mixda._core.typing import Array, Codes, Floats
from mixda.barycenters import Gram
from mixda.transport import Potentials, SparsePlan


@dataclass(frozen=True)
class State:
    """What is learned: the atoms, stacked along rows, and the coordinates of every domain.

    Arrays of numpy are read-only. Points may be of torch or CuPy, on a device.

    Attributes
    ----------
    points : (C·K, D)
        Components of the atoms, relative to the engine's center.
    labels : (C·K, nc)
        One distribution over the classes per component.
    coordinates : (L, C)
        Barycentric coordinates, rows in the simplex.
    weights : (C, K)
        Weights of the atoms' components.
    """

    points: Floats
    labels: Floats
    coordinates: Array
    weights: Array

    def __post_init__(self) -> None:
        for field in fields(self):
            if namespace(getattr(self, field.name)) is not np:
                continue
            view = np.asarray(getattr(self, field.name)).view()
            view.flags.writeable = False
            object.__setattr__(self, field.name, view)


@dataclass(frozen=True)
class AtomProducts:
    """Inner products of the atoms among themselves and with all domains.

    They depend on points and labels only, so they stay valid while coordinates or weights change.
    """

    points: Floats  # (C·K, C·K)
    labels: Floats
    domain_points: Floats  # (C·K, Σ K_l)
    domain_labels: Floats
    lifted: Gram  # what Algorithm 1 uses
    n_updates: int  # since they were last computed from the points


@dataclass(frozen=True)
class WarmStart:
    """What the next evaluation of a domain starts from: its alignment and its dual potentials.

    ``columns[j, c]`` is the row of ``State.points`` that atom *c* contributes to component *j*.
    """

    columns: Codes
    potentials: Potentials | None


@dataclass(frozen=True)
class Reconstruction:
    """One domain at one step: its barycenter, the plan to the domain, and the loss.

    Attributes
    ----------
    columns : (K, C)
        ``columns[j, c]`` is the row of ``State.points`` that atom *c* contributes to component *j*.
    weights : (K,)
        Weights b of the barycenter's components.
    plan : SparsePlan
        The plan ω from the barycenter to the domain.
    loss, beta : float
        Transport cost, and the label weight in it (0 for an unlabeled domain).
    quadratic, linear : (C, C), (C,)
        With fixed plans the loss is ``λᵀ quadratic λ - 2 linearᵀ λ + constant``.
    nearest : (K,)
        Mass of the domain's components that are nearest to each component of the barycenter.
    """

    columns: Codes
    weights: Array
    plan: SparsePlan
    loss: float
    beta: float
    quadratic: Array
    linear: Array
    nearest: Array

    @property
    def warm_start(self) -> WarmStart:
        """The start for the next evaluation of this domain."""
        return WarmStart(self.columns, self.plan.potentials)


@dataclass(frozen=True)
class Evaluation:
    """All domains at one step, and the products that remain valid while the atoms do."""

    reconstructions: list[Reconstruction]
    products: AtomProducts

    @property
    def loss(self) -> float:
        """Sum over the domains (eq. 16)."""
        return float(sum(r.loss for r in self.reconstructions))


@dataclass(frozen=True)
class Aligned:
    """A state and how every domain aligns its atoms, ``columns`` of shape (L, K, C).

    All that a dictionary is made of.
    """

    state: State
    columns: Codes

    @classmethod
    def of(cls, state: State, evaluation: Evaluation) -> Aligned:
        """Return a state with the alignments that its evaluation found."""
        return cls(state, np.stack([r.columns for r in evaluation.reconstructions]))
