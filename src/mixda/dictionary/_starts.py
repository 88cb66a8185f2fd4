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

_SHARE_ROUNDS = 50  # converges linearly; the shares are those of a start


def default_size(sources: Sequence[Mixture]) -> int:
    """Return how many components an atom has by default.

    The largest number among the sources. If sources lack classes, at least the sum over the classes
    of the largest number that a source has: none of the sources may have room for all classes.
    """
    largest = max(q.n_components for q in sources)
    if not _lacking_classes(sources).any():
        return largest
    labels, classes = align_labels(sources)
    counts = [np.bincount(np.asarray(v).argmax(axis=1), minlength=len(classes)) for v in labels]
    return max(largest, int(np.max(counts, axis=0).sum()))


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
    """Start at the sources' components, in the order of their common barycenter.

    A class that a source lacks starts where it is in the other sources.
    """
    C, K = engine.n_atoms, engine.n_components
    complete = _with_all_classes(sources)
    lacking = _lacking_classes(sources)
    origins = [q for q, lacks in zip(sources, lacking, strict=True) if not lacks.any()]
    common = barycenter(
        complete,
        n_components=K,
        beta=engine.label_weight.parameter,
        component_weights="uniform",
        init=first_origin(origins or complete),
        like=engine.like,
    )
    # image of the barycenter in every source (eq. 10 and 13): component j of all of them match
    labels, _ = align_labels(complete)
    maps = [plan / plan.sum(axis=1, keepdims=True) for plan in common.plans]
    images = np.stack([T @ features(q) for T, q in zip(maps, complete, strict=True)])
    image_labels = np.stack([T @ v for T, v in zip(maps, labels, strict=True)])
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


def _with_all_classes(sources: Sequence[Mixture]) -> list[Mixture]:
    """Give a source that lacks classes the components that the other sources have of them."""
    lacking = _lacking_classes(sources)
    if not lacking.any():
        return list(sources)
    aligned, classes = align_labels(sources)
    labels = [np.asarray(v) for v in aligned]
    means, stds = np.vstack([q.means for q in sources]), np.vstack([q.stds for q in sources])
    joint = np.vstack([q.weights[:, None] * v for q, v in zip(sources, labels, strict=True)])
    joint /= np.maximum(joint.sum(axis=0), np.finfo(np.float64).tiny)  # every class has mass one
    shares = _common_shares(sources, lacking)
    complete = list(sources)
    for l in np.flatnonzero(lacking.any(axis=1)).tolist():
        added = joint * np.where(lacking[l], shares, 0.0)
        weights = added.sum(axis=1)
        rows = weights > 0
        complete[l] = Mixture(
            np.concatenate([(1.0 - weights.sum()) * sources[l].weights, weights[rows]]),
            np.vstack([sources[l].means, means[rows]]),
            np.vstack([sources[l].stds, stds[rows]]),
            np.vstack([labels[l], added[rows] / weights[rows, None]]),
            classes,
        )
    return complete


def _class_masses(sources: Sequence[Mixture]) -> Array:
    """Masses of all classes in every source, of shape (N, nc)."""
    labels, _ = align_labels(sources)
    return np.stack([q.weights @ np.asarray(v) for q, v in zip(sources, labels, strict=True)])


def _lacking_classes(sources: Sequence[Mixture]) -> NDArray[np.bool_]:
    """Whether a source lacks a class that another one has, of shape (N, nc)."""
    mass = _class_masses(sources)
    lacking: NDArray[np.bool_] = (mass == 0) & (mass > 0).any(axis=0)
    return lacking


def _common_shares(sources: Sequence[Mixture], lacking: NDArray[np.bool_]) -> Array:
    """Shares π of the classes, of shape (nc,), from sources that lack some of them.

    They maximize ``Σ_lc mass_lc log(π_c / Σ_k π_k)``, where k runs over the classes that source l
    has, so that shares on which all sources agree are found. Iterations of Hunter, "MM algorithms
    for generalized Bradley-Terry models" (2004).
    """
    mass = _class_masses(sources)
    total, present = mass.sum(axis=0), 1.0 - lacking
    shares: Array = total / total.sum()
    for _ in range(_SHARE_ROUNDS):
        shares = total / (present.T @ (1.0 / (present @ shares)))
        shares /= shares.sum()
    return shares


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
