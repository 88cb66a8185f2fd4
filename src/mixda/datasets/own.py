"""Users' own tables: one file per domain, or a column with the domain of each row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from mixda._core.errors import MixdaError
from mixda.datasets._dataset import DomainDataset
from mixda.datasets._npz import LAYOUT, read_all_arrays, read_domains
from mixda.datasets._readers import (
    find_column,
    join,
    known_column,
    read_domain_column,
    read_table,
)
from mixda.datasets.tep import load_tep
from mixda.tables import SUFFIXES, Table, open_table


def load_domains(
    path: str | Path,
    label: str | None = None,
    domain: str | None = None,
    *,
    features: Sequence[str] | None = None,
    drop: Collection[str] = (),
    missing: str = "error",
) -> DomainDataset:
    r"""Load labeled samples of several domains from your own csv, parquet or npz files.

    Parameters
    ----------
    path : str or Path
        A table, or a folder of tables, with a column for the domain of each row; or a folder with
        one table per domain, named after it (a table may itself be a folder of files); or an npz
        with ``X, y, d`` and optionally ``doms`` and ``cls``, the names of the codes in ``d`` and
        ``y``. Files of `generate_tep` are read by `load_tep`.
    label : str, optional
        Column of the classes; by default label, class, target or y. In an npz, ``y``.
    domain : str, optional
        Column of the domains; by default domain, if there is one. In an npz, ``d``.
    features : sequence of str, optional
        Columns of `X`; by default all numeric columns except the label and the domain.
    drop : collection of str
        Columns to exclude from the features.
    missing : {"error", "drop"}
        Whether rows with missing values raise an error or are dropped.

    Returns
    -------
    DomainDataset
        Domains are in alphabetical order of their files, or in order of appearance in the column.

    Notes
    -----
    This loader is meant for benchmarks, so every row needs a label; `DomainDataset.as_task` masks
    those of the target. To adapt to a target without labels, use the command line, or
    ``mixda.tables`` and the estimators. `DomainDataset.block` is not set.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mixda.datasets import load_domains
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, x in (("lab", 0), ("plant", 5)):
    ...         text = f"speed,state\n{x},ok\n{x + 1},worn\n"
    ...         _ = pathlib.Path(folder, f"{name}.csv").write_text(text)
    ...     load_domains(folder, label="state")
    DomainDataset(4 samples, 1 features, domains=['lab', 'plant'], classes=['ok', 'worn'])
    """
    location = Path(path).expanduser()
    options: dict[str, Any] = {"features": features, "drop": drop, "missing": missing}
    description = f"Samples of {location.name}."
    if not location.exists():
        raise MixdaError(
            f"path {location} does not exist. Pass a folder with one table per domain, or a table."
        )
    if _is_benchmark_file(location) and label in (None, "y") and domain in (None, "d"):
        if _is_tep_file(location) and not (features or drop):
            return load_tep(path=location)
        return read_domains(location, description, **options)
    table = open_table(location)  # checks that all files have the same columns
    entries = _entries(location, table)
    if domain is not None or known_column(table, "domain") is not None or len(entries) < 2:
        return read_domain_column(location, description, label, domain, **options)
    label = find_column(table, "label", label)
    options["features"] = table.features(features, (label, *drop))
    parts = {_name(entry): read_table(entry, label, **options) for entry in entries}
    if len(parts) < len(entries):
        names = ", ".join(entry.name for entry in entries)
        raise MixdaError(
            f"{location} has two tables with the same name ({names}). Rename one of them."
        )
    return join(parts, location, description)


def _is_benchmark_file(path: Path) -> bool:
    return path.suffix.lower() == ".npz" and set(read_all_arrays(path, LAYOUT)) == set(LAYOUT)


def _is_tep_file(path: Path) -> bool:
    """Return whether `generate_tep` wrote the file, whose layout differs."""
    return len(read_all_arrays(path, ("run", "idv_magnitude"))) == 2


def _entries(path: Path, table: Table) -> list[Path]:
    """Return the entries of a folder that are tables or contain tables."""
    if not path.is_dir():
        return [path]
    return list(dict.fromkeys(path / file.relative_to(path).parts[0] for file in table.files))


def _name(entry: Path) -> str:
    endings = [ending for ending in SUFFIXES if entry.name.lower().endswith(ending)]
    return entry.name[: -max(map(len, endings))] if entry.is_file() else entry.name
