"""Whether the parts of a model, which a file may hold in any combination, fit together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.namespace import namespace
from mixda._core.typing import Array
from mixda.dictionary import Dictionary, History
from mixda.mixture import Mixture
from mixda.model._reference import Reference
from mixda.rules import Rule

_MAX_SUM_ERROR = 1e-6  # of probabilities
_MAX_SINGLE_SUM_ERROR = 1e-4  # of those in single precision


def check_classes(classes: NDArray[Any]) -> None:
    """Reject a name that stands for two classes."""
    if len(np.unique(classes)) != len(classes):
        raise MixdaError(f"classes must be distinct names, got {classes.tolist()!r}.")


def check_rule(rule: Rule, n_features: int, n_classes: int) -> None:
    """Reject a rule that does not map features to probabilities, before a prediction fails."""
    rows = _some_rows(n_features)
    with np.errstate(all="ignore"):
        proba = rule(rows)
    if proba.shape != (len(rows), n_classes) or not np.isfinite(proba).all():
        raise MixdaError(
            f"rule must map rows of {n_features} features to the probabilities of "
            f"{n_classes} classes, got {len(rows)} rows and an array of shape {proba.shape}."
        )
    check_proba(proba)


def check_proba(proba: Array) -> None:
    """Reject what a forged rule returns; those of mixda return probabilities by construction."""
    total = proba.sum(axis=1)
    xp = namespace(proba)
    single = xp is not np and proba.dtype == xp.float32
    limit = _MAX_SINGLE_SUM_ERROR if single else _MAX_SUM_ERROR
    if (proba < 0).any() or (xp.abs(total - 1.0) > limit).any():
        raise MixdaError(
            "rule must return probabilities, which are non-negative and sum to one; got a minimum "
            f"of {proba.min():.6g} and sums from {total.min():.6g} to {total.max():.6g}."
        )


def check_encoder(encoder: Rule | None, n_features: int, mixtures: Iterable[Mixture]) -> None:
    """Reject mixtures that are not over what the encoder returns."""
    encoded = _some_rows(n_features)
    if encoder is not None:
        with np.errstate(all="ignore"):
            encoded = encoder(encoded)
    for mixture in mixtures:
        if mixture.n_features != encoded.shape[1]:
            raise MixdaError(
                f"a mixture has {mixture.n_features} features, but the encoder returns "
                f"{encoded.shape[1]}."
            )


def _some_rows(n_features: int) -> Array:
    normal = np.random.default_rng(0).normal(size=(3, n_features))
    return np.vstack([np.zeros((1, n_features)), normal])


def check_reference(reference: Any, n_features: int, n_classes: int) -> None:
    """Reject the reference of a forged file."""
    if not isinstance(reference, Reference):
        raise MixdaError(f"reference must be a Reference, got a {type(reference).__name__}.")
    if len(reference.means) != n_features or len(reference.class_counts) != n_classes:
        raise MixdaError(
            f"reference has {len(reference.means)} features and {len(reference.class_counts)} "
            f"classes, but the model has {n_features} and {n_classes}."
        )


def check_dictionary(dictionary: Dictionary) -> None:
    """Reject the dictionary of a forged file; a learned one is correct by construction."""
    coordinates, alignments = dictionary.coordinates, dictionary.alignments
    sizes = {atom.n_components for atom in dictionary.atoms}
    labeled = all(atom.is_labeled for atom in dictionary.atoms)
    shape = (len(coordinates), len(dictionary.atoms), max(sizes, default=0))
    if (
        not labeled
        or len(sizes) != 1
        or coordinates.shape != shape[:2]
        or alignments.shape != shape
        or alignments.dtype.kind not in "iu"
        or alignments.min() < 0
        or alignments.max() >= shape[2]
        or not isinstance(dictionary.history, History)
    ):
        raise MixdaError("the parts of the dictionary do not fit together.")
