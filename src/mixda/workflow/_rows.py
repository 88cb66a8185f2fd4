"""Read rows of files as a model needs them: its columns, encoded, with gaps if it accepts them."""

from __future__ import annotations

from collections.abc import Sequence

from mixda.model import AdaptedModel
from mixda.tables import Columns, PathArgument, Samples, note_dropped, open_table

Paths = PathArgument | Sequence[PathArgument]


def read_rows(model: AdaptedModel, paths: Paths, label: str | None = None) -> Samples:
    """Return the rows of files with the features of a model.

    Missing values stay NaN if the model can handle them; else these rows are left out, with a
    note. With `label`, rows without a class are left out as well.
    """
    missing = "mixture" if model.accepts_gaps else "drop"
    samples = open_table(paths).read(label=label, missing=missing, encoding=encoding_of(model))
    note_dropped(samples.dropped)
    return samples


def encoding_of(model: AdaptedModel) -> Columns:
    """Return how the columns of a table become the features of a model."""
    return model.columns or Columns.of_numbers(model.feature_names)
