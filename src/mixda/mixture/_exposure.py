"""How many rows the means of a mixture average, as `info` records it.

A mean of a single row is that row. So files should hold only means of several rows.
"""

from __future__ import annotations

from typing import Any, Protocol

from mixda._core.errors import MixdaError

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


def check_exposed(
    mixture: HasInfo, allow: bool, what: str = "the mixture", min_rows: int = MIN_COMPONENT_ROWS
) -> None:
    """Refuse to write means that are known to average very few rows, unless that is allowed."""
    count = smallest_component(mixture)
    if allow or count is None or count >= min_rows:
        return
    raise MixdaError(
        f"a component of {what} averages {count:g} row(s), which the file would expose: every mean "
        f"must average at least {min_rows} different rows. Fit with "
        f"min_component_rows={min_rows} (--min-rows-per-component), leave out classes with fewer "
        "rows, or allow it with allow_exposed_rows=True (--allow-exposed-rows)."
    )
