"""Read rows of files as a model needs them: its columns, encoded, with gaps if it accepts them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from mixda.chunks import default_max_rows
from mixda.model import AdaptedModel
from mixda.tables import Columns, PathArgument, Samples, note_dropped, open_table

Paths = PathArgument | Sequence[PathArgument]


def read_rows(model: AdaptedModel, paths: Paths, label: str | None = None) -> Samples:
    """Return the rows of files with the features of a model.

    Missing values stay NaN if the model can handle them; else these rows are left out, with a
    note. With `label`, rows without a class are left out as well. Of a table that does not fit in
    memory, every k-th row is used, with a note.
    """
    missing = "mixture" if model.accepts_gaps else "drop"
    encoding = encoding_of(model)
    most = default_max_rows(len(encoding.feature_names), 1)
    samples = open_table(paths).read(label=label, missing=missing, encoding=encoding, max_rows=most)
    note_dropped(samples.dropped)
    if samples.n_usable is not None:
        warnings.warn(
            f"only {len(samples.X):,} of {samples.n_usable:,} rows are used, evenly spread over "
            "the data.",
            stacklevel=3,
        )
    return samples


def encoding_of(model: AdaptedModel) -> Columns:
    """Return how the columns of a table become the features of a model."""
    return model.columns or Columns.of_numbers(model.feature_names)
