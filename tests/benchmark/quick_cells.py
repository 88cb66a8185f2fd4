"""Cells of a benchmark that take a moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mixda.benchmark._cells import Cell
from mixda.benchmark._suites import thin
from mixda.datasets import DomainDataset, make_shifted_toy

FAST = ["SourceOnly", "GMMWBT", "WBT"]
SHORT = {"DaDiL-R": {"n_epochs": 2}, "DaDiL-E": {"n_epochs": 2}}
QUICK_IMPORT = {"POT_BACKEND_DISABLE_PYTORCH": "1"}  # POT loads torch otherwise
SHORT |= {"WJDOT": {"n_iter": 9}, "GMMDaDiL": {"n_iter": 9}}


def files(folder: Path, pattern: str = "cells/*.json") -> dict[str, tuple[int, bytes]]:
    found = folder.glob(pattern)
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


def small_toy(n: int = 60) -> DomainDataset:
    return thin(make_shifted_toy(random_state=2), n)


def cell(method: str, **changes: object) -> Cell:
    return replace(Cell("toy", "toy", "raw", None, "", "target", method, 0), **changes)
