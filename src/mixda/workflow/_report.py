"""Write the report of a model, with samples from files if there are any."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mixda._core.errors import MixdaError
from mixda.model import AdaptedModel
from mixda.report import write_report
from mixda.tables import Columns, PathArgument, note_dropped, open_table


def report_file(
    model: AdaptedModel,
    output: PathArgument,
    paths: PathArgument | Sequence[PathArgument] | None = None,
    label: str | None = None,
) -> Path:
    """Write the report of a model, one HTML page, with the samples of some files if given.

    Parameters
    ----------
    model : AdaptedModel
    output : path
    paths : path, pattern, folder, or a sequence of these, optional
        Samples of the target. Missing values are filled, see `AdaptedModel.gap_mixture`; rows are
        left out if the model cannot fill them.
    label : str, optional
        Column of the true classes, for the confusion matrix.

    Returns
    -------
    Path
    """
    if paths is None:
        if label is not None:
            raise MixdaError(f"label {label!r} is a column of the data; give data (--data) too.")
        return write_report(model, Path(output))
    encoding = model.columns or Columns.of_numbers(model.feature_names)
    missing = "mixture" if model.accepts_gaps else "drop"
    samples = open_table(paths).read(label=label, missing=missing, encoding=encoding)
    note_dropped(samples.dropped)
    has_gaps = bool(np.isnan(samples.X).any())
    return write_report(
        model,
        Path(output),
        model.gap_mixture().impute(samples.X) if has_gaps else samples.X,
        samples.y,
        row_numbers=samples.rows,
        n_dropped=sum(samples.dropped.values()),
    )
