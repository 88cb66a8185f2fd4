"""Checks of samples after reading: label columns, dropped rows, row numbers among the features."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from mixda._core.errors import MixdaError
from mixda.tables._table import Samples

_MIN_ROWS_TO_DETECT_COUNTER = 10


def check_samples(samples: Sequence[Samples], label: str | None) -> None:
    """Check that `label` holds classes; warn about dropped rows and features that count rows."""
    labels = [domain.y for domain in samples if domain.y is not None]
    n_rows = sum(len(y) for y in labels)
    n_classes = len(np.unique(np.concatenate([y.astype(str) for y in labels]))) if labels else 0
    if n_classes > max(n_rows / 2, 2):
        raise MixdaError(
            f"column {label!r} has {n_classes:,} different values in {n_rows:,} rows, so it does "
            "not hold classes; name another column, or group its values."
        )
    note_dropped(sum((Counter(domain.dropped) for domain in samples), Counter()))
    counters = [name for domain in samples for name in _row_counters(domain)]
    for name in dict.fromkeys(counters):
        warnings.warn(
            f"column {name!r} is a feature and goes up by one in every row, like an identifier; "
            "if it is one, leave it out (drop, --drop).",
            stacklevel=2,
        )


def note_dropped(dropped: Mapping[str, int]) -> None:
    """Warn how many rows of which files were left out."""
    if dropped:
        shown = ", ".join(f"{n:,} of {file}" for file, n in dropped.items())
        warnings.warn(f"rows left out because a value is missing: {shown}.", stacklevel=2)


def _row_counters(samples: Samples) -> list[str]:
    """Return the features that are integers and go up by one in every row."""
    if len(samples.X) < _MIN_ROWS_TO_DETECT_COUNTER:
        return []
    offsets = samples.X - samples.rows[:, None]
    counts = (offsets == np.round(offsets[0])).all(axis=0)
    return [name for name, flag in zip(samples.feature_names, counts, strict=True) if flag]
