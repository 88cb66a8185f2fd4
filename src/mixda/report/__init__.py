"""One self-contained HTML page about an adapted model: no network, no dependency of its own.

Figures are inline SVG with a text alternative and a table; the only script moves a slider.
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
) -> Path:
    """Write a report of `model` to `path`, one HTML page that needs no other file.

    The page says in words what was adapted to what, how far apart the domains are and how far to
    trust the result; then it shows the domains, the components, the transport plan, the learning
    and the settings. The same model gives the same bytes.

    Parameters
    ----------
    model : AdaptedModel
    path : str or Path
        Customarily ``.html``; written atomically.
    X : array-like or DataFrame of shape (n, d), optional
        Samples of the target: adds predicted proportions, certainty and the least certain rows.
    y : array-like of shape (n,), optional
        Their labels: adds accuracy and the confusion matrix. They change nothing else.
    title : str, optional
        Title of the page; by default "Adapting to" and the name of the target.
    row_numbers : array-like of int of shape (n,), optional
        Where the rows of `X` stand in the user's file, from 1; by default 1, 2, ….
    n_dropped : int
        Rows of that file that are not in `X`, as a value was missing.

    Returns
    -------
    Path
        Where the page is.

    Examples
    --------
    >>> from mixda.report import write_report
    >>> write_report(model, "report.html", X, y)  # doctest: +SKIP
    PosixPath('report.html')
    """
    page = render(collect_facts(model, X, y, row_numbers, n_dropped), title)
    write_atomically(path, page.encode("utf-8"))
    return Path(path)
