"""Checks of samples after reading: label columns and dropped rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from mixda._core.errors import MixdaError
from mixda.tables._table import Samples


def check_samples(samples: Sequence[Samples], label: str | None) -> None:
    """Check that `label` holds classes; warn about dropped rows."""
    labels = [domain.y for domain in samples if domain.y is not None]
    n_rows = sum(len(y) for y in labels)
    n_classes = len(np.unique(np.concatenate([y.astype(str) for y in labels]))) if labels else 0
    if n_classes > max(n_rows / 2, 2):
        raise MixdaError(
            f"column {label!r} has {n_classes:,} different values in {n_rows:,} rows, so it does "
            "not hold classes; name another column, or group its values."
        )
    note_dropped(sum((Counter(domain.dropped) for domain in samples), Counter()))


def note_dropped(dropped: Mapping[str, int]) -> None:
    """Warn how many rows of which files were left out."""
    if dropped:
        shown = ", ".join(f"{n:,} of {file}" for file, n in dropped.items())
        warnings.warn(f"rows left out because a value is missing: {shown}.", stacklevel=2)
