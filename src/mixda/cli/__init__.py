"""The command line: ``mixda fit``, ``adapt``, ``predict``, ``report``, ``info``, and others.

Commands parse, call `mixda.workflow` and print. They contain no logic of their own.
"""

from mixda.cli._main import main, run

__all__ = ["main", "run"]
