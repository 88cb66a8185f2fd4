"""A model in use: explain rows of files, compare them with the target, adapt further with them."""

from __future__ import annotations

from mixda._core.errors import MixdaError
from mixda._core.validation import check_positive_int
from mixda.model import AdaptedModel, Explanation
from mixda.monitoring import Drift, monitor, update
from mixda.tables import open_table
from mixda.workflow._rows import Paths, encoding_of, read_rows


def monitor_file(
    model: AdaptedModel, paths: Paths, *, reference: Paths | None = None, level: float = 0.05
) -> Drift:
    """Compare the rows of files with the target of a model, see `mixda.monitoring.monitor`.

    Parameters
    ----------
    model : AdaptedModel
    paths : path, pattern, folder, or a sequence of these
        New rows. Missing values are filled, see `AdaptedModel.gap_mixture`; rows are left out if
        the model cannot fill them.
    reference : as `paths`, optional
        The rows that the model was adapted to, if the model does not hold a summary of them.
    level : float

    Returns
    -------
    Drift
    """
    old = None if reference is None else read_rows(model, reference).X
    return monitor(model, read_rows(model, paths).X, reference=old, level=level)


def explain_file(
    model: AdaptedModel, paths: Paths, row: int = 1, against: str | None = None
) -> Explanation:
    """Explain one row of files, counted from 1; see `mixda.AdaptedModel.explain`."""
    row = check_positive_int(row, "row")
    n_before = 0
    table, encoding = open_table(paths), encoding_of(model)
    table.check_encoding(encoding)
    for batch in table.batches(encoding.names, as_written=encoding.text_names):
        X = batch.encoded(encoding)
        if row <= n_before + len(X):
            return model.explain(X[row - n_before - 1], against)
        n_before += len(X)
    raise MixdaError(f"row must be at most {n_before}, the number of rows, got {row}.")


def update_file(
    model: AdaptedModel, paths: Paths, *, share: float = 1.0, seed: int = 0
) -> AdaptedModel:
    """Adapt a model further with the rows of files, see `mixda.monitoring.update`."""
    return update(model, read_rows(model, paths).X, share=share, random_state=seed)
