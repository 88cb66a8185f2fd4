"""Read the domains from files: each is samples or a mixture, all with the same features.

This module decides which files form which domain and which columns are features.
"""

from __future__ import annotations

import glob
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.text import suggestion
from mixda.checks import CheckReport, Frame, Request, examine, read_frames
from mixda.chunks import RowSource, default_max_rows, from_files, map_rows, select_domains
from mixda.mixture import Mixture
from mixda.tables import (
    Columns,
    PathArgument,
    Samples,
    Table,
    check_different,
    check_samples,
    expand_paths,
    open_table,
)
from mixda.workflow._labels import LabelColumns, RenamedClasses, rename_classes
from mixda.workflow._target_labels import read_target_labels

_MAX_CELL_BYTES = 8  # of a csv file whose rows are not counted


@dataclass(frozen=True)
class Reading:
    """How to read data files: columns of classes and domains, features, missing values."""

    label: LabelColumns = field(default_factory=LabelColumns)
    domain: str | None = None
    columns: Sequence[str] | None = None
    drop: Collection[str] = ()
    missing: str = "mixture"
    max_rows: int | None = None  # of a domain in memory
    ordinal: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)
    target_labels: str | None = None

    @property
    def request(self) -> Request:
        """What the checks need to know of it."""
        return Request(self.label.columns, self.domain, self.columns, self.drop, self.ordinal)


@dataclass(frozen=True)
class Inputs:
    """Labeled sources by name, the unlabeled target, and how columns became features."""

    sources: dict[str, Samples | Mixture | RowSource]
    target_name: str
    target: Samples | Mixture | RowSource
    encoding: Columns | None = None
    target_labels: NDArray[Any] | None = None  # text, None where there is none

    @property
    def mixtures(self) -> list[str]:
        """Names of the domains that are given as mixtures."""
        domains = {**self.sources, self.target_name: self.target}
        return [name for name, value in domains.items() if isinstance(value, Mixture)]

    @property
    def is_large(self) -> bool:
        """Whether the rows of some domain stay in their files."""
        return any(isinstance(v, RowSource) for v in (*self.sources.values(), self.target))


@dataclass(frozen=True)
class Opened:
    """Files of the sources by name, and of the target, before their rows are read.

    `names_within` are the domains in each table, if a column names them; the target may be one of
    them, in the table `holder`.
    """

    sources: dict[str, Mixture | Table]
    names_within: dict[str, list[str]]
    target: PathArgument
    target_name: str
    target_file: Mixture | Table | None
    holder: Table | None
    left_out: list[Path]


def open_inputs(sources: Sequence[PathArgument], target: PathArgument, reading: Reading) -> Opened:
    """Open every file. A file of the target is not a source, even if a pattern matches it."""
    for label in reading.label.columns:
        check_different(label, reading.domain)
    target_files = _target_files(target)
    opened, left_out = _open_sources(sources, target_files)
    reading.label.check_files([value for value in opened.values() if isinstance(value, Table)])
    holders, names_within = _domains_within(opened, target, reading.domain)
    _check_target(target, target_files, holders, reading.domain)
    target_file = None if holders else _open(target_files)
    target_name = str(target) if holders else stem(_place(target, target_files))
    holder = holders[0] if holders else None
    return Opened(opened, names_within, target, target_name, target_file, holder, left_out)


def check_inputs(
    opened: Opened, reading: Reading, *, measure_distances: bool = True
) -> CheckReport | None:
    """Check all tables among the domains; None if all domains are mixtures."""
    frames: list[Frame] = []
    others = (reading.domain, reading.target_labels)
    hidden = {*reading.label.columns, *(name for name in others if name is not None)}
    for name, value in opened.sources.items():
        if isinstance(value, Table):
            label = _label_of(value, reading)
            goal = [str(opened.target)] if value is opened.holder else []
            frames += read_frames(
                name,
                value,
                label=label,
                hidden=hidden,
                domain=reading.domain,
                target_names=goal,
            )
    if isinstance(opened.target_file, Table):
        frames += read_frames(
            opened.target_name, opened.target_file, label=None, hidden=hidden, is_target=True
        )
    fixed = _mixture_features(opened, reading)
    if not frames:
        return None
    _check_renamed(frames, reading.rename)
    frames = [_renamed(frame, reading.rename) for frame in frames]
    return examine(
        frames,
        reading.request,
        encoding=None if fixed is None else Columns.of_numbers(fixed),
        measure_distances=measure_distances,
    )


def read_inputs(opened: Opened, encoding: Columns | None, reading: Reading) -> Inputs:
    """Read every domain that fits in memory.

    Classes of the target are read only if `target_labels` names them.
    """
    if reading.max_rows is None and encoding is not None:
        n_domains = 1 + sum(len(names) for names in opened.names_within.values())
        n_domains = max(n_domains, 1 + len(opened.sources))
        most = default_max_rows(len(encoding.feature_names), n_domains)
        reading = replace(reading, max_rows=most)
    domains, tables = _read_sources(opened.sources, opened.names_within, encoding, reading)
    unlabeled = replace(reading, label=LabelColumns())
    goal: Samples | Mixture | RowSource
    if opened.holder is not None:
        goal = _read(opened.holder, encoding, unlabeled, [str(opened.target)])
    elif isinstance(opened.target_file, Table):
        goal = _read(opened.target_file, encoding, replace(unlabeled, domain=None), None)
    elif opened.target_file is not None:
        goal = opened.target_file
    if opened.target_name in domains:
        raise MixdaError(
            f"the target and a source are both called {opened.target_name!r}; rename one, and make "
            "sure that no row of the target is among those of the sources."
        )
    label = next(iter(sorted(reading.label.columns)), None)
    check_samples([*tables, *([goal] if isinstance(goal, Samples) else [])], label)
    for file in opened.left_out:
        warnings.warn(f"{file} is the target, so it is not used as a source.", stacklevel=2)
    return Inputs(
        domains, opened.target_name, goal, encoding, _target_labels(opened, goal, reading)
    )


def _target_labels(
    opened: Opened, target: Samples | Mixture | RowSource, reading: Reading
) -> NDArray[Any] | None:
    """Return the labels that the user has for some rows of the target."""
    if reading.target_labels is None:
        return None
    table = opened.holder or opened.target_file
    if isinstance(target, Mixture) or not isinstance(table, Table):
        raise MixdaError(
            f"target_labels (--target-labels) needs the rows of the target, but "
            f"{opened.target_name!r} is a mixture; give its data file."
        )
    if isinstance(target, RowSource):
        raise MixdaError(
            "target_labels (--target-labels) needs all rows in memory, but the target has more "
            f"than max_rows={reading.max_rows} (--max-rows); raise it, or leave the labels out."
        )
    labels = read_target_labels(reading.target_labels, table, target.rows)
    if all(label is None for label in labels):
        raise MixdaError(
            f"target_labels (--target-labels) {reading.target_labels!r} has no label for any row "
            "of the target; fill some in, or leave the option out."
        )
    return np.array([reading.rename.get(label, label) for label in labels], dtype=object)


def stem(path: Path) -> str:
    """Return the name of a domain: the file name without the suffix of its format.

    Examples
    --------
    >>> from pathlib import Path
    >>> from mixda.workflow._inputs import stem
    >>> stem(Path("runs/lab.v2.csv.gz"))
    'lab.v2'
    """
    kinds = r"(\.(csv|tsv|txt|tab))?\.(gz|csv|tsv|txt|tab|parquet|pq|npz|npy|gmm)$"
    return re.sub(kinds, "", path.name or path.resolve().name, flags=re.IGNORECASE)


def split_domains(samples: Samples, name: str) -> dict[str, Samples]:
    """Return the rows of each domain, or all rows under `name` if there is no domain column."""
    if samples.domain is None:
        return {name: samples}
    parts = {}
    for value in np.unique(samples.domain):
        rows = samples.domain == value
        y = None if samples.y is None else samples.y[rows]
        parts[str(value)] = replace(
            samples, X=samples.X[rows], y=y, domain=None, rows=samples.rows[rows]
        )
    return parts


def _target_files(target: PathArgument) -> list[Path]:
    """Return the files of the target; none if it is not a path."""
    is_path = Path(target).exists() or bool(glob.glob(str(target), recursive=True))
    return expand_paths(target) if is_path else []


def _open_sources(
    sources: Sequence[PathArgument], target: Collection[Path]
) -> tuple[dict[str, Mixture | Table], list[Path]]:
    """Return each file that a pattern matches and each folder, by name; and the target's files."""
    taken = {file.resolve() for file in target}
    opened: dict[str, Mixture | Table] = {}
    left_out: list[Path] = []
    for source in sources:
        files = expand_paths(source)
        is_folder = Path(source).is_dir()
        groups = [(Path(source), files)] if is_folder else [(file, [file]) for file in files]
        for place, group in groups:
            own = [file for file in group if file.resolve() not in taken]
            left_out += [file for file in group if file.resolve() in taken]
            if own:
                _add(opened, stem(place), _open(own))
    return opened, left_out


def _domains_within(
    opened: Mapping[str, Mixture | Table], target: PathArgument, column: str | None
) -> tuple[list[Table], dict[str, list[str]]]:
    """Return the tables with rows of the target, and the other domains of each table, by name."""
    if column is None:
        return [], {}
    tables = {name: value for name, value in opened.items() if isinstance(value, Table)}
    values = {name: table.distinct(column) for name, table in tables.items()}
    holders = [tables[name] for name in tables if str(target) in values[name]]
    others = {name: [v for v in values[name] if v != str(target)] for name in tables}
    return holders, others


def _read_sources(
    opened: Mapping[str, Mixture | Table],
    names_within: Mapping[str, list[str]],
    encoding: Columns | None,
    reading: Reading,
) -> tuple[dict[str, Samples | Mixture | RowSource], list[Samples]]:
    """Return the sources by name, and the tables that were read into memory."""
    domains: dict[str, Samples | Mixture | RowSource] = {}
    tables: list[Samples] = []
    for name, value in opened.items():
        if isinstance(value, Mixture):
            _add(domains, name, value)
            continue
        parts = names_within.get(name)
        if parts == []:
            continue
        table = _read_source(value, encoding, reading, parts)
        if isinstance(table, Samples):
            tables.append(table)
            for part_name, part in split_domains(table, name).items():
                _add(domains, part_name, part)
        elif parts is None:
            _add(domains, name, table)
        else:
            for part_name in parts:
                _add(domains, part_name, select_domains(table, [part_name], labeled=True))
    if not domains:
        raise MixdaError("there is no source besides the target; give at least one.")
    return domains, tables


def _check_target(
    target: PathArgument, files: Sequence[Path], holders: Sequence[Table], domain: str | None
) -> None:
    if len(holders) > 1:
        raise MixdaError(
            f"rows of the target {str(target)!r} are in {holders[0].files[0]} and in "
            f"{holders[1].files[0]}; put them into one file."
        )
    if holders and files:
        raise MixdaError(
            f"the target {str(target)!r} is a value of column {domain!r} and also a file or folder "
            "here; rename one of them."
        )
    if not holders and not files:
        if domain is None:
            expand_paths(target)  # says what is wrong with it
        raise MixdaError(
            f"the target {str(target)!r} is neither a file nor a value of column {domain!r}."
        )


def _place(target: PathArgument, files: Sequence[Path]) -> Path:
    """Return what the target is named after: the first file of a pattern, else the path itself."""
    return Path(target) if Path(target).exists() else files[0]


def _open(files: Sequence[Path]) -> Mixture | Table:
    mixtures = [file for file in files if file.suffix.lower() == ".gmm"]
    if mixtures and len(files) > 1:
        raise MixdaError(
            f"{mixtures[0]} is one of {len(files)} files of a single domain, but a mixture is a "
            "whole domain; give it alone."
        )
    return Mixture.load(files[0]) if mixtures else open_table(files)


def _add(domains: dict[str, Any], name: str, value: Any) -> None:
    if name in domains:
        raise MixdaError(
            f"two sources are called {name!r}; rename one of the files, or give one folder per "
            "source (site1 site2), which is then named after its folder."
        )
    domains[name] = value


def _mixture_features(opened: Opened, reading: Reading) -> tuple[str, ...] | None:
    """Return the feature names that mixtures among the domains fix."""
    values = [*opened.sources.values(), opened.target_file]
    tables = [value for value in values if isinstance(value, Table)]
    for name in reading.drop:
        if not any(name in table.columns for table in tables):
            known = [column for table in tables for column in table.columns]
            raise MixdaError(
                f"drop (--drop) names {name!r}, but no data file has such a column"
                f"{suggestion(name, known)}"
            )
    named = [v.feature_names for v in values if isinstance(v, Mixture) and v.feature_names]
    for names in named:
        different = sorted(set(names) ^ set(named[0]))
        if different:
            raise MixdaError(
                f"the mixtures have different features (one of them lacks {different[0]!r}); fit "
                "all of them to the same columns."
            )
    if not named:
        return None
    asked = set(named[0] if reading.columns is None else reading.columns) - set(reading.drop)
    if asked != set(named[0]):
        raise MixdaError(
            f"the mixtures fix the features ({', '.join(named[0])}); leave out columns and "
            "drop (--columns, --drop), or fit the mixtures to other columns."
        )
    return named[0]


def _label_of(table: Table, reading: Reading) -> str:
    label = reading.label.of(table)
    if label is None:
        raise MixdaError(
            f"{table.files[0]} is a source and needs classes; name their column (label, --label; "
            "in an npz file it is y)."
        )
    return label


def _check_renamed(frames: Sequence[Frame], names: Mapping[str, str]) -> None:
    """Reject names of classes that no source has."""
    classes = {name for frame in frames if frame.y is not None for name in frame.y.tolist()}
    for name in names:
        if name not in classes:
            raise MixdaError(
                f"rename_labels (--rename-label) names the class {name!r}, which no source has"
                f"{suggestion(name, sorted(classes - {''}))}"
            )


def _renamed(frame: Frame, names: Mapping[str, str]) -> Frame:
    if frame.y is None or not names:
        return frame
    return replace(frame, y=np.array([names.get(name, name) for name in frame.y.tolist()]))


def _read_source(
    table: Table,
    encoding: Columns | None,
    reading: Reading,
    domains: Collection[str] | None,
) -> Samples | RowSource:
    _label_of(table, reading)
    read = _read(table, encoding, reading, domains)
    if isinstance(read, RowSource):
        return map_rows(read, RenamedClasses(reading.rename)) if reading.rename else read
    return rename_classes(read, reading.rename)


def _read(
    table: Table,
    encoding: Columns | None,
    reading: Reading,
    domains: Collection[str] | None,
) -> Samples | RowSource:
    """Read a table, or return it as a source if it has too many rows to be held in memory."""
    absent = [] if encoding is None else [n for n in encoding.names if n not in table.columns]
    if absent:
        raise MixdaError(
            f"{table.files[0]} has no column {absent[0]!r}, which is a feature of the other "
            "domains; add it, or leave it out of all of them (drop, --drop)."
        )
    label = reading.label.of(table)
    if encoding is not None and _is_large(table, reading.max_rows):
        source = from_files(
            table, label, reading.domain, missing=reading.missing, encoding=encoding
        )
        if label is None and domains is not None:
            return select_domains(source, domains, labeled=False)
        return source
    return table.read(
        label=label,
        domain=reading.domain,
        missing=reading.missing,
        domains=domains,
        encoding=encoding,
    )


def _is_large(table: Table, max_rows: int | None) -> bool:
    """Return whether a table may have more rows than are held in memory."""
    if max_rows is None:
        return False
    if table.n_rows is not None:
        return table.n_rows > max_rows
    return sum(file.stat().st_size for file in table.files) > _MAX_CELL_BYTES * max_rows * len(
        table.columns
    )
