"""Compare new rows with the rows that a model was adapted to: columns, classes, outliers.

Each check is a two-sample test, and together they have a false alarm with a probability of at most
`level`. No threshold depends on the data: `MIN_COLUMN_SHIFT` and `MIN_CHANGE` say what matters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.quantiles import smooth_quantiles
from mixda._core.typing import Array
from mixda._core.validation import check_number
from mixda.mixture import count_samples
from mixda.model import AdaptedModel, Reference, shares_below
from mixda.monitoring._drift import Change, Drift

MIN_COLUMN_SHIFT = 0.1  # in standard deviations; smaller ones do not matter
MIN_CHANGE = 0.05  # of a class share, of the outlier rate and of the confidence

_N_CHECKS = 4  # columns, classes, outliers, confidence: each gets the same part of the level


def monitor(model: AdaptedModel, X: Any, *, reference: Any = None, level: float = 0.05) -> Drift:
    r"""Compare new rows with the target that a model was adapted to.

    Four checks share the level equally (Bonferroni): columns whose distribution changed
    (Kolmogorov–Smirnov tests at the stored quantiles), classes whose share among the predictions
    changed, more outliers, and a lower mean confidence. Tests of several columns or classes are
    adjusted by Holm's method.

    A column also has to move by 0.1 standard deviations. The other checks test whether a change
    is larger than 5 points: the share, rate or mean of the reference is first moved by 5 points
    toward that of the new rows, then compared by Fisher's exact test (Welch's test for the
    confidence). These 5 points also absorb that the model was adapted to the reference rows, so
    that its predictions for them differ slightly from those for other rows of the same kind. The
    rate of outliers, where this effect is largest, is cross-validated (`Reference`).

    Parameters
    ----------
    model : AdaptedModel
    X : array-like of shape (n, d) or DataFrame
        New rows, unlabeled.
    reference : array-like of shape (m, d) or DataFrame, optional
        The rows that the model was adapted to. Default: the summary of them that the model holds
        (`AdaptedModel.with_reference`). If it holds none, the mixture of the target, which has the
        means and variances of these rows: Welch's test then compares the mean of each column, and
        the other checks do not run.
    level : float
        Probability of a false alarm, at most.

    Returns
    -------
    Drift

    Examples
    --------
    >>> from mixda import GMMWBT
    >>> from mixda.datasets import make_shifted_toy
    >>> from mixda.monitoring import monitor
    >>> task = make_shifted_toy(random_state=2).as_task()
    >>> estimator = GMMWBT(random_state=0).fit(task.X, task.y, sample_domain=task.sample_domain)
    >>> model = estimator.to_model().with_reference(task.X_target[::2])
    >>> monitor(model, task.X_target[1::2]).alarm
    False
    >>> drift = monitor(model, task.X_target[1::2] + [0.0, 3.0])
    >>> drift.alarm, drift.columns[0].name
    (True, 'x1')
    """
    level = check_number(level, "level", most=1)
    if reference is not None:
        model = model.with_reference(reference)
    X = model.impute(model.samples(X))
    before = model.reference
    if before is None:
        return _compare_with_mixture(model, X, level)
    now = Reference.from_rows(X, model.predict_proba(X), int(model.outliers(X).sum()))
    columns = _compare_columns(model.feature_names, before, X, level)
    classes = _compare_classes(model.classes, before, now, level)
    outliers = _compare_outliers(before, now, level)
    confidence = _compare_confidence(before, now, level)
    estimate = None if model.trust is None else model.trust.accuracy
    return Drift(
        alarm=any(change.alarm for change in (*columns, *classes, outliers, confidence)),
        columns=columns,
        classes=classes,
        outliers=outliers,
        confidence=confidence,
        accuracy_before=estimate,
        accuracy=None if estimate is None else float(np.clip(estimate + confidence.size, 0, 1)),
        level=level,
        n_rows=len(X),
        n_reference=before.n_rows,
        basis="rows",
    )


def _compare_with_mixture(model: AdaptedModel, X: Array, level: float) -> Drift:
    """Compare the means of columns with those of the target's mixture, which EM keeps."""
    from scipy.stats import ttest_ind_from_stats

    raw, n_before = model.raw_target(), model.target.n_samples
    n_before = count_samples(model.target.mixture) if n_before is None else n_before
    if raw is None or n_before is None:
        raise MixdaError(
            "the model holds no summary of the rows it was adapted to, and its mixture of them "
            "cannot replace it: it is over encoded features, or the number of rows is unknown; "
            "give these rows (reference, --reference)."
        )
    means, stds = raw.moments()
    test = ttest_ind_from_stats(
        *(means, stds, n_before), *(X.mean(axis=0), X.std(axis=0), len(X)), equal_var=False
    )
    p_values = _holm(np.nan_to_num(test.pvalue, nan=1.0), n_checks=1)
    moved = np.abs(X.mean(axis=0) - means)
    return Drift(
        alarm=bool(((p_values <= level) & (moved >= MIN_COLUMN_SHIFT * _unit(means, stds))).any()),
        columns=_changes(model.feature_names, means, stds, X, moved, p_values, level),
        level=level,
        n_rows=len(X),
        n_reference=n_before,
        basis="mixture",
    )


def _compare_columns(
    names: tuple[str, ...], before: Reference, X: Array, level: float
) -> tuple[Change, ...]:
    """Return the columns, largest change first; the statistic is that of Kolmogorov and Smirnov.

    Its maximum over the stored quantiles is at most that over all values, so its p-value is
    conservative.
    """
    from scipy.stats import kstwo

    gaps = np.abs(shares_below(X, before.quantiles) - before.shares_below).max(axis=1)
    n_effective = before.n_rows * len(X) / (before.n_rows + len(X))
    p_values = _holm(kstwo.sf(gaps, max(1, round(n_effective))))
    n_levels = before.quantiles.shape[1]
    levels = np.arange(1, n_levels + 1) / (n_levels + 1)
    moved = np.abs(smooth_quantiles(X, levels).T - before.quantiles).mean(axis=1)
    moved = np.maximum(moved, np.abs(X.mean(axis=0) - before.means))  # both are at most W1
    return _changes(names, before.means, before.stds, X, moved, p_values, level)


def _changes(
    names: tuple[str, ...],
    means: Array,
    stds: Array,
    X: Array,
    moved: Array,
    p_values: Array,
    level: float,
) -> tuple[Change, ...]:
    sizes = moved / _unit(means, stds)
    alarms = (p_values <= level) & (sizes >= MIN_COLUMN_SHIFT)
    values = np.column_stack([means, X.mean(axis=0), sizes, p_values]).tolist()
    columns = [
        Change(name, old, new, size, p, alarm)
        for name, (old, new, size, p), alarm in zip(names, values, alarms.tolist(), strict=True)
    ]
    return tuple(sorted(columns, key=lambda change: (not change.alarm, -change.size)))


def _unit(means: Array, stds: Array) -> Array:
    """Return the unit of each column: its standard deviation, if it is not constant."""
    unit: Array = np.where(stds > 0, stds, np.maximum(np.abs(means), 1.0))
    return unit


def _compare_classes(
    names: Any, before: Reference, now: Reference, level: float
) -> tuple[Change, ...]:
    counts = np.column_stack([before.class_counts, now.class_counts])
    tests = [_fisher(old, new, before.n_rows, now.n_rows) for old, new in counts]
    p_values = _holm(np.array(tests))
    changes = []
    for name, pair, p in zip(names, counts, p_values, strict=True):
        old, new = float(pair[0] / before.n_rows), float(pair[1] / now.n_rows)
        changes.append(Change(str(name), old, new, new - old, float(p), bool(p <= level)))
    return tuple(changes)


def _compare_outliers(before: Reference, now: Reference, level: float) -> Change:
    old, new = before.n_outliers / before.n_rows, now.n_outliers / now.n_rows
    p = 1.0  # only a rise matters
    if new > old:
        p = _fisher(before.n_outliers, now.n_outliers, before.n_rows, now.n_rows)
        p = min(1.0, _N_CHECKS * p)
    return Change("outliers", old, new, new - old, p, p <= level)


def _compare_confidence(before: Reference, now: Reference, level: float) -> Change:
    from scipy.stats import ttest_ind_from_stats

    old, new = before.confidence, now.confidence
    p = 1.0  # only a drop matters
    if new < old - MIN_CHANGE and min(before.n_rows, now.n_rows) > 1:
        test = ttest_ind_from_stats(
            *(old - MIN_CHANGE, before.confidence_std, before.n_rows),
            *(new, now.confidence_std, now.n_rows),
            equal_var=False,
            alternative="greater",
        )
        p = float(np.nan_to_num(min(1.0, _N_CHECKS * test.pvalue), nan=0.0))
    return Change("confidence", old, new, new - old, p, p <= level)


def _fisher(old: float, new: float, n_old: int, n_new: int) -> float:
    """Return the p-value that two rates differ by at most `MIN_CHANGE`.

    The first count is moved by this much toward the second, against the hypothesis, and both are
    compared by Fisher's exact test.
    """
    from scipy.stats import fisher_exact

    step = MIN_CHANGE * n_old
    rises = new / n_new > old / n_old
    moved = np.ceil(old + step) if rises else np.floor(old - step)
    if not 0 <= moved <= n_old or (moved / n_old >= new / n_new) == rises:
        return 1.0
    table = [[int(moved), int(n_old - moved)], [int(new), int(n_new - new)]]
    return float(fisher_exact(table)[1])


def _holm(p_values: Array, n_checks: int = _N_CHECKS) -> Array:
    """Adjust the p-values of one check by Holm's method, and for the number of checks."""
    order = np.argsort(p_values)
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.maximum.accumulate(p_values[order] * factors * n_checks)
    result = np.empty_like(adjusted)
    result[order] = np.minimum(adjusted, 1.0)
    return result
