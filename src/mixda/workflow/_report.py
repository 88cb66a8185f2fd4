"""Write the report of a model, with samples from files if there are any."""

from __future__ import annotations

from pathlib import Path

from mixda._core.errors import MixdaError
from mixda.model import AdaptedModel
from mixda.report import write_report
from mixda.tables import PathArgument
from mixda.workflow._rows import Paths, read_rows


def report_file(
    model: AdaptedModel,
    output: PathArgument,
    paths: Paths | None = None,
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
    samples = read_rows(model, paths, label)
    return write_report(
        model,
        Path(output),
        model.impute(samples.X),
        samples.y,
        row_numbers=samples.rows,
        n_dropped=sum(samples.dropped.values()),
        n_rows=samples.n_usable,
    )
