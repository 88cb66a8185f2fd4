"""Three ways to descend the loss of Algorithm 2, one step at a time.

`Block` minimizes in the coordinates and then in the atoms with all plans fixed. `Adam` is what the
authors' code does. `ProjectedGradient` is what their paper writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import softmax

from mixda._core.namespace import namespace
from mixda._core.typing import Array, Floats
from mixda.dictionary._engine import Engine
from mixda.dictionary._quadratic import DampedStep, minimize_on_simplex, project_simplex
from mixda.dictionary._state import Reconstruction, State

_MAX_COORDINATE_CHANGE = 0.02  # at which the atoms may move
_MAX_STEPS_HELD = 4  # that atoms wait in a row: fewer than what counts as convergence
_LONGER, _SHORTER, _MIN_RATE = 1.5, 0.25, 1e-12  # of the line search
_MIN_LABEL = 1e-3  # whose logarithm is a logit, away from the flat ends of the softmax


class Step(NamedTuple):
    """The next state, whether its atoms differ from those of the last one, and by which map.

    `points_map` is None if the points did not move or not by a linear map.
    """

    state: State
    atoms_moved: bool
    points_map: DampedStep | None = None


class Optimizer(Protocol):
    """One step from a state and its reconstructions to the next state.

    `memory` is everything that has to be saved to resume a run.
    """

    memory: dict[str, Floats]

    def step(self, engine: Engine, state: State, reconstructions: Sequence[Reconstruction]) -> Step:
        """Return the next state."""
        ...

    def accepts(self, loss: float, new_loss: float) -> bool:
        """Whether a step from `loss` to `new_loss` is kept."""
        ...

    def shorten(self) -> bool:
        """Undo a step that was not accepted and shorten the next; False if that is pointless."""
        ...


class _AcceptsAll:
    """No line search."""

    def accepts(self, loss: float, new_loss: float) -> bool:
        """Keep every step."""
        return True

    def shorten(self) -> bool:
        """Never happens."""
        return False


class Block(_AcceptsAll):
    """Damped minimization block by block with fixed plans; no learning rate (DESIGN §4).

    Atoms move only once the coordinates have settled. A plan that was computed at wrong coordinates
    can match the wrong classes. Atoms that follow it at once make the mistake permanent, while
    coordinates that are corrected first undo it (rotated toy, 120 degrees: accuracy 0.99 instead of
    0.78). The damping pulls every block toward its last value: directions of the atoms that no
    domain determines do not move, and nearly undetermined ones are not extrapolated.
    """

    def __init__(self, damping: float) -> None:
        self.damping = damping
        self.memory: dict[str, Floats] = {}

    def step(self, engine: Engine, state: State, reconstructions: Sequence[Reconstruction]) -> Step:
        """Minimize in the coordinates; if they hardly changed, minimize in the atoms too."""
        coordinates = np.stack(
            [
                self._coordinates(lam, r.quadratic, r.linear)
                for lam, r in zip(state.coordinates, reconstructions, strict=True)
            ]
        )
        n_held = self.memory.get("held", np.zeros(())) + 1.0
        change = np.abs(coordinates - state.coordinates).max()
        if change > _MAX_COORDINATE_CHANGE and n_held <= _MAX_STEPS_HELD:
            self.memory["held"] = n_held
            return Step(replace(state, coordinates=coordinates), atoms_moved=False)
        self.memory["held"] = np.zeros(())
        # with all plans fixed the loss is quadratic in the atoms: minimized exactly, but for μ
        betas = np.array([r.beta for r in reconstructions])
        factors = [np.repeat(f, engine.n_components) for f in (np.ones(len(betas)), betas)]
        equations = engine.normal_equations(reconstructions, coordinates)
        step, label_step = equations.solve(self.damping, factors, engine.dtype)
        weights = np.repeat(betas, np.diff(engine.starts)).astype(engine.dtype)
        labels = label_step(state.labels, weights[:, None] * engine.labels)
        moved = replace(
            state,
            points=step(state.points, engine.points),
            labels=project_simplex(labels.astype(np.float64)).astype(engine.dtype),
            coordinates=coordinates,
        )
        return Step(moved, True, step)

    def _coordinates(self, lam: Array, quadratic: Array, linear: Array) -> Array:
        """Minimize ``λᵀAλ - 2hᵀλ + μ‖λ - λ_old‖²`` over the simplex, μ = damping × mean(diag A).

        The curvature along the simplex is smaller and may look like the more natural scale of μ.
        But coordinates then jump from plan to plan without settling, and atoms never move (CWRU:
        87 instead of 100 %).
        """
        size = float(np.trace(quadratic)) / len(lam)
        mu = self.damping * (size if size > 0 else 1.0)
        return minimize_on_simplex(quadratic + mu * np.eye(len(lam)), linear + mu * lam)


class _GradientStep(_AcceptsAll):
    """The step of Algorithm 2, for any rule of how far a parameter moves against its gradient."""

    min_label = _MIN_LABEL  # whose logarithm is a logit

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.memory: dict[str, Floats] = {}

    def step(self, engine: Engine, state: State, reconstructions: Sequence[Reconstruction]) -> Step:
        """Move against the gradient of every parameter, then project the coordinates."""
        points, labels = engine.gradient(state, reconstructions, state.coordinates)
        coordinates = coordinate_gradient(state.coordinates, reconstructions)
        moved = self.apply(state, 2.0 * points, 2.0 * labels, 2.0 * coordinates)
        return Step(moved, atoms_moved=True)

    def apply(self, state: State, points: Floats, labels: Floats, coordinates: Array) -> State:
        """Take one step along the given gradients of the loss."""
        # v = softmax(u): the step is in the logits u (change of variables of Algorithm 2)
        if "logits" not in self.memory:
            self.memory["logits"] = np.log(np.maximum(state.labels, self.min_label))
        logits = self.memory["logits"]
        logits = logits - self.move("logits", through_softmax(labels, state.labels))
        self.memory["logits"] = logits
        # λ ← proj(λ - η ∂L/∂λ); the caller projects the deviations
        moved = state.coordinates - self.move("coordinates", coordinates)
        return replace(
            state,
            points=state.points - self.move("points", points),
            labels=softmax(logits, axis=1),
            coordinates=project_simplex(moved),
        )

    def move(self, name: str, gradient: Floats) -> Floats:
        """How far the parameter of this name moves against its gradient."""
        raise NotImplementedError


class ProjectedGradient(_GradientStep):
    """One learning rate η for means, deviations, logits and coordinates, as the paper writes it.

    A backtracking line search shortens η until the loss decreases. An accepted step lengthens it.
    Labels start close to those given: an increase of the loss by smoothing them could not be undone
    by any η.
    """

    min_label = 1e-12

    def move(self, name: str, gradient: Floats) -> Floats:
        """Return η times the gradient."""
        return float(self.memory.get("rate", self.learning_rate)) * gradient

    def apply(self, state: State, points: Floats, labels: Floats, coordinates: Array) -> State:
        """Remember the logits, so that the step can be undone."""
        before = self.memory.get("logits")
        if before is not None:
            self.memory["accepted_logits"] = before
        return super().apply(state, points, labels, coordinates)

    def accepts(self, loss: float, new_loss: float) -> bool:
        """Keep a step that does not increase the loss."""
        if not new_loss <= loss:
            return False
        rate = float(self.memory.get("rate", self.learning_rate))
        self.memory["rate"] = np.array(_LONGER * rate)
        return True

    def shorten(self) -> bool:
        """Undo the step, shorten η; give up when it is tiny."""
        rate = _SHORTER * float(self.memory.get("rate", self.learning_rate))
        self.memory["rate"] = np.array(rate)
        del self.memory["logits"]
        if "accepted_logits" in self.memory:
            self.memory["logits"] = self.memory["accepted_logits"]
        return rate > _MIN_RATE * self.learning_rate


class Adam(_GradientStep):
    """Adam (Kingma and Ba, 2015) on the same parameters, with the projections outside of it."""

    def move(self, name: str, gradient: Floats) -> Floats:
        """Adam's move, with separate moments and a separate count for every parameter."""
        xp = namespace(gradient)
        first, second, counted = f"{name}_first", f"{name}_second", f"{name}_count"
        if first not in self.memory:
            self.memory[first] = xp.zeros_like(gradient)
            self.memory[second] = xp.zeros_like(gradient)
            self.memory[counted] = np.zeros(())
        m, v = self.memory[first], self.memory[second]
        self.memory[counted] = self.memory[counted] + 1.0
        count = float(self.memory[counted])
        m *= 0.9
        m += 0.1 * gradient
        v *= 0.999
        v += 0.001 * gradient**2
        move: Floats = xp.sqrt(v / (1.0 - 0.999**count))
        move += 1e-8
        xp.divide(m, move, out=move)
        move *= self.learning_rate / (1.0 - 0.9**count)
        return move


def coordinate_gradient(coordinates: Array, reconstructions: Sequence[Reconstruction]) -> Array:
    """Half-gradient ``Aλ - h`` of the loss in every domain's coordinates, plans fixed: (L, C).

    Its component orthogonal to the simplex depends on the origin of the features. The projection
    drops it after a plain gradient step. In Adam it also enters the second moments, as in the
    authors' code.
    """
    return np.stack(
        [r.quadratic @ lam - r.linear for lam, r in zip(coordinates, reconstructions, strict=True)]
    )


def through_softmax(gradient: Floats, labels: Floats) -> Floats:
    """Gradient in the logits u from that in the labels v = softmax(u): ``v (g - Σ g v)``."""
    pulled: Floats = labels * (gradient - (gradient * labels).sum(axis=1, keepdims=True))
    return pulled
