"""The predictions of the rows of a table, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import LARGEST, check_choice
from mixda.model import AdaptedModel
from mixda.tables import Table
from mixda.workflow._rows import encoding_of


@dataclass(frozen=True, eq=False)
class RowPredictor:
    """What to predict of each batch of a table."""

    model: AdaptedModel
    keep: tuple[str, ...]
    accepts_gaps: bool
    rows: int

    @classmethod
    def checked(
        cls, model: AdaptedModel, keep: Sequence[str], missing: str, rows: int
    ) -> RowPredictor:
        """Check the options of `predict_file`."""
        check_choice(missing, "missing", ("mixture", "drop"))
        _check_kept(keep, _output_columns(model))
        accepts_gaps = missing == "mixture" and model.accepts_gaps
        return cls(model, tuple(dict.fromkeys(keep)), accepts_gaps, rows)

    def empty_tally(self) -> NDArray[np.int64]:
        """Return zero rows, missing, outliers, gaps, and rows of each class."""
        return np.zeros(4 + len(self.model.classes), dtype=np.int64)

    def batches(self, table: Table) -> Iterator[tuple[dict[str, Any], NDArray[np.int64]]]:
        """Yield the rows to write for each batch, and their counts."""
        encoding = encoding_of(self.model)
        features, text, keep = encoding.names, encoding.text_names, list(self.keep)
        reread = any(name in features for name in keep)  # once as numbers, once as written
        copies = table.batches(keep, self.rows, as_written=keep)
        copied = [] if reread else keep
        for batch in table.batches([*features, *copied], self.rows, as_written=[*copied, *text]):
            written = next(copies) if reread else batch
            kept = {name: written.record.column(name) for name in keep}
            yield _predicted_rows(self.model, batch.encoded(encoding), kept, self.accepts_gaps)


def _output_columns(model: AdaptedModel) -> list[str]:
    """Return the columns of a prediction, without the copied ones."""
    return ["label", "confidence", "far", "note", *(f"p_{name}" for name in model.classes)]


def _check_kept(keep: Sequence[str], names: Sequence[str]) -> None:
    taken = [name for name in keep if name in names]
    if taken:
        raise MixdaError(
            f"column {taken[0]!r} cannot be copied (keep), because the output has a column of "
            "that name; rename it in the data."
        )


def _predicted_rows(
    model: AdaptedModel, X: Array, kept: Mapping[str, Any], accepts_gaps: bool
) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Return the rows to write for a batch, and the counts in the order of `Prediction`."""
    cells = np.abs(X) <= LARGEST
    complete = np.asarray(cells.all(axis=1))
    usable = complete
    if accepts_gaps:
        usable = np.asarray((cells | np.isnan(X)).all(axis=1) & cells.any(axis=1))
    proba = np.zeros((len(X), len(model.classes)))
    outlier = np.zeros(len(X), dtype=bool)
    if usable.any():
        rows = X if usable.all() else X[usable]
        proba[usable], outlier[usable] = model.predict_proba(rows), model.outliers(rows)
    winners = proba.argmax(axis=1)
    columns = dict(kept)
    values = [model.classes[winners], proba.max(axis=1), outlier, None, *proba.T]
    for name, value in zip(_output_columns(model), values, strict=True):
        columns[name] = (
            _notes(X, complete, _owners(model)) if value is None else _masked(value, usable)
        )
    by_class = np.bincount(winners[usable], minlength=len(model.classes))
    n_gaps = (usable & ~complete).sum()
    return columns, np.array([len(X), (~usable).sum(), outlier.sum(), n_gaps, *by_class])


def _owners(model: AdaptedModel) -> list[str]:
    """Return the column of each feature."""
    if model.columns is None:
        return list(model.feature_names)
    return [column.name for column in model.columns.columns for _ in column.feature_names]


def _masked(values: NDArray[Any], usable: NDArray[np.bool_]) -> Any:
    import pyarrow

    return pyarrow.array(values, mask=None if usable.all() else ~usable)


def _notes(X: Array, complete: NDArray[np.bool_], columns: Sequence[str]) -> Any:
    import pyarrow

    if complete.all():
        return pyarrow.nulls(len(X), pyarrow.string())
    notes: list[str | None] = [None] * len(X)
    for row in np.flatnonzero(~complete):
        place = int((~(np.abs(X[row]) <= LARGEST)).argmax())
        what = "no value" if np.isnan(X[row, place]) else "no usable value"
        notes[row] = f"{what} in {columns[place]}"
    return pyarrow.array(notes, pyarrow.string())
