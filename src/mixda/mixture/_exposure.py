"""How many rows the means of a mixture average, as `info` records it.

A mean of a single row is that row. So files should hold only means of several rows.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Protocol

MIN_COMPONENT_ROWS = 5  # that every mean in a file should average
SMALLEST_COMPONENT = "smallest_component"  # key in `info`: the smallest of these numbers


class HasInfo(Protocol):
    """A mixture, as far as this module is concerned."""

    @property
    def info(self) -> dict[str, Any]: ...  # pragma: no cover


def smallest_component(mixture: HasInfo) -> float | None:
    """Return the smallest number of rows that a mean averages, or None if it is unknown.

    Examples
    --------
    >>> from mixda import fit_mixture
    >>> from mixda.mixture import smallest_component
    >>> smallest_component(fit_mixture([[0.0], [1.0], [9.0]], 2, random_state=0))
    1.0
    """
    count = mixture.info.get(SMALLEST_COMPONENT)
    if isinstance(count, bool) or not isinstance(count, (int, float)) or count < 0:
        return None
    return float(count)


def is_exposed(mixture: HasInfo) -> bool:
    """Whether a mean is known to average fewer rows than files should hold."""
    count = smallest_component(mixture)
    return count is not None and count < MIN_COMPONENT_ROWS


def warn_if_exposed(mixture: HasInfo, path: str | Path, what: str = "the mixture") -> None:
    """Warn that a file will hold means of very few rows."""
    if is_exposed(mixture):
        warnings.warn(
            f"{path} exposes rows: a component of {what} averages {smallest_component(mixture):g} "
            f"row(s). Fit with min_component_rows={MIN_COMPONENT_ROWS} if that matters.",
            stacklevel=3,
        )
