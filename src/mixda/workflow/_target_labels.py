"""A few labels of the target: rows to label next, written to a file, and what was filled in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.text import did_you_mean
from mixda._core.validation import check_positive_int
from mixda.model import AdaptedModel
from mixda.selection import suggest_rows
from mixda.tables import (
    SUFFIXES,
    PathArgument,
    Table,
    check_writable,
    domain_names,
    open_table,
    pyarrow,
    write_table,
)
from mixda.workflow._predictions import without_formulas
from mixda.workflow._rows import Paths, read_rows

ROW, LABEL = "row", "label"  # columns of the file to fill in

_MAX_DIFFERENT = 0.5  # of the numbers of a labeled row, from those of the row that it names
_TOLERANCE = 1e-3  # spreadsheets round numbers


def label_file(
    model: AdaptedModel,
    paths: Paths,
    output: PathArgument,
    *,
    n: int = 20,
    known: str | None = None,
) -> int:
    """Write the rows to label next as a csv file with an empty column to fill in.

    See `mixda.selection.suggest_rows` for how they are chosen. When the column is filled in, or
    some of it, the file is an argument of `adapt_files` (`target_labels`).

    Parameters
    ----------
    model : AdaptedModel
    paths : path, pattern, folder, or a sequence of these
        Rows of the target.
    output : path
        A csv or parquet file with the columns ``row`` (its number in the data, from 1), ``label``
        (empty) and those of the data. Most useful rows first.
    n : int
        Number of rows.
    known : str, optional
        Labels that are already there: a column of the data, or a file that this function wrote.
        They are not suggested again, but copied to the output.

    Returns
    -------
    int
        Number of rows to label, at most `n`.
    """
    n = check_positive_int(n, "n")
    output, table = Path(output), open_table(paths)
    check_writable(output)
    if any(file.resolve() == output.resolve() for file in table.files):
        raise MixdaError(f"{output} is the file to label; choose another name for the output.")
    samples = read_rows(model, paths)
    labels = np.full(len(samples.X), None, dtype=object)
    if known is not None:
        labels = read_target_labels(known, table, samples.rows)
    done = labels != None  # noqa: E711
    new = np.flatnonzero(~done)
    if not len(new):
        raise MixdaError(f"all rows of {table.files[0]} have a label already; give other rows.")
    new = new[suggest_rows(model, samples.X[new], n)]
    chosen = np.concatenate([np.flatnonzero(done), new])
    columns = {
        ROW: pyarrow().array(samples.rows[chosen]),
        LABEL: pyarrow().array(labels[chosen].tolist(), pyarrow().string()),
        **_copied(table, samples.rows[chosen] - 1, without=[known or ""]),
    }
    write_table(output, [without_formulas(columns) if output.suffix == ".csv" else columns])
    return len(new)


def read_target_labels(given: str, table: Table, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the label of each row as text, None where there is none.

    Parameters
    ----------
    given : str
        A column of the table, or a file with the columns ``row`` and ``label``, see `label_file`.
    table : Table
    rows : ndarray of int of shape (n,)
        Numbers of the rows in the table, from 1.
    """
    if given in table.columns:
        labels: NDArray[Any] = _as_text(_column(table, given))[rows - 1]
        return labels
    path = Path(given)
    if not path.exists():
        if path.suffix.lower() in SUFFIXES:
            raise MixdaError(f"target_labels (--target-labels): {given} does not exist.")
        raise MixdaError(
            f"target_labels (--target-labels) {given!r} is neither a column of {table.files[0]} "
            f"nor a file;{did_you_mean(given, table.columns)} mixda label writes a file to fill in."
        )
    filled = open_table(given)
    for name in (ROW, LABEL):
        if name not in filled.columns:
            raise MixdaError(
                f"{given} has no column {name!r}; a file of target labels has the columns 'row' "
                "and 'label', as mixda label writes it."
            )
    numbers, values = _row_numbers(filled, given), _as_text(_column(filled, LABEL))
    places = {int(number): place for place, number in enumerate(rows)}
    labels = np.full(len(rows), None, dtype=object)
    for number, value in zip(numbers.tolist(), values.tolist(), strict=True):
        if value is None:
            continue
        if number not in places:
            raise MixdaError(
                f"{given} labels row {number}, which is not among the {len(rows)} rows that are "
                f"used of {table.files[0]}; label rows of the same file."
            )
        labels[places[number]] = value
    _check_same_rows(filled, numbers, table, given)
    return labels


def _check_same_rows(filled: Table, numbers: NDArray[Any], table: Table, given: str) -> None:
    """Check that labeled rows are those of the table, as far as their columns of numbers tell."""
    names = [c for c in table.columns if c not in (ROW, LABEL) and c in filled.columns]
    names = [c for c in names if table.is_numeric(c) and filled.is_numeric(c)]
    if not names:
        return
    here = np.concatenate([batch.matrix(names) for batch in filled.batches(names)])
    there = np.concatenate([batch.matrix(names) for batch in table.batches(names)])
    there = there[np.minimum(numbers, len(there)) - 1]
    same = np.isclose(here, there, rtol=_TOLERANCE, atol=1e-9, equal_nan=True)
    wrong = np.flatnonzero((~same).mean(axis=1) > _MAX_DIFFERENT)
    if len(wrong):
        column = names[int((~same[wrong[0]]).argmax())]
        raise MixdaError(
            f"row {numbers[wrong[0]]} of {table.files[0]} is not the row that {given} labels "
            f"(column {column!r} differs); label rows of the same file."
        )


def _row_numbers(filled: Table, given: str) -> NDArray[Any]:
    if not filled.is_numeric(ROW):
        raise MixdaError(f"{given}: column 'row' must hold the numbers of rows, from 1.")
    values = np.concatenate([batch.matrix([ROW])[:, 0] for batch in filled.batches([ROW])])
    whole = np.isfinite(values) & (values == np.round(values)) & (values >= 1)
    if not whole.all():
        raise MixdaError(
            f"{given}: column 'row' must hold the numbers of rows, from 1, got "
            f"{values[~whole][0]:g} in row {int((~whole).argmax()) + 1}."
        )
    numbers, counts = np.unique(values.astype(np.int64), return_counts=True)
    if (counts > 1).any():
        raise MixdaError(f"{given} has row {numbers[counts > 1][0]} twice; keep one of them.")
    return values.astype(np.int64)


def _column(table: Table, name: str) -> NDArray[Any]:
    batches = table.batches([name], as_written=[name])
    return np.concatenate([batch.values(name).astype(object) for batch in batches])


def _as_text(values: NDArray[Any]) -> NDArray[Any]:
    """Return labels as text, 2.0 as "2"; None where a label is missing or blank."""
    texts = domain_names(values).astype(object)
    for place, value in enumerate(values.tolist()):
        if value is None or value != value or not str(value).strip():
            texts[place] = None
    return texts


def _copied(table: Table, rows: NDArray[Any], without: Sequence[str]) -> dict[str, Any]:
    """Return the columns of some rows as they are written in the files."""
    pa = pyarrow()
    names = [name for name in table.columns if name not in (ROW, LABEL, *without)]
    records = [batch.record for batch in table.batches(names, as_written=names)]
    return {
        name: pa.chunked_array([record.column(name) for record in records]).take(rows)
        for name in names
    }
