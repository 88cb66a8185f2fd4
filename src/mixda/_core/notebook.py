"""Display of values in notebooks: a small table of names and values as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_CELL = "text-align: left; padding: 2px 12px 2px 0; vertical-align: top"


def summary_table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Return a table with a title; rows without a value (None or "") are left out.

    Examples
    --------
    >>> from mixda._core.notebook import summary_table
    >>> "&lt;b&gt;" in summary_table("Mixture", [("classes", "<b>"), ("name", None)])
    True
    """
    shown = [(name, value) for name, value in rows if value is not None and value != ""]
    body = "".join(
        f'<tr><th scope="row" style="{_CELL}">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(str(value))}</td></tr>'
        for name, value in shown
    )
    return f"<div><strong>{escape(title)}</strong><table><tbody>{body}</tbody></table></div>"
