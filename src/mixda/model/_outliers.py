"""Which rows are far from everything a model knows: the threshold of their density."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixda._core.typing import Array
from mixda.mixture import Mixture

_OUTLIER_RATE = 1e-3  # among samples of the mixtures that the model knows
_N_DRAWS = 10_000  # to find the threshold of that rate
_MAX_VALUES_DRAWN = 1 << 22  # at once


def outlier_threshold(mixtures: Sequence[Mixture]) -> float:
    """Return the log-density below which one in a thousand samples of the mixtures falls.

    The density is the largest among the mixtures. Equal numbers of samples are drawn from all
    mixtures, with a fixed seed.

    Examples
    --------
    >>> from mixda import Mixture
    >>> from mixda.model import outlier_threshold
    >>> round(outlier_threshold([Mixture([1.0], [[0.0]], [[1.0]])]))  # 3.3 standard deviations
    -6
    """
    rng = np.random.default_rng(0)
    n = -(-_N_DRAWS // len(mixtures))
    densities = []
    for p in mixtures:
        for rows in np.array_split(np.arange(n), -(-n * p.n_features // _MAX_VALUES_DRAWN)):
            densities.append(largest_density(mixtures, p.sample(max(1, len(rows)), rng)[0]))
    return float(np.quantile(np.concatenate(densities), _OUTLIER_RATE))


def largest_density(mixtures: Sequence[Mixture], Z: Array) -> Array:
    """Return the largest log-density of each row among the mixtures, shape (n,)."""
    largest = mixtures[0].log_prob(Z)
    for p in mixtures[1:]:
        np.maximum(largest, p.log_prob(Z), out=largest)
    return largest
