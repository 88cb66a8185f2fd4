"""Write the report of a model, with samples from files if there are any."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mixda._core.errors import MixdaError
from mixda.model import AdaptedModel
from mixda.report import write_report
from mixda.tables import PathArgument, note_dropped, open_table


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
        Samples of the target. Rows with missing values are left out.
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
    samples = open_table(paths).read(list(model.feature_names), label, missing="drop")
    note_dropped(samples.dropped)
    return write_report(
        model,
        Path(output),
        samples.X,
        samples.y,
        row_numbers=samples.rows,
        n_dropped=sum(samples.dropped.values()),
    )
