"""Summaries of a run: means, standard deviations, ranks and tests of significance.

Pure functions of the records that `read_records` returns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixda._core.typing import Array
from mixda._core.validation import check_choice
from mixda.benchmark._cells import Record, digest
from mixda.benchmark._entries import HEADS, METHODS
from mixda.benchmark._features import FIRST_RECIPES

SCORES = ("both", "map", "head")
_ORDER = {name: i for i, name in enumerate(METHODS)}


@dataclass(frozen=True)
class Row:
    """A row of a table. Accuracies are in %, NaN where missing.

    Attributes
    ----------
    name : str
        The method, its settings that differ from the defaults, and its decision rule.
    method : str
    values : ndarray of shape (n_targets, n_seeds)
    failed : ndarray of shape (n_targets,)
        Number of failed cells.
    seconds : float
        Mean CPU time of a fit.
    oracle : bool
    ranked : bool
        Whether the row represents its method in ranks and tests; one row per method does.
    """

    name: str
    method: str
    values: Array
    failed: NDArray[np.int64]
    seconds: float
    oracle: bool
    ranked: bool = True

    @property
    def means(self) -> Array:
        """Mean over the available seeds, shape (n_targets,)."""
        return _nan(np.nanmean, self.values)

    @property
    def stds(self) -> Array:
        """Standard deviation over the available seeds (without Bessel's correction)."""
        return _nan(np.nanstd, self.values)

    @property
    def average(self) -> float:
        """Mean over the targets; NaN if a target has no result."""
        return float(self.means.mean())


@dataclass(frozen=True)
class ResultTable:
    """All methods on the same data with the same features.

    Attributes
    ----------
    suite, features, rows
        As in `Cell`.
    targets : tuple of str
        In the order of the data's domains.
    n_seeds : int
    lines : tuple of Row
    records : tuple of dict
        The cells of the table.
    n_outdated : int
        Number of cells omitted because newer cells of their method have other defaults.
    """

    suite: str
    features: str
    rows: int | None
    targets: tuple[str, ...]
    n_seeds: int
    lines: tuple[Row, ...]
    records: tuple[Record, ...]
    n_outdated: int = 0

    @property
    def source_only(self) -> Row | None:
        """The row of the source-only baseline."""
        plain = [row for row in self.lines if row.method == "SourceOnly"]
        return plain[0] if plain else None


@dataclass(frozen=True)
class Ranking:
    """Average ranks and the tests of Friedman and Nemenyi.

    Attributes
    ----------
    names : tuple of str
        Methods with a result on every target, one row each, without upper bounds.
    ranks : ndarray of shape (k,)
        Average over the targets; 1 is best, ties get average ranks.
    n_targets : int
    statistic, p_value : float
        Friedman's chi-squared; NaN with fewer than three methods or two targets.
    critical_difference : float
        Critical difference of Nemenyi's test at 5 %.
    """

    names: tuple[str, ...]
    ranks: Array
    n_targets: int
    statistic: float
    p_value: float
    critical_difference: float


def summarize(records: Sequence[Record], score: str = "both") -> list[ResultTable]:
    """Gather the cells of a run into one table per suite and kind of features.

    Parameters
    ----------
    records : sequence of dict
        See `read_records`.
    score : {"both", "map", "head"}
        Which decisions of the mixture methods are lines: maximum a posteriori, the classifier
        trained on samples of the mixture (the decision that the paper reports), or each its own
        line. Unless it is "map", the classifier's line is the one that is ranked.

    Returns
    -------
    list of ResultTable
        Without the ablations, which are figures.
    """
    check_choice(score, "score", SCORES)
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        cell = record["cell"]
        if cell["suite"] == cell["data"]:
            groups.setdefault((cell["suite"], *samples_key(cell)), []).append(record)
    return [_table(groups[key], score) for key in sorted(groups)]


def samples_key(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what must be equal for results to be comparable: the features of a task."""
    recipe = cell.get("recipe") or FIRST_RECIPES.get(cell["features"], "1")
    return cell["data"], cell["features"], cell["rows"] or 0, cell["fingerprint"], recipe


def newest(records: Sequence[Record]) -> list[Record]:
    """Omit cells of a method whose defaults have changed since; keep the newest."""
    latest: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: str(record.get("date", ""))):
        latest[line_name(record["cell"])] = record
    wanted = {name: _parameters(record) for name, record in latest.items()}
    return [r for r in records if _parameters(r) == wanted[line_name(r["cell"])]]


def one_per_suite(tables: Sequence[ResultTable]) -> list[ResultTable]:
    """Return one table per suite, the one with the most rows per domain, then the most cells."""
    best: dict[str, ResultTable] = {}
    for table in tables:
        size = table.rows or np.inf, len(table.records)
        other = best.get(table.suite)
        if other is None or size > (other.rows or np.inf, len(other.records)):
            best[table.suite] = table
    return list(best.values())


def rank_methods(tables: Sequence[ResultTable]) -> Ranking:
    r"""Rank the methods on each target and test whether they differ.

    .. math:: \mathrm{CD} = q_{0.05} \sqrt{\frac{k (k + 1)}{6 N}}

    for k methods on N targets [1]_. Targets of several suites count alike. A method counts once:
    lines that are not `Row.ranked` are left out, as are upper bounds.

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
            if row.ranked and not row.oracle:
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
    rounded = np.round(accuracies, 9)  # ties must survive rounding errors
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
    """Compute the critical difference of average ranks (Nemenyi).

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
    """Return the maximal groups (first, last) of methods, sorted by rank, that do not differ."""
    ordered = np.sort(ranking.ranks)
    groups: list[tuple[int, int]] = []
    for first, rank in enumerate(ordered):
        last = int(np.flatnonzero(ordered <= rank + ranking.critical_difference)[-1])
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


def line_name(cell: Mapping[str, Any], decision: str = "") -> str:
    """Return the name of a row: method, settings that differ from the defaults, decision rule.

    Examples
    --------
    >>> from mixda.benchmark._summary import line_name
    >>> line_name({"method": "GMMDaDiL", "settings": {"n_atoms": 4}}, "MAP")
    'GMMDaDiL n_atoms=4 (MAP)'
    """
    settings = "".join(f" {name}={value}" for name, value in sorted(cell["settings"].items()))
    return str(cell["method"]) + settings + (f" ({decision})" if decision else "")


def _table(all_records: Sequence[Record], score: str) -> ResultTable:
    records = newest(all_records)
    cell = records[0]["cell"]
    targets = _in_order(records)
    n_seeds = 1 + max(record["cell"]["seed"] for record in records)
    lines: dict[str, list[Record]] = {}
    for record in records:
        lines.setdefault(line_name(record["cell"]), []).append(record)
    rows = [
        _row(members, decision, targets, n_seeds)
        for members in lines.values()
        for decision in _decisions(members, score)
    ]
    rows.sort(key=lambda row: (_ORDER[row.method], row.name))
    suite, features, kept = cell["suite"], cell["features"], cell["rows"]
    n_outdated = len(all_records) - len(records)
    return ResultTable(
        suite, features, kept, targets, n_seeds, tuple(rows), tuple(records), n_outdated
    )


class _Decision(NamedTuple):
    """Decision rule of a row: the field of the records and its name."""

    field: str
    word: str
    ranked: bool
    head: str | None = None  # only cells with this head count


def _decisions(members: Sequence[Record], score: str) -> list[_Decision]:
    if not any("head_accuracy" in record for record in members):
        return [_Decision("accuracy", "", True)]
    used = {record["cell"]["head"] for record in members}
    heads = [head for head in HEADS if head in used]
    both = [_Decision("accuracy", "MAP", score == "map")]
    both += [_Decision("head_accuracy", head, head == heads[0], head) for head in heads]
    return {"both": both, "map": both[:1], "head": both[1:]}[score]


def _row(
    members: Sequence[Record], decision: _Decision, targets: Sequence[str], n_seeds: int
) -> Row:
    values = np.full((len(targets), n_seeds), np.nan)
    failed = np.zeros((len(targets), n_seeds), dtype=bool)
    seconds = []
    for record in members:
        cell = record["cell"]
        if decision.head not in (None, cell["head"]):
            continue
        place = targets.index(cell["target"]), cell["seed"]
        if "error" in record:
            failed[place] = True
        else:
            values[place] = 100.0 * record.get(decision.field, np.nan)
            seconds.append(record["fit_cpu_seconds"])
    cell = members[0]["cell"]
    return Row(
        name=line_name(cell, decision.word),
        method=cell["method"],
        values=values,
        failed=(failed & np.isnan(values)).sum(axis=1),  # it may have worked with another head
        seconds=float(np.mean(seconds)) if seconds else np.nan,
        oracle=METHODS[cell["method"]].oracle,
        ranked=decision.ranked,
    )


def _parameters(record: Record) -> str:
    return digest(record["cell"].get("parameters", {}))


def _in_order(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the targets in the order of the data, or in natural order for older cells."""
    order: list[str] = next((record["domains"] for record in records if "domains" in record), [])
    targets = {record["cell"]["target"] for record in records}
    rest = sorted(targets - set(order), key=_natural)
    return (*(name for name in order if name in targets), *rest)


def _natural(name: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", name)  # every second one is a number
    return [(int(part), "") if i % 2 else (-1, part) for i, part in enumerate(parts)]


def _nan(function: Any, values: Array) -> Array:
    """Reduce over seeds; NaN without a warning where there are none."""
    empty = np.asarray(np.isnan(values).all(axis=1))
    result: Array = function(np.where(empty[:, None], 0.0, values), axis=1)
    return np.where(empty, np.nan, result)
