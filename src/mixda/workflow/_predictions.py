"""The rows that `mixda.workflow.predict_file` writes: labels, how sure they are, and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import LARGEST, Array
from mixda.model import AdaptedModel


def output_names(model: AdaptedModel) -> list[str]:
    """Return the columns of a prediction, without those that are copied."""
    return ["label", "confidence", "far", "note", *(f"p_{name}" for name in model.classes)]


def check_kept(keep: Sequence[str], names: Sequence[str]) -> None:
    """Refuse to copy a column whose name is taken."""
    taken = [name for name in keep if name in names]
    if taken:
        raise MixdaError(
            f"the column {taken[0]!r} cannot be kept, as the output has one of that name; rename "
            "it in the data."
        )


def predicted_rows(
    model: AdaptedModel, X: Array, kept: Mapping[str, Any]
) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Return the rows to write for a batch, and how many: all, missing, far, of each class."""
    usable = np.asarray((np.abs(X) <= LARGEST).all(axis=1))
    proba = np.zeros((len(X), len(model.classes)))
    far = np.zeros(len(X), dtype=bool)
    if usable.any():
        rows = X if usable.all() else X[usable]
        proba[usable], far[usable] = model.predict_proba(rows), model.novelty(rows)
    winners = proba.argmax(axis=1)
    columns = dict(kept)
    values = [model.classes[winners], proba.max(axis=1), far, None, *proba.T]
    for name, value in zip(output_names(model), values, strict=True):
        columns[name] = (
            _notes(X, usable, model.feature_names) if value is None else _masked(value, usable)
        )
    by_class = np.bincount(winners[usable], minlength=len(model.classes))
    return columns, np.array([len(X), (~usable).sum(), far.sum(), *by_class])


def _masked(values: NDArray[Any], usable: NDArray[np.bool_]) -> Any:
    import pyarrow

    return pyarrow.array(values, mask=None if usable.all() else ~usable)


def _notes(X: Array, usable: NDArray[np.bool_], features: Sequence[str]) -> Any:
    import pyarrow

    if usable.all():
        return pyarrow.nulls(len(X), pyarrow.string())
    notes: list[str | None] = [None] * len(X)
    for row in np.flatnonzero(~usable):
        place = int((~(np.abs(X[row]) <= LARGEST)).argmax())
        what = "no value" if np.isnan(X[row, place]) else "no usable value"
        notes[row] = f"{what} in {features[place]}"
    return pyarrow.array(notes, pyarrow.string())
