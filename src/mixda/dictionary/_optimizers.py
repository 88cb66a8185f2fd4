"""Three ways to go down the loss of Algorithm 2, one step at a time.

`Block` minimizes in the coordinates and then in the atoms with all plans fixed, damped;
`Adam` is what the authors' code does; `ProjectedGradient` is what their paper writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from mixda._core.validation import Array, Floats
from mixda.dictionary._engine import (
    Engine,
    Reconstruction,
    State,
    minimize_on_simplex,
    project_simplex,
    solve_damped,
)

_RESTING = 0.02  # largest change of a coordinate at which the atoms may move
_MOST_HELD = 4  # steps in a row that atoms wait: fewer than what counts as convergence


class Optimizer(Protocol):
    """One step from a state and its evaluation to the next state.

    `memory` is everything that has to be saved for a run to go on where it stopped.
    """

    memory: dict[str, Floats]

    def step(self, engine: Engine, state: State, found: Sequence[Reconstruction]) -> State:
        """Return the next state; `state` itself is not changed."""
        ...


class Block:
    """Damped minimization block by block with fixed plans; no learning rate.

    Atoms move only when the coordinates rest. A plan that was computed at wrong coordinates can
    match the wrong classes; atoms that followed it at once would make the mistake true, while
    coordinates that are corrected first undo it (rotated toy, 120 degrees: accuracy 0.99 instead
    of 0.78). The damping pulls every block towards where it was: directions of the atoms that no
    domain determines stay put, and nearly undetermined ones are not extrapolated.
    """

    def __init__(self, damping: float) -> None:
        self.damping = damping
        self.memory: dict[str, Floats] = {}

    def step(self, engine: Engine, state: State, found: Sequence[Reconstruction]) -> State:
        """Minimize in the coordinates; if they hardly changed, minimize in the atoms too."""
        coordinates = np.stack(
            [
                self._coordinates(lam, r.quadratic, r.linear)
                for lam, r in zip(state.coordinates, found, strict=True)
            ]
        )
        held = self.memory.get("held", np.zeros(())) + 1.0
        self.memory["held"] = np.zeros(())
        if np.abs(coordinates - state.coordinates).max() > _RESTING and held <= _MOST_HELD:
            self.memory["held"] = held
            return replace(state, coordinates=coordinates)
        points, labels = engine.gradient(state, found, coordinates)
        hessian = engine.hessian(found, coordinates, [1.0] * len(found))
        label_hessian = engine.hessian(found, coordinates, [r.beta for r in found])
        labels = state.labels - solve_damped(label_hessian, self.damping, labels)
        return replace(
            state,
            points=state.points - solve_damped(hessian, self.damping, points),
            labels=project_simplex(labels.astype(np.float64)).astype(engine.dtype),
            coordinates=coordinates,
        )

    def _coordinates(self, lam: Array, quadratic: Array, linear: Array) -> Array:
        """Minimize on the simplex, held firmly: by a share of the atoms' mean squared size.

        Holding by the (smaller) curvature along the simplex looks more natural, but coordinates
        then jump from plan to plan without resting, and atoms never move (CWRU: 87 instead of
        100 %).
        """
        size = float(np.trace(quadratic)) / len(lam)
        held = self.damping * (size if size > 0 else 1.0)
        return minimize_on_simplex(quadratic + held * np.eye(len(lam)), linear + held * lam)


class ProjectedGradient:
    """Gradient descent with one learning rate on means, deviations, logits and coordinates."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.memory: dict[str, Floats] = {}

    def step(self, engine: Engine, state: State, found: Sequence[Reconstruction]) -> State:
        """Move against the gradient of every parameter, then project the coordinates."""
        points, labels = engine.gradient(state, found, state.coordinates)
        gradient = coordinate_gradient(state.coordinates, found)
        return self.apply(state, 2.0 * points, 2.0 * labels, 2.0 * gradient)

    def apply(self, state: State, points: Floats, labels: Floats, coordinates: Array) -> State:
        """Take one step along given gradients of the loss; labels move through their logits."""
        if "logits" not in self.memory:
            self.memory["logits"] = _logits(state.labels)
        logits = self.move("logits", through_softmax(labels, state.labels))
        self.memory["logits"] = self.memory["logits"] - logits
        moved = state.coordinates - self.move("coordinates", coordinates)
        return replace(
            state,
            points=state.points - self.move("points", points),
            labels=_softmax(self.memory["logits"]),
            coordinates=project_simplex(moved),
        )

    def move(self, name: str, gradient: Floats) -> Floats:
        """How far the parameter of this name goes against its gradient."""
        return self.learning_rate * gradient


class Adam(ProjectedGradient):
    """Adam (Kingma and Ba, 2015) on the same parameters, projections outside of it."""

    def move(self, name: str, gradient: Floats) -> Floats:
        """Adam's move, with moments and a count of its own for every parameter."""
        first, second, counted = f"{name}_first", f"{name}_second", f"{name}_count"
        if first not in self.memory:
            self.memory[first] = np.zeros_like(gradient)
            self.memory[second] = np.zeros_like(gradient)
            self.memory[counted] = np.zeros(())
        m, v = self.memory[first], self.memory[second]
        self.memory[counted] = self.memory[counted] + 1.0
        count = float(self.memory[counted])
        m *= 0.9
        m += 0.1 * gradient
        v *= 0.999
        v += 0.001 * gradient**2
        move: Floats = np.sqrt(v / (1.0 - 0.999**count))
        move += 1e-8
        np.divide(m, move, out=move)
        move *= self.learning_rate / (1.0 - 0.9**count)
        return move


def coordinate_gradient(coordinates: Array, found: Sequence[Reconstruction]) -> Array:
    """Half-gradient of the loss in every domain's coordinates, with plans fixed: (L, C).

    Its part across the simplex depends on the origin of the features. The projection drops it
    after a plain gradient step; in Adam it also enters the second moments, as in the authors' code.
    """
    return np.stack(
        [r.quadratic @ lam - r.linear for lam, r in zip(coordinates, found, strict=True)]
    )


def through_softmax(gradient: Floats, labels: Floats) -> Floats:
    """Pull a gradient in the labels ``v = softmax(u)`` back to the logits u."""
    pulled: Floats = labels * (gradient - (gradient * labels).sum(axis=1, keepdims=True))
    return pulled


def _logits(labels: Floats) -> Floats:
    """Logits of the labels, kept away from the flat ends of the softmax."""
    logits: Floats = np.log(np.maximum(labels, 1e-3))
    return logits


def _softmax(logits: Floats) -> Floats:
    labels: Floats = np.exp(logits - logits.max(axis=1, keepdims=True))
    labels /= labels.sum(axis=1, keepdims=True)
    return labels
