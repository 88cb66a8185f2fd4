"""Where Algorithm 1 starts: at every input, at all of them together, at random, or as given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mixda._core.typing import Array, Codes
from mixda._core.validation import check_choice, check_simplex, is_word
from mixda.mixture import Mixture
from mixda.transport import align_labels, check_same_features

_WEIGHTS = ("auto", "free", "start", "uniform")
_MAX_STARTS = 8  # inputs to start from, those with the largest coordinates


def starting_mixtures(
    mixtures: Sequence[Mixture],
    lam: Array,
    n_components: int | None,
    init: str | Mixture,
    component_weights: str | ArrayLike,
    rng: np.random.Generator,
) -> list[Mixture]:
    """Return the mixtures that the fixed point starts from, without components of weight zero."""
    if isinstance(init, Mixture):
        check_same_features([init, *mixtures])
        return [_resized(init, n_components, component_weights)]
    check_choice(init, "init", ("input", "random"))
    origins = _origins(mixtures, lam)
    if init == "input":
        if not isinstance(component_weights, str) and n_components is None:
            n_components = origins[0].n_components
        return [_resized(origin, n_components, component_weights) for origin in origins]
    # the first line of Algorithm 1
    K = origins[0].n_components if n_components is None else n_components
    weights, classes = _weights(component_weights, K), origins[0].classes
    means = rng.standard_normal((len(weights), origins[0].n_features))
    labels = None
    if classes is not None:
        labels = np.full((len(weights), len(classes)), 1.0 / len(classes))
    return [Mixture(weights, means, np.ones_like(means), labels, classes)]


def _resized(
    origin: Mixture, n_components: int | None, component_weights: str | ArrayLike
) -> Mixture:
    K = origin.n_components if n_components is None else n_components
    weights = _weights(component_weights, K)
    keeps = is_word(component_weights, "start")
    if keeps and origin.n_components == K:
        return _drop_empty_components(origin)
    return resample(origin, weights)


def _weights(component_weights: str | ArrayLike, K: int) -> Array:
    """Return the given weights if they are positive, or uniform ones."""
    if isinstance(component_weights, str):
        check_choice(component_weights, "component_weights", _WEIGHTS)
        return np.full(K, 1.0 / K)
    weights = check_simplex(component_weights, "component_weights", K)
    return weights[weights > 0]


def _origins(mixtures: Sequence[Mixture], lam: Array) -> list[Mixture]:
    """Return the inputs that have all classes, in their order (`input_order`).

    If the first input lacks a class, all inputs together are one more.
    """
    inputs = [m for m, x in zip(mixtures, lam, strict=True) if x > 0]
    labels, classes = align_labels(inputs)
    known = [v for v in labels if v is not None]
    if len(known) < len(inputs):
        return inputs[:_MAX_STARTS]
    all_labels = np.vstack(known)
    complete = [not (all_labels.any(axis=0) & ~v.any(axis=0)).any() for v in known]
    origins = [m for m, is_complete in zip(inputs, complete, strict=True) if is_complete]
    if not complete[0]:
        weights = np.concatenate([x * m.weights for m, x in zip(inputs, lam[lam > 0], strict=True)])
        means, stds = (np.vstack([getattr(m, name) for m in inputs]) for name in ("means", "stds"))
        pooled = Mixture(weights / weights.sum(), means, stds, all_labels, classes)
        origins = [pooled, *origins]
    return origins[:_MAX_STARTS]


def first_origin(mixtures: Sequence[Mixture]) -> Mixture:
    """Return the first start of the barycenter with uniform coordinates."""
    lam = np.full(len(mixtures), 1.0 / len(mixtures))
    return _origins([mixtures[c] for c in input_order(mixtures, lam)], lam)[0]


def input_order(mixtures: Sequence[Mixture], lam: Array) -> Codes:
    """Return the inputs in the order of their coordinates, the largest first.

    Among inputs of the same coordinate, the number of components and then the values of the mean
    decide, so that the order in which inputs are given does not matter.
    """
    keys = [
        (round(float(x), 9), m.n_components, *(m.weights @ m.means).tolist())
        for m, x in zip(mixtures, lam, strict=True)
    ]
    return np.array(sorted(range(len(keys)), key=lambda c: keys[c], reverse=True))


def _drop_empty_components(p: Mixture) -> Mixture:
    kept = p.weights > 0
    if kept.all():
        return p
    labels = None if p.labels is None else p.labels[kept]
    return Mixture(p.weights[kept], p.means[kept], p.stds[kept], labels, p.classes)


def resample(p: Mixture, weights: Array) -> Mixture:
    """Represent `p` by components of the given weights: systematic sampling of its own components.

    Components are visited class by class, so that each class keeps its proportion. The values of
    their means decide on the order of the classes.
    """
    if np.array_equal(p.weights, weights):
        return p
    order = np.arange(p.n_components)
    if p.labels is not None:
        mass = p.weights @ p.labels
        means = (p.weights[:, None] * p.labels).T @ p.means / np.where(mass > 0, mass, 1.0)[:, None]
        rank = np.argsort(np.lexsort(means.T[::-1]))
        order = np.argsort(rank[p.labels.argmax(axis=1)], kind="stable")
    ends = np.cumsum(p.weights[order])
    middles = np.cumsum(weights) - 0.5 * weights
    chosen = order[np.searchsorted(ends, middles * ends[-1]).clip(max=p.n_components - 1)]
    labels = None if p.labels is None else p.labels[chosen]
    return Mixture(weights, p.means[chosen], p.stds[chosen], labels, p.classes)
