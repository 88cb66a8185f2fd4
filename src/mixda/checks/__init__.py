"""Checks of tables before any fit: which columns to use, and what could silently do harm."""

from mixda.checks._columns import ColumnUse as ColumnUse
from mixda.checks._columns import Request as Request
from mixda.checks._examine import choose_columns as choose_columns
from mixda.checks._examine import examine as examine
from mixda.checks._findings import CheckReport, Finding
from mixda.checks._findings import read_findings as read_findings
from mixda.checks._frames import Frame as Frame
from mixda.checks._frames import read_frames as read_frames

__all__ = ["CheckReport", "Finding"]
