"""Where dictionary learning starts: at the sources, at random, or at an earlier dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.validation import Array
from mixda.barycenters import barycenter
from mixda.dictionary._engine import Engine, State
from mixda.mixture import Mixture
from mixda.transport import align_labels, features

if TYPE_CHECKING:
    from mixda.dictionary._dictionary import Dictionary


def start_at_random(engine: Engine, rng: np.random.Generator) -> State:
    """Start as in the paper: means from N(0, I), unit deviations, all else uniform."""
    size, D = engine.n_atoms * engine.n_components, len(engine.center)
    points = np.ones((size, D))
    points[:, : D // 2] = rng.standard_normal((size, D // 2))
    nc = engine.stacked_labels.shape[1]
    coordinates = np.full((len(engine.weights), engine.n_atoms), 1.0 / engine.n_atoms)
    return _state(engine, points, np.full((size, nc), 1.0 / nc), coordinates)


def start_from_dictionary(engine: Engine, start: Dictionary, classes: Any) -> State:
    shape = engine.n_atoms, engine.n_components, len(engine.weights)
    theirs = len(start.atoms), start.atoms[0].n_components, len(start.coordinates)
    known = start.atoms[0].classes
    if shape != theirs or known is None or not np.array_equal(known, classes):
        raise MixdaError(
            f"the dictionary to start from has {theirs} atoms, components and domains, but "
            f"{shape} are asked for (and its classes must be those of the sources)."
        )
    labels = np.vstack([atom.labels for atom in start.atoms if atom.labels is not None])
    points = np.vstack([features(atom) for atom in start.atoms])
    state = _state(engine, points, labels, start.coordinates)
    state.masses = np.stack([atom.weights for atom in start.atoms])
    return state


def start_from_sources(
    engine: Engine, sources: Sequence[Mixture], n_atoms: int, n_components: int
) -> State:
    """Start at the sources' components, in the order of their common barycenter."""
    found = barycenter(
        sources, n_components=n_components, beta=engine.beta, component_weights="uniform"
    )
    labels, _ = align_labels(sources)
    maps = [plan / plan.sum(axis=1, keepdims=True) for plan in found.plans]
    images = np.stack([T @ features(q) for T, q in zip(maps, sources, strict=True)])
    image_labels = np.stack([T @ v for T, v in zip(maps, labels, strict=True)])
    classes = np.asarray(found.mixture.labels).argmax(axis=1)
    has = np.stack([np.asarray(v)[:, classes].any(axis=0) for v in labels])[:, :, None]
    if not has.all():  # a class that a source lacks starts where the others have it
        share = has / has.sum(axis=0)
        images = np.where(has, images, (share * images).sum(axis=0))
        image_labels = np.where(has, image_labels, (share * image_labels).sum(axis=0))
    mixing = _mixing(images, n_atoms)
    coordinates = mixing / mixing.sum(axis=0) if n_atoms <= len(sources) else mixing
    coordinates = np.vstack([coordinates.T, np.full(n_atoms, 1.0 / n_atoms)])
    rows = n_atoms * n_components
    return _state(
        engine,
        np.einsum("cl,lkd->ckd", mixing, images).reshape(rows, -1),
        np.einsum("cl,lkv->ckv", mixing, image_labels).reshape(rows, -1),
        coordinates / coordinates.sum(axis=1, keepdims=True),
    )


def _mixing(images: Array, n_atoms: int) -> Array:
    """Weights (C, N) of the sources in every atom: a group each, or each source and then means."""
    N = len(images)
    if n_atoms >= N:
        pairs = [(i, j) for j in range(N) for i in range(j)]
        extra = [np.full(N, 1.0 / N)] + [0.5 * (np.eye(N)[i] + np.eye(N)[j]) for i, j in pairs]
        rows = [*np.eye(N), *(extra[i % len(extra)] for i in range(n_atoms - N))]
        return np.stack(rows)
    from scipy.cluster.hierarchy import cut_tree, linkage

    group = cut_tree(linkage(images.reshape(N, -1), "ward"), n_clusters=n_atoms)[:, 0]
    members = np.eye(n_atoms)[group].T
    mixing: Array = members / members.sum(axis=1, keepdims=True)
    return mixing


def _state(engine: Engine, points: Array, labels: Array, coordinates: Array) -> State:
    masses = np.full((engine.n_atoms, engine.n_components), 1.0 / engine.n_components)
    return State(
        (points - engine.center).astype(engine.dtype),
        labels.astype(engine.dtype),
        coordinates,
        masses,
    )
