"""A self-contained HTML report of an adapted model, without network access or dependencies.

Figures are inline SVG, each with a text alternative and a table. The only script moves a slider.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixda._core.atomic import write_atomically
from mixda.model import AdaptedModel
from mixda.report._facts import collect_facts
from mixda.report._page import render

__all__ = ["write_report"]


def write_report(
    model: AdaptedModel,
    path: str | Path,
    X: Any = None,
    y: Any = None,
    title: str | None = None,
    *,
    row_numbers: Any = None,
    n_dropped: int = 0,
    n_rows: int | None = None,
) -> Path:
    """Write a report of `model` as a single, self-contained HTML page.

    The page says what was adapted, how far to trust it and what to do next. It then shows the
    predictions, why some rows got their class, which features moved between the sources and the
    target, the domains, and, if the model holds a summary of the target
    (`AdaptedModel.with_reference`), how the given samples differ from it. Components, transport,
    training and settings are in a fold for experts, which is not printed unless it is open. The
    output is deterministic.

    Parameters
    ----------
    model : AdaptedModel
    path : str or Path
        Output file, usually ``.html``. It is written atomically.
    X : array-like or DataFrame of shape (n, d), optional
        Samples to predict. Adds predicted proportions, confidence, the least certain rows,
        explanations of four rows (without their values), and the comparison with the target.
    y : array-like of shape (n,), optional
        Their labels. Adds accuracy and the confusion matrix; the model does not use them.
    title : str, optional
        Title of the page; by default "Adaptation to" and the name of the target.
    row_numbers : array-like of int of shape (n,), optional
        Numbers of the rows of `X` in the user's file, from 1; by default 1, 2, ….
    n_dropped : int
        Number of rows of that file that are not in `X` because of missing values.
    n_rows : int, optional
        Number of rows of that file, if `X` is only a sample of them.

    Returns
    -------
    Path
        Path of the page.

    Examples
    --------
    >>> from mixda.report import write_report
    >>> write_report(model, "report.html", X, y)  # doctest: +SKIP
    PosixPath('report.html')
    """
    page = render(collect_facts(model, X, y, row_numbers, n_dropped, n_rows), title)
    write_atomically(path, page.encode("utf-8"))
    return Path(path)
