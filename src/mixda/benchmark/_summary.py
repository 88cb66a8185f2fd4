"""What the cells of a run say: means and deviations, ranks, and whether differences are real.

Pure functions of the records that `read_records` returns; drawing and printing are elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._validation import Array, check_choice
from mixda.benchmark._cells import Record
from mixda.benchmark._methods import METHODS

SCORES = ("both", "map", "head")
_ORDER = {name: i for i, name in enumerate(METHODS)}


@dataclass(frozen=True)
class Row:
    """One line of a table. Accuracies are in %; NaN where there is none.

    Attributes
    ----------
    name : str
        The method, its settings if they are not the defaults, and how it decides.
    method : str
    values : ndarray of shape (n_targets, n_seeds)
    failed : ndarray of shape (n_targets,)
        Cells that failed.
    seconds : float
        Mean processor time of a fit.
    oracle : bool
    """

    name: str
    method: str
    values: Array
    failed: NDArray[np.int64]
    seconds: float
    oracle: bool

    @property
    def means(self) -> Array:
        """Mean over the seeds that are there, per target, shape (n_targets,)."""
        return _nan(np.nanmean, self.values)

    @property
    def stds(self) -> Array:
        """Standard deviation over the seeds that are there (divided by their number)."""
        return _nan(np.nanstd, self.values)

    @property
    def average(self) -> float:
        """Mean over the targets, NaN unless there is a result for each of them."""
        return float(self.means.mean())


@dataclass(frozen=True)
class Table:
    """All methods on the same data with the same features.

    Attributes
    ----------
    suite, features, rows
        As in `Cell`.
    targets : tuple of str
    n_seeds : int
    lines : tuple of Row
    records : tuple of dict
        The cells it was made from.
    """

    suite: str
    features: str
    rows: int | None
    targets: tuple[str, ...]
    n_seeds: int
    lines: tuple[Row, ...]
    records: tuple[Record, ...]

    @property
    def source_only(self) -> Row | None:
        """The line that every other has to beat."""
        plain = [row for row in self.lines if row.method == "SourceOnly"]
        return plain[0] if plain else None


@dataclass(frozen=True)
class Ranking:
    """Average ranks and the tests of Friedman and Nemenyi.

    Attributes
    ----------
    names : tuple of str
        The methods that have a result on every target; upper bounds are left out.
    ranks : ndarray of shape (k,)
        Average over the targets; 1 is best, ties share.
    n_targets : int
    statistic, p_value : float
        Friedman's chi-squared; NaN with fewer than three methods or two targets.
    critical_difference : float
        Of Nemenyi's test at 5 %.
    """

    names: tuple[str, ...]
    ranks: Array
    n_targets: int
    statistic: float
    p_value: float
    critical_difference: float


def summarize(records: Sequence[Record], score: str = "both") -> list[Table]:
    """Gather the cells of a run into one table per suite and kind of features.

    Parameters
    ----------
    records : sequence of dict
        See `read_records`.
    score : {"both", "map", "head"}
        Which decisions of the mixture methods are lines: maximum a posteriori, the classifier
        trained on samples of the mixture, or each its own line.

    Returns
    -------
    list of Table
        Without the ablations, which are figures.
    """
    check_choice(score, "score", SCORES)
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        cell = record["cell"]
        if cell["suite"] == cell["data"]:
            key = (cell["suite"], cell["features"], cell["rows"] or 0, cell["fingerprint"])
            groups.setdefault(key, []).append(record)
    return [_table(groups[key], score) for key in sorted(groups)]


def rank_methods(tables: Sequence[Table]) -> Ranking:
    r"""Rank the methods on every target and test whether they differ.

    .. math:: \mathrm{CD} = q_{0.05} \sqrt{\frac{k (k + 1)}{6 N}}

    for k methods on N targets [1]_. Targets of several suites count alike.

    References
    ----------
    .. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from mixda.benchmark import rank_accuracies
    >>> ranking = rank_accuracies(["a", "b", "c"], np.array([[9, 8, 7], [9, 8, 8], [5, 4, 3.0]]))
    >>> ranking.ranks.round(2), round(ranking.p_value, 3)
    (array([1.  , 2.17, 2.83]), 0.06)
    """
    scores: dict[str, list[Array]] = {}
    for table in tables:
        for row in table.lines:
            if not row.oracle:
                scores.setdefault(row.name, []).append(row.means)
    n_targets = sum(len(table.targets) for table in tables)
    joined = {name: np.concatenate(parts) for name, parts in scores.items()}
    whole = [n for n, x in joined.items() if len(x) == n_targets and not np.isnan(x).any()]
    columns = [joined[name] for name in whole]
    return rank_accuracies(whole, np.array(columns).reshape(len(whole), n_targets).T)


def rank_accuracies(names: Sequence[str], accuracies: Array) -> Ranking:
    """Rank methods given their accuracies, shape (n_targets, k); see `rank_methods`."""
    from scipy.stats import friedmanchisquare, rankdata

    n_targets, k = accuracies.shape
    rounded = np.round(accuracies, 9)  # equal scores, summed in another order, are equal
    ranks = rankdata(-rounded, axis=1).mean(axis=0) if n_targets else np.full(k, np.nan)
    statistic = p_value = difference = np.nan
    if k >= 3 and n_targets >= 2:
        with np.errstate(invalid="ignore", divide="ignore"):  # all equal: no statistic
            statistic, p_value = friedmanchisquare(*rounded.T)
        difference = critical_difference(k, n_targets)
    return Ranking(
        tuple(names), np.atleast_1d(ranks), n_targets, float(statistic), float(p_value), difference
    )


def critical_difference(n_methods: int, n_targets: int, level: float = 0.05) -> float:
    """Nemenyi's critical difference of average ranks.

    Examples
    --------
    >>> from mixda.benchmark import critical_difference
    >>> round(critical_difference(4, 14), 2)  # the example of Demšar (2006), section 3.2.2
    1.25
    """
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1.0 - level, n_methods, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_targets)))


def cliques(ranking: Ranking) -> list[tuple[int, int]]:
    """Return the longest runs (first, last) of methods in order of rank that do not differ."""
    ordered = np.sort(ranking.ranks)
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ordered):
        last = int(np.flatnonzero(ordered <= rank + ranking.critical_difference)[-1])
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def line_name(cell: Mapping[str, Any], decision: str = "") -> str:
    """Name a line: the method, settings that are not the defaults, how it decides.

    Examples
    --------
    >>> from mixda.benchmark._summary import line_name
    >>> line_name({"method": "GMMDaDiL", "settings": {"n_atoms": 4}}, "MAP")
    'GMMDaDiL n_atoms=4 (MAP)'
    """
    settings = "".join(f" {name}={value}" for name, value in sorted(cell["settings"].items()))
    return str(cell["method"]) + settings + (f" ({decision})" if decision else "")


def _table(records: Sequence[Record], score: str) -> Table:
    cell = records[0]["cell"]
    targets = _in_order(record["cell"]["target"] for record in records)
    n_seeds = 1 + max(record["cell"]["seed"] for record in records)
    lines: dict[str, list[Record]] = {}
    for record in records:
        lines.setdefault(line_name(record["cell"]) + record["cell"]["head"], []).append(record)
    rows = []
    for members in lines.values():
        for field, decision in _decisions(members, score):
            rows.append(_row(members, field, decision, targets, n_seeds))
    rows.sort(key=lambda row: (_ORDER[row.method], row.name))
    suite, features, kept = cell["suite"], cell["features"], cell["rows"]
    return Table(suite, features, kept, targets, n_seeds, tuple(rows), tuple(records))


def _decisions(members: Sequence[Record], score: str) -> list[tuple[str, str]]:
    """Return (field of the record, word in the line's name) of the lines of one method."""
    if not any("head_accuracy" in record for record in members):
        return [("accuracy", "")]
    both = [("accuracy", "MAP"), ("head_accuracy", members[0]["cell"]["head"])]
    return {"both": both, "map": both[:1], "head": both[1:]}[score]


def _row(
    members: Sequence[Record], field: str, decision: str, targets: Sequence[str], n_seeds: int
) -> Row:
    values = np.full((len(targets), n_seeds), np.nan)
    failed = np.zeros(len(targets), dtype=np.int64)
    for record in members:
        place = targets.index(record["cell"]["target"]), record["cell"]["seed"]
        if "error" in record:
            failed[place[0]] += 1
        else:
            values[place] = 100.0 * record[field]
    seconds = [record["fit_cpu_seconds"] for record in members if "error" not in record]
    cell = members[0]["cell"]
    return Row(
        name=line_name(cell, decision),
        method=cell["method"],
        values=values,
        failed=failed,
        seconds=float(np.mean(seconds)) if seconds else np.nan,
        oracle=METHODS[cell["method"]].oracle,
    )


def _in_order(names: Any) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def _nan(function: Any, values: Array) -> Array:
    """Reduce over seeds, NaN (without a warning) where there are none."""
    empty = np.asarray(np.isnan(values).all(axis=1))
    result: Array = function(np.where(empty[:, None], 0.0, values), axis=1)
    return np.where(empty, np.nan, result)
