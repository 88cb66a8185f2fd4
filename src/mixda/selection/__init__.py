"""Choices without target labels: scores, `AutoMSDA`, and how far to trust the result."""

from mixda.model import Trust
from mixda.selection._labels import suggest_rows
from mixda.selection.auto import AutoMSDA
from mixda.selection.scores import (
    SCORES,
    PseudoTask,
    agreement,
    circular_validation,
    confidence,
    importance_weighted,
    information,
    leave_one_source_out,
    likelihood,
    pseudo_tasks,
    rank,
    reconstruction,
    stability,
)

__all__ = [
    "SCORES",
    "AutoMSDA",
    "PseudoTask",
    "Trust",
    "agreement",
    "circular_validation",
    "confidence",
    "importance_weighted",
    "information",
    "leave_one_source_out",
    "likelihood",
    "pseudo_tasks",
    "rank",
    "reconstruction",
    "stability",
    "suggest_rows",
]
