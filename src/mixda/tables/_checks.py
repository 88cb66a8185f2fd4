"""Checks of samples that were read: classes that are none, rows left out, row numbers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from mixda._core.errors import MixdaError
from mixda.tables._table import Samples


def check_samples(samples: Sequence[Samples], label: str | None) -> None:
    """Refuse classes that are none; note rows left out and features that look like row numbers."""
    classes = [part.y for part in samples if part.y is not None]
    n_rows = sum(len(y) for y in classes)
    n_classes = len(np.unique(np.concatenate([y.astype(str) for y in classes]))) if classes else 0
    if n_classes > max(n_rows / 2, 2):
        raise MixdaError(
            f"column {label!r} has {n_classes:,} different values in {n_rows:,} rows, so it does "
            "not hold classes; name another column, or group its values."
        )
    note_dropped(sum((Counter(part.dropped) for part in samples), Counter()))
    counting = [name for part in samples for name in _counting(part)]
    for name in dict.fromkeys(counting):
        warnings.warn(
            f"column {name!r} is a feature and goes up by one from row to row, as an id does; "
            "leave it out if it is one (drop, --drop).",
            stacklevel=2,
        )


def note_dropped(dropped: Mapping[str, int]) -> None:
    """Say how many rows of which file were left out."""
    if dropped:
        shown = ", ".join(f"{n:,} of {file}" for file, n in dropped.items())
        warnings.warn(f"rows left out because a value is missing: {shown}.", stacklevel=2)


def _counting(samples: Samples) -> list[str]:
    """Features that are whole numbers and go up by one from row to row."""
    if len(samples.X) < 10:
        return []
    offsets = samples.X - samples.rows[:, None]
    same = (offsets == np.round(offsets[0])).all(axis=0)
    return [name for name, flag in zip(samples.feature_names, same, strict=True) if flag]
