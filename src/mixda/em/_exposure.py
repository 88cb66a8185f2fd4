"""Merge components that summarize too few rows, so that no mean of a mixture is a row.

The effective count of a component is the number of rows that its mean averages. Merging adds up
the sufficient statistics of two components, so it keeps the mean and the variance of all samples.
"""

from __future__ import annotations

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda.chunks import GroupKey
from mixda.em._moments import Moments
from mixda.em._search import MixtureProblem
from mixda.em._steps import Parameters
from mixda.mixture import Mixture


def merge_exposed(
    parameters: Parameters,
    problem: MixtureProblem,
    moments: Moments,
    domain: Moments,
    min_rows: int,
) -> tuple[Mixture, float]:
    """Return the mixture and the smallest effective count of its components.

    Components are merged until each count is at least `min_rows`, or until one component is left;
    with ``min_rows=1`` nothing is merged.

    The one with the smallest count is merged with the one that is closest in W2. The effective
    count is a lower bound of the number of rows: the mass of the component divided by the weight
    of the heaviest row. A component whose rows coincide in all features counts as one row; a
    feature without any value in the group does not tell rows apart.

    Where values are missing, the mean of a feature averages fewer rows. If these are fewer than
    `min_rows`, it becomes the mean of the whole group, or else that of its domain.
    """
    weights = np.exp(parameters.log_weights)
    weights = weights / weights.sum()
    means, stds = parameters.means, parameters.stds
    variances = stds**2 if parameters.variances is None else parameters.variances
    has_value = moments.observed > 0
    shares = parameters.observed
    shares = np.ones_like(means) if shares is None else np.where(has_value, shares, 1.0)
    rows = moments.weight / moments.heaviest
    counts = _effective_counts(rows * weights, variances * has_value, problem)
    while min_rows > 1 and len(weights) > 1 and counts.min() < min_rows:
        i = int(counts.argmin())
        j = _closest(i, means / problem.unit, stds / problem.unit)
        weights, means, variances, shares = _merge_pair(i, j, weights, means, variances, shares)
        stds = np.delete(stds, j, axis=0)
        merged = i - (j < i)
        stds[merged] = np.sqrt(np.maximum(variances[merged], problem.floor**2))
        counts = _effective_counts(rows * weights, variances * has_value, problem)
    observed = rows * weights[:, None] * shares
    means = means + problem.center
    for pooled in (moments, domain) if min_rows > 1 else ():
        enough = pooled.observed / pooled.heaviest
        thin = (observed < min(min_rows, counts.min()) - 1e-9) & (enough > observed)
        means = np.where(thin, pooled.mean, means)
        stds = np.where(thin, np.maximum(pooled.spread, problem.floor), stds)
        observed = np.where(thin, enough, observed)
    mixture = Mixture(weights / weights.sum(), means, stds)
    return mixture, float(min(counts.min(), observed.min()))


def check_exposure(
    key: GroupKey, problem: MixtureProblem, moments: Moments, domain: Moments, min_rows: int
) -> None:
    """Refuse a group that even one component would expose: too few rows or values, or equal ones.

    A feature of few values in the group takes those of the whole domain.
    """
    rows = np.array([moments.weight / moments.heaviest])
    count = _effective_counts(rows, moments.spread[None] ** 2, problem).item()
    values = domain.observed / domain.heaviest
    if min_rows == 1 or min(count, values.min()) >= min_rows:
        return
    name, label = key
    where = "" if name is None else f" in domain {str(name)!r}"
    if count >= min_rows:
        what = f"feature {values.argmin()} has {values.min():g} value(s){where}"
    else:
        group = "the data have" if label is None else f"class {str(label)!r} has"
        kind = "rows that are equal or nearly so" if count < rows else "row(s)"
        what = f"{group} {moments.n} {kind}{where}"
    raise MixdaError(
        f"{what}, which the mixture would expose: every component must average at least "
        f"min_component_rows={min_rows} different rows (--min-rows-per-component). Add rows, leave "
        "them out, or allow it with allow_exposed_rows=True (--allow-exposed-rows)."
    )


def _effective_counts(counts: Array, variances: Array, problem: MixtureProblem) -> Array:
    coincident = (variances <= problem.negligible_std**2).all(axis=1)
    return np.where(coincident, np.minimum(counts, 1.0), counts)


def _closest(i: int, means: Array, stds: Array) -> int:
    """Return the component that is closest to component i in the Wasserstein distance (eq. 6)."""
    distances = ((means - means[i]) ** 2).sum(axis=1) + ((stds - stds[i]) ** 2).sum(axis=1)
    distances[i] = np.inf
    return int(distances.argmin())


def _merge_pair(
    i: int, j: int, weights: Array, means: Array, variances: Array, shares: Array
) -> tuple[Array, ...]:
    """Replace components i and j by one with their total mass, mean, variance and share."""
    total = weights[i] + weights[j]
    p, q = weights[i] / total, weights[j] / total
    mean = p * means[i] + q * means[j]
    variance = p * variances[i] + q * variances[j] + p * q * (means[i] - means[j]) ** 2
    share = p * shares[i] + q * shares[j]
    merged = []
    both = ((weights, total), (means, mean), (variances, variance), (shares, share))
    for values, value in both:
        values = values.copy()
        values[i] = value
        merged.append(np.delete(values, j, axis=0))
    return tuple(merged)
