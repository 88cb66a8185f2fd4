"""Which rows are far from everything a model knows: the threshold of their density."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixda._core.namespace import namespace
from mixda._core.typing import Array
from mixda.em import fit_mixture
from mixda.mixture import Mixture

_OUTLIER_RATE = 1e-3  # among samples of the mixtures that the model knows
_N_DRAWS = 10_000  # to find the threshold of that rate
_MAX_VALUES_DRAWN = 1 << 22  # at once
_N_FOLDS = 5
_MAX_FOLD_ROWS = 10_000  # in all folds


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
        namespace(largest).maximum(largest, p.log_prob(Z), out=largest)
    return largest


def held_out_rate(sources: Sequence[Mixture], target: Mixture, Z: Array, threshold: float) -> float:
    """Return the rate of outliers among rows of the target that its mixture was not fitted to.

    Five-fold cross-validation: EM starts at `target` and fits the rows of the other folds. At most
    10,000 rows are used. Without this, rows that the mixture was fitted to seem less often
    outliers than new rows of the same distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda import Mixture
    >>> from mixda.model._outliers import held_out_rate
    >>> Z = np.arange(8.0)[:, None]  # a mixture with a component for each row
    >>> p = Mixture(np.full(8, 1 / 8), Z, np.full((8, 1), 0.01))
    >>> held_out_rate([], p, Z, threshold=-5.0)
    1.0
    """
    rows = np.random.default_rng(0).permutation(len(Z))[:_MAX_FOLD_ROWS]
    if len(rows) < 2:
        return 0.0
    n_outliers = 0
    for fold in np.array_split(rows, min(_N_FOLDS, len(rows))):
        others = np.setdiff1d(rows, fold)
        floor = target.stds.min(axis=0)
        refitted = fit_mixture(Z[others], init=target, min_std=floor, max_iter=20, random_state=0)
        n_outliers += int((largest_density([*sources, refitted], Z[fold]) < threshold).sum())
    return n_outliers / len(rows)
