"""Where dictionary learning starts: at the sources, at random, or at an earlier dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda.barycenters import barycenter, first_origin
from mixda.dictionary._dictionary import Dictionary
from mixda.dictionary._engine import Engine
from mixda.dictionary._state import State
from mixda.mixture import Mixture
from mixda.transport import align_labels, features


def start_at_random(engine: Engine, rng: np.random.Generator) -> State:
    """Start as in Algorithm 2: means from N(0, I), unit deviations, everything else uniform."""
    size, D = engine.n_atoms * engine.n_components, len(engine.center)
    points = np.ones((size, D))
    points[:, : D // 2] = rng.standard_normal((size, D // 2))
    nc = engine.labels.shape[1]
    coordinates = np.full((len(engine.weights), engine.n_atoms), 1.0 / engine.n_atoms)
    return _state(engine, points, np.full((size, nc), 1.0 / nc), coordinates)


def start_from_dictionary(engine: Engine, init: Dictionary, classes: NDArray[Any]) -> State:
    """Continue from an earlier dictionary of the same shape and with the same classes."""
    expected = engine.n_atoms, engine.n_components, len(engine.weights)
    given = len(init.atoms), init.atoms[0].n_components, len(init.coordinates)
    if expected != given:
        names = ("n_atoms", "n_components", "the number of domains")
        raise MixdaError(
            "init is a dictionary of another shape: "
            + ", ".join(
                f"{n} is {g} instead of {e}"
                for n, g, e in zip(names, given, expected, strict=True)
                if g != e
            )
            + "; change these parameters or use init='sources'."
        )
    known = init.atoms[0].classes
    if known is None or not np.array_equal(known, classes):
        raise MixdaError(
            "init is a dictionary whose classes are not those of the sources "
            f"({None if known is None else known.tolist()} instead of {classes.tolist()}); use "
            "init='sources'."
        )
    return _state(
        engine,
        np.vstack([features(atom) for atom in init.atoms]),
        np.vstack([atom.labels for atom in init.atoms if atom.labels is not None]),
        init.coordinates,
        np.stack([atom.weights for atom in init.atoms]),
    )


def start_from_sources(engine: Engine, sources: Sequence[Mixture]) -> State:
    """Start at the sources' components, in the order of their common barycenter."""
    C, K = engine.n_atoms, engine.n_components
    common = barycenter(
        sources,
        n_components=K,
        beta=engine.label_weight.parameter,
        component_weights="uniform",
        init=first_origin(sources),
        like=engine.like,
    )
    # image of the barycenter in every source (eq. 10 and 13): component j of all of them match
    labels, _ = align_labels(sources)
    maps = [plan / plan.sum(axis=1, keepdims=True) for plan in common.plans]
    images = np.stack([T @ features(q) for T, q in zip(maps, sources, strict=True)])
    image_labels = np.stack([T @ v for T, v in zip(maps, labels, strict=True)])
    # a class that a source lacks starts at the mean of the sources that have it
    classes = np.asarray(common.mixture.labels).argmax(axis=1)
    known = np.stack([np.asarray(v)[:, classes].any(axis=0) for v in labels])[:, :, None]
    if not known.all():
        share = known / known.sum(axis=0)
        images = np.where(known, images, (share * images).sum(axis=0))
        image_labels = np.where(known, image_labels, (share * image_labels).sum(axis=0))
    # every atom is a mean of sources; sources start at the atoms they are in, the target at all
    mixing = _mixing(images, C)
    coordinates = mixing / mixing.sum(axis=0) if len(sources) >= C else mixing
    coordinates = np.vstack([coordinates.T, np.full(C, 1.0 / C)])
    return _state(
        engine,
        np.einsum("cl,lkd->ckd", mixing, images).reshape(C * K, -1),
        np.einsum("cl,lkv->ckv", mixing, image_labels).reshape(C * K, -1),
        coordinates / coordinates.sum(axis=1, keepdims=True),
    )


def _mixing(images: Array, n_atoms: int) -> Array:
    """Weights (C, N) of the sources in every atom.

    With fewer atoms than sources an atom is the mean of a group of similar sources. Otherwise every
    source is an atom, followed by the mean of all sources and by means of pairs.
    """
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


def _state(
    engine: Engine,
    points: Array,
    labels: Array,
    coordinates: Array,
    weights: Array | None = None,
) -> State:
    K = engine.n_components
    return State(
        engine.on_device(points - engine.center),
        labels.astype(engine.dtype),
        coordinates,
        np.full((engine.n_atoms, K), 1.0 / K) if weights is None else weights,
    )
