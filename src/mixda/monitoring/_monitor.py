"""Compare new rows with the rows that a model was adapted to: columns, classes, outliers.

All tests are two-sample tests with exact or conservative p-values, so the probability of a false
alarm is at most `level` if new rows come from the same distribution as the old ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda._core.validation import check_number
from mixda.model import AdaptedModel, Reference, decode, shares_below
from mixda.monitoring._drift import Change, Drift

_N_CHECKS = 4  # columns, classes, outliers, confidence: each gets the same part of the level
_MIN_COLUMN_SHIFT = 0.1  # in standard deviations; smaller ones do not matter
_MIN_COLUMN_SHIFT_FROM_MIXTURE = 0.3  # a mixture describes a column less well than its quantiles
_MIN_CLASS_CHANGE = 0.05
_MIN_OUTLIER_RISE = 0.05
_MIN_CONFIDENCE_DROP = 0.03
_MIN_ROWS_PER_COMPONENT = 20  # of the target, for predictions on them to be a reference
_ROWS_PER_COMPONENT = 100  # of a target whose number of rows is unknown


def monitor(model: AdaptedModel, X: Any, *, reference: Any = None, level: float = 0.05) -> Drift:
    r"""Compare new rows with the target that a model was adapted to.

    Four checks share the level equally (Bonferroni). They find columns whose distribution changed
    (Kolmogorov–Smirnov tests at the stored quantiles), classes whose share among the predictions
    changed (Fisher's exact test), more outliers (Fisher's exact test) and a lower mean confidence
    (Welch's test). Tests of several columns or classes are adjusted by Holm's method. A change
    also has to be large enough to matter: 0.1 standard deviations of a column, 5 points of a
    class or of the outlier rate, 3 points of the confidence. If the target had fewer than 20 rows
    per component of its mixture, only columns raise an alarm: the model knows these rows too well
    for its predictions on them to be compared with those on others.

    Parameters
    ----------
    model : AdaptedModel
    X : array-like of shape (n, d) or DataFrame
        New rows, unlabeled.
    reference : array-like of shape (m, d) or DataFrame, optional
        The rows that the model was adapted to. Default: the summary of them that the model holds
        (`AdaptedModel.with_reference`). If it holds none, rows drawn from its mixture of the
        target; only columns that moved by 0.3 standard deviations then raise an alarm.
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
    X = model.impute(model.samples(X))
    before, basis = _reference(model, reference)
    now = Reference.from_rows(X, model.predict_proba(X), model.outliers(X))
    least = _MIN_COLUMN_SHIFT if basis == "rows" else _MIN_COLUMN_SHIFT_FROM_MIXTURE
    columns = _compare_columns(model.feature_names, before, X, level, least)
    enough = before.n_rows >= _MIN_ROWS_PER_COMPONENT * model.target.mixture.n_components
    prediction_level = level if enough else -1.0  # no p-value is below it
    classes = _compare_classes(model.classes, before, now, prediction_level)
    outliers = _compare_outliers(before, now, prediction_level)
    confidence = _compare_confidence(before, now, prediction_level)
    changes = (*columns, *classes, outliers, confidence)
    estimate = None if model.trust is None else model.trust.accuracy
    return Drift(
        alarm=any(change.alarm for change in changes),
        columns=columns,
        classes=classes,
        outliers=outliers,
        confidence=confidence,
        accuracy_before=estimate,
        accuracy=None if estimate is None else float(np.clip(estimate + confidence.size, 0, 1)),
        level=level,
        n_rows=len(X),
        n_reference=before.n_rows,
        basis=basis,
    )


def _reference(model: AdaptedModel, rows: Any) -> tuple[Reference, str]:
    """Return what to compare with: given rows, the summary in the model, or draws of its target."""
    if rows is not None:
        model = model.with_reference(rows)
    if model.reference is not None:
        return model.reference, "rows"
    mixture = model.target.mixture
    n_rows = model.target.n_samples or _ROWS_PER_COMPONENT * mixture.n_components
    X = decode(model.encoder, len(model.feature_names), mixture.sample(n_rows, 0)[0])
    if X is None:
        raise MixdaError(
            "the model holds no summary of the rows it was adapted to, and its mixtures are over "
            "encoded features; give these rows (reference, --reference)."
        )
    drawn = model.with_reference(X).reference
    assert drawn is not None
    return drawn, "mixture"


def _compare_columns(
    names: tuple[str, ...], before: Reference, X: Array, level: float, least: float
) -> tuple[Change, ...]:
    """Return the columns, largest change first; the statistic is that of Kolmogorov and Smirnov."""
    from scipy.stats import kstwo

    gaps = np.abs(shares_below(X, before.quantiles) - before.shares_below).max(axis=1)
    n_effective = before.n_rows * len(X) / (before.n_rows + len(X))
    p_values = _holm(kstwo.sf(gaps, max(1, round(n_effective))))
    n_levels = before.quantiles.shape[1]
    levels = np.arange(1, n_levels + 1) / (n_levels + 1)
    moved = np.abs(np.quantile(X, levels, axis=0).T - before.quantiles).mean(axis=1)
    unit = np.where(before.stds > 0, before.stds, np.maximum(np.abs(before.means), 1.0))
    sizes, means = moved / unit, X.mean(axis=0)
    alarms = (p_values <= level) & (sizes >= least)
    values = np.column_stack([before.means, means, sizes, p_values]).tolist()
    columns = [
        Change(name, old, new, size, p, alarm)
        for name, (old, new, size, p), alarm in zip(names, values, alarms.tolist(), strict=True)
    ]
    return tuple(sorted(columns, key=lambda change: (not change.alarm, -change.size)))


def _compare_classes(
    names: Any, before: Reference, now: Reference, level: float
) -> tuple[Change, ...]:
    counts = np.column_stack([before.class_counts, now.class_counts])
    shares = counts / [before.n_rows, now.n_rows]
    tests = [_fisher(old, new, before.n_rows, now.n_rows, "two-sided") for old, new in counts]
    p_values = _holm(np.array(tests))
    changes = []
    for name, (old, new), p in zip(names, shares, p_values, strict=True):
        alarm = bool(p <= level and abs(new - old) >= _MIN_CLASS_CHANGE)
        changes.append(Change(str(name), float(old), float(new), float(new - old), float(p), alarm))
    return tuple(changes)


def _compare_outliers(before: Reference, now: Reference, level: float) -> Change:
    old, new = before.n_outliers / before.n_rows, now.n_outliers / now.n_rows
    p = _fisher(before.n_outliers, now.n_outliers, before.n_rows, now.n_rows, "less")
    p = min(1.0, _N_CHECKS * p)
    alarm = p <= level and new - old >= _MIN_OUTLIER_RISE
    return Change("outliers", old, new, new - old, p, alarm)


def _compare_confidence(before: Reference, now: Reference, level: float) -> Change:
    from scipy.stats import ttest_ind_from_stats

    old, new = before.confidence, now.confidence
    p = 1.0
    if new < old and min(before.n_rows, now.n_rows) > 1:
        test = ttest_ind_from_stats(
            *(old, before.confidence_std, before.n_rows),
            *(new, now.confidence_std, now.n_rows),
            equal_var=False,
            alternative="greater",
        )
        p = float(np.nan_to_num(min(1.0, _N_CHECKS * test.pvalue), nan=0.0))
    alarm = p <= level and old - new >= _MIN_CONFIDENCE_DROP
    return Change("confidence", old, new, new - old, p, alarm)


def _fisher(old: float, new: float, n_old: int, n_new: int, alternative: str) -> float:
    """Return the p-value that two counts out of totals have the same rate."""
    from scipy.stats import fisher_exact

    table = [[int(old), int(n_old - old)], [int(new), int(n_new - new)]]
    return float(fisher_exact(table, alternative=alternative)[1])


def _holm(p_values: Array) -> Array:
    """Adjust the p-values of one check by Holm's method, and for the number of checks."""
    order = np.argsort(p_values)
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.maximum.accumulate(p_values[order] * factors * _N_CHECKS)
    result = np.empty_like(adjusted)
    result[order] = np.minimum(adjusted, 1.0)
    return result
