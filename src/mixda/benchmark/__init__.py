"""Resumable benchmarks of methods on suites of tasks, with tables and figures as in the paper.

`run` writes one file per cell into a folder; `table`, `compare` and `figure` read the folder.
"""

from mixda.benchmark._cells import Cell, read_records
from mixda.benchmark._entries import METHODS
from mixda.benchmark._entries import parse_settings as parse_settings
from mixda.benchmark._features import FEATURES
from mixda.benchmark._figures import figure
from mixda.benchmark._runner import RunSummary, run
from mixda.benchmark._suites import ABLATIONS, SUITES
from mixda.benchmark._summary import (
    Ranking,
    ResultTable,
    Row,
    critical_difference,
    rank_accuracies,
    rank_methods,
    summarize,
)
from mixda.benchmark._tables import compare, table

Table = ResultTable  # former name, kept for scripts

__all__ = [
    "ABLATIONS",
    "FEATURES",
    "METHODS",
    "SUITES",
    "Cell",
    "Ranking",
    "ResultTable",
    "Row",
    "RunSummary",
    "Table",
    "compare",
    "critical_difference",
    "figure",
    "rank_accuracies",
    "rank_methods",
    "read_records",
    "run",
    "summarize",
    "table",
]
