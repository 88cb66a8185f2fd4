"""A user's own tables as a dataset: a file per domain, or a column that names the domain."""

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
    r"""Your own data: labeled samples of several domains in csv, parquet or npz files.

    Parameters
    ----------
    path : str or Path
        One table, or a folder of tables, with a column that names the domain of each row; or a
        folder with one table per domain, named as the domain (a table may itself be a folder of
        files); or an npz with ``X, y, d`` and perhaps ``doms`` and ``cls``, the names that codes
        in ``d`` and ``y`` stand for. A file of `generate_tep` is read by `load_tep`.
    label : str, optional
        Column of the classes; by default label, class, target or y. In an npz, ``y``.
    domain : str, optional
        Column of the domains; by default domain, if there is one. In an npz, ``d``.
    features : sequence of str, optional
        Columns of `X`; by default all columns of numbers but the label and the domain.
    drop : collection of str
        Columns that are no features.
    missing : {"error", "drop"}
        What to do with rows that lack a value.

    Returns
    -------
    DomainDataset
        Files of a folder are in alphabetical order; domains of a column in order of appearance.

    Notes
    -----
    Every row needs a label, as this is for benchmarks: `DomainDataset.as_task` hides those of the
    target. To adapt to a target without labels use the command line, or ``mixda.tables`` and the
    estimators. Rows that belong together (windows of one signal) get no `block` here.

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
    place = Path(path).expanduser()
    options: dict[str, Any] = {"features": features, "drop": drop, "missing": missing}
    description = f"Samples of {place.name}."
    if not place.exists():
        raise MixdaError(
            f"{place} does not exist; give a folder with one table per domain, or one table."
        )
    if _is_benchmark_file(place) and label in (None, "y") and domain in (None, "d"):
        if _is_tep_file(place) and not (features or drop):
            return load_tep(path=place)
        return read_domains(place, description, **options)
    table = open_table(place)  # checks that all files have the same columns
    entries = _entries(place, table)
    if domain is not None or known_column(table, "domain") is not None or len(entries) < 2:
        return read_domain_column(place, description, label, domain, **options)
    label = find_column(table, "label", label)
    options["features"] = table.features(features, (label, *drop))
    parts = {_name(entry): read_table(entry, label, **options) for entry in entries}
    if len(parts) < len(entries):
        names = ", ".join(entry.name for entry in entries)
        raise MixdaError(f"{place} has two tables of one name ({names}); rename one of them.")
    return join(parts, place, description)


def _is_benchmark_file(path: Path) -> bool:
    return path.suffix.lower() == ".npz" and set(read_all_arrays(path, LAYOUT)) == set(LAYOUT)


def _is_tep_file(path: Path) -> bool:
    """Say whether `generate_tep` made it: variables are its last axis, and a run is a block."""
    return len(read_all_arrays(path, ("run", "idv_magnitude"))) == 2


def _entries(place: Path, table: Table) -> list[Path]:
    """Return what stands in a folder for a domain: tables, and folders with tables."""
    if not place.is_dir():
        return [place]
    return list(dict.fromkeys(place / file.relative_to(place).parts[0] for file in table.files))


def _name(entry: Path) -> str:
    endings = [ending for ending in SUFFIXES if entry.name.lower().endswith(ending)]
    return entry.name[: -max(map(len, endings))] if entry.is_file() else entry.name
