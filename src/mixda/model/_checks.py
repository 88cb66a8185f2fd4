"""Whether the parts of a model, which a file may hold in any combination, fit together."""

from __future__ import annotations

from typing import Any

from mixda._core.errors import MixdaError
from mixda.dictionary import Dictionary, History
from mixda.model._reference import Reference


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
