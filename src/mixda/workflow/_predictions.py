"""Classify the rows of files, batch by batch: labels, probabilities, outliers and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda.model import AdaptedModel
from mixda.tables import PathArgument, check_writable, open_table, write_table
from mixda.workflow._prediction_folder import is_folder, predict_folder
from mixda.workflow._row_predictor import RowPredictor
from mixda.workflow._rows import encoding_of


@dataclass(frozen=True)
class Prediction:
    """Summary of what `predict_file` wrote.

    Attributes
    ----------
    rows : int
        Rows written.
    missing : int
        Rows without a label, because a feature has no usable value.
    far : int
        Outliers: rows far from everything the model knows, see `mixda.AdaptedModel.outliers`.
    counts : dict of str to int
        Rows of each class.
    gaps : int
        Rows with a label although a feature is missing.
    """

    rows: int
    missing: int
    far: int
    counts: dict[str, int]
    gaps: int = 0

    @classmethod
    def of(cls, model: AdaptedModel, tally: NDArray[np.int64]) -> Prediction:
        """Return the summary of counts of rows, missing, outliers, gaps, and each class."""
        counts = dict(zip(map(str, model.classes), tally[4:].tolist(), strict=True))
        n_rows, n_missing, n_outliers, n_gaps = tally[:4].tolist()
        return cls(n_rows, n_missing, n_outliers, counts, n_gaps)


def predict_file(
    model: AdaptedModel,
    paths: PathArgument | Sequence[PathArgument],
    output: PathArgument,
    *,
    keep: Sequence[str] = (),
    missing: str = "mixture",
    rows: int = 65_536,
    safe_csv: bool = False,
    n_jobs: int | None = None,
    client: Any = None,
    on_rows: Callable[[int, int | None], None] | None = None,
) -> Prediction:
    """Classify the rows of a table, batch by batch; write a csv or parquet file, or a folder.

    Parameters
    ----------
    model : AdaptedModel
    paths : path, pattern, folder, or a sequence of these
        Columns are matched by name. Their order does not matter, and others are ignored.
    output : path
        A file that ends in ``.csv`` or ``.parquet``, or a folder, which gets one parquet file for
        each partition of the table: a row group of a parquet file (small ones together), or a
        whole file. Each is written atomically. The same call after an interruption writes only
        those that are not there. The columns are those of `keep`, ``label``, ``confidence`` (the
        largest probability), ``far`` (whether the row is an outlier), ``note`` and ``p_<class>``.
        Rows with a missing feature have a note.
    keep : sequence of str
        Columns to copy.
    missing : {"mixture", "drop"}
        Classify rows with missing features by the others, as the model does, or leave their
        labels empty. Labels are also empty if no feature has a value, or if the model cannot
        handle gaps.
    rows : int
        Rows per batch.
    safe_csv : bool
        In a csv file, put an apostrophe before text that a spreadsheet would run as a formula: text
        that starts with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return and is not a number.
    n_jobs, client
        Where partitions are predicted, if the output is a folder: in joblib processes, or on a
        Dask cluster (a client or the address of its scheduler). Default: in threads.
    on_rows : callable, optional
        Called after each batch with the number of rows done and the total, if known.

    Returns
    -------
    Prediction
    """
    predictor = RowPredictor.checked(model, keep, missing, rows)
    table = open_table(paths)
    table.check_encoding(encoding_of(model))
    output = Path(output)
    if is_folder(output):
        where = {"n_jobs": n_jobs, "client": client, "on_rows": on_rows}
        return Prediction.of(model, predict_folder(predictor, table, output, **where))
    if n_jobs is not None or client is not None:
        raise MixdaError(
            f"n_jobs and client (--n-jobs, --scheduler) need a folder as output, not the file "
            f"{output}; give a name without a suffix."
        )
    check_writable(output)
    if any(file.resolve() == output.resolve() for file in table.files):
        raise MixdaError(f"{output} is the file to predict; choose another name for the output.")
    tally = predictor.empty_tally()

    def records() -> Iterator[Any]:
        for record, counts in predictor.batches(table):
            yield without_formulas(record) if safe_csv and output.suffix == ".csv" else record
            tally[:] += counts
            if on_rows is not None:
                on_rows(int(tally[0]), table.n_rows)

    write_table(output, records())
    return Prediction.of(model, tally)


def without_formulas(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Put an apostrophe before names and text cells that a spreadsheet would run as formulas."""
    import pyarrow
    import pyarrow.compute as pc

    safe = {}
    for name, values in columns.items():
        values = pyarrow.array(values) if isinstance(values, np.ndarray) else values
        if pyarrow.types.is_string(values.type) or pyarrow.types.is_large_string(values.type):
            quoted = pc.binary_join_element_wise("'", values, "")
            values = pc.if_else(pc.fill_null(_is_formula(values), False), quoted, values)
        key = pyarrow.array([name])
        safe[f"'{name}" if _is_formula(key)[0].as_py() else name] = values
    return safe


def _is_formula(values: Any) -> Any:
    import pyarrow.compute as pc

    starts = pc.match_substring_regex(values, r"^[=+\-@\t\r]")
    number = pc.match_substring_regex(values, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
    return pc.and_(starts, pc.invert(number))
