"""Check files before any fit, and keep what was found with the model."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mixda._core.errors import MixdaError
from mixda._core.text import listed
from mixda.checks import CheckReport
from mixda.tables import PathArgument
from mixda.workflow._inputs import Reading, check_inputs, open_inputs
from mixda.workflow._labels import LabelColumns


def check(
    sources: PathArgument | Sequence[PathArgument],
    target: PathArgument,
    label: str | Sequence[str] | None = None,
    domain: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    ordinal: Mapping[str, Sequence[str]] | None = None,
    rename_labels: Mapping[str, str] | None = None,
) -> CheckReport:
    r"""Check the files of a task before any fit.

    The checks tell which columns are used and which are left out and why (identifiers, timestamps,
    columns that only tell where a row comes from), and find classes that are spelled differently,
    sources that share no class, missing values, changes of units, duplicates, and domains that are
    small or far from the others. Target labels are never read.

    Parameters
    ----------
    sources, target, label, domain, columns, drop, ordinal, rename_labels
        As in `mixda.workflow.adapt_files`.

    Returns
    -------
    CheckReport
        With `findings`, each with a severity, a sentence and a remedy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import mixda
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = [f"{k},{k % 3},{'ok' if k % 2 else 'Worn'}" for k in range(12)]
    ...     for name in ("a", "b", "t"):
    ...         text = "\n".join(["id,speed,state", *rows])
    ...         text = text if name == "a" else text.replace("Worn", "worn")
    ...         _ = pathlib.Path(folder, f"{name}.csv").write_text(text)
    ...     files = [f"{folder}/a.csv", f"{folder}/b.csv"]
    ...     report = mixda.check(files, f"{folder}/t.csv", label="state")
    >>> [(finding.severity, finding.code) for finding in report.findings][:2]
    [('blocker', 'label-spelling'), ('warning', 'duplicates')]
    >>> report.left_out
    {'id': 'it is an identifier'}
    """
    reading = Reading(
        LabelColumns.parse(label),
        domain,
        columns,
        drop,
        ordinal=ordinal or {},
        rename=rename_labels or {},
    )
    given = [sources] if isinstance(sources, str) or hasattr(sources, "__fspath__") else sources
    report = check_inputs(open_inputs(list(given), target, reading), reading)
    if report is None:
        raise MixdaError("all domains are mixtures; only data files can be checked.")
    return report


def warn_about(report: CheckReport) -> None:
    """Warn about findings, one sentence each, and about the columns that are left out."""
    for finding in report.findings:
        if finding.severity != "note":
            warnings.warn(f"{str(finding).rstrip('.')}.", stacklevel=3)
    names = [
        f"{use.name} ({use.reason.removeprefix('it is an ').removeprefix('it is a ')})"
        for use in report.columns
        if not use.used and not use.reason.startswith(("left out on", "not among", "the array"))
    ]
    if names:
        plural = "column" if len(names) == 1 else "columns"
        warnings.warn(
            f"{plural} left out: {listed(names)}; name columns to use with columns, --columns.",
            stacklevel=3,
        )


def stored_checks(report: CheckReport | None) -> dict[str, Any]:
    """Return what a model keeps of the checks, for its settings."""
    if report is None:
        return {}
    return {
        "checks": [vars(finding) for finding in report.findings],
        "left_out": report.left_out,
    }
