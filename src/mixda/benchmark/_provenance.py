"""Versions, commit and machine, which every result records."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mixda._version import __version__
from mixda.benchmark._cells import Record

_PACKAGES = ("numpy", "scipy", "scikit-learn", "POT", "torch")


def provenance() -> Record:
    """Return the versions of the packages, the commit and the machine."""
    versions = {"mixda": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    machine = f"{platform.system()} {platform.machine()}"
    return {
        "versions": versions,
        "commit": _commit(),
        "cores": os.cpu_count(),
        "machine": machine,
    }


def _commit() -> str | None:
    """Return the commit of the checkout, with "+" if files differ; None if installed."""
    home = Path(__file__).parents[1]
    if not (home.parents[1] / ".git").exists():  # an installed copy may be inside another checkout
        return None
    commands = ("rev-parse --short HEAD", "status --porcelain -uno .")
    options: dict[str, Any] = {"cwd": home, "capture_output": True, "text": True, "check": True}
    try:
        name, changed = (
            subprocess.run(["git", *command.split()], **options).stdout.strip()
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{name}+" if changed else name
