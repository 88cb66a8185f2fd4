"""Domains from files: each one samples or a mixture, by name, all with the same features.

The bookkeeping behind `mixda.workflow`: which files are which domain, which columns are features,
and how samples become a mixture.
"""

from __future__ import annotations

import glob
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda._core.text import listed
from mixda._core.validation import check_random_state
from mixda.chunks import RowSource
from mixda.em import cached_mixture, feature_units, fit_domains, fit_labeled_mixture, fit_mixture
from mixda.mixture import Mixture
from mixda.tables import (
    PathArgument,
    Samples,
    Table,
    check_left_out,
    check_samples,
    expand_paths,
    open_table,
)

COMPONENTS = 3  # per class of a labeled domain
TARGET_COMPONENTS = 30  # of a domain without labels, at most one for ten rows


@dataclass(frozen=True)
class Reading:
    """How data files are read: columns of classes and domains, features, missing values."""

    label: str | None = None
    domain: str | None = None
    columns: Sequence[str] | None = None
    drop: Collection[str] = ()
    missing: str = "error"


@dataclass(frozen=True)
class Inputs:
    """Labeled sources by name, and the target without labels."""

    sources: dict[str, Samples | Mixture]
    target_name: str
    target: Samples | Mixture

    @property
    def mixtures(self) -> list[str]:
        """Names of the domains that are known as mixtures only."""
        domains = {**self.sources, self.target_name: self.target}
        return [name for name, value in domains.items() if isinstance(value, Mixture)]


def read_inputs(sources: Sequence[PathArgument], target: PathArgument, reading: Reading) -> Inputs:
    """Read every domain; the target's classes are not among the columns that are read.

    A file of the target is no source, though a pattern or a folder of the sources holds it.
    """
    goal_files = _target_files(target)
    opened, left_out = _open_sources(sources, goal_files)
    tables = {name: value for name, value in opened.items() if isinstance(value, Table)}
    column = reading.domain
    within = {} if column is None else {k: table.distinct(column) for k, table in tables.items()}
    holders = [tables[name] for name, values in within.items() if str(target) in values]
    _check_target(target, goal_files, holders, column)
    beside = None if holders else _open(goal_files)
    names = _features(opened, beside, reading)
    found: dict[str, Samples | Mixture] = {}
    read: list[Samples] = []
    for name, value in opened.items():
        if isinstance(value, Mixture):
            _add(found, name, value)
            continue
        of = [part for part in within[name] if part != str(target)] if within else None
        if of != []:
            read.append(_read_source(value, names, reading, of))
            for part_name, part in split_domains(read[-1], name).items():
                _add(found, part_name, part)
    if not found:
        raise MixdaError("there is no source besides the target; give at least one.")
    unlabeled = replace(reading, label=None)
    if beside is None:
        goal: Samples | Mixture = _read(holders[0], names, unlabeled, [str(target)])
    elif isinstance(beside, Table):
        goal = _read(beside, names, replace(unlabeled, domain=None), None)
    else:
        goal = beside
    target_name = str(target) if holders else stem(_place(target, goal_files))
    if target_name in found:
        raise MixdaError(
            f"the target and a source are both called {target_name!r}; rename one, and make sure "
            "that the target's rows are not among those of the sources."
        )
    check_samples([*read, *([goal] if isinstance(goal, Samples) else [])], reading.label)
    for file in left_out:
        warnings.warn(f"{file} is the target, so it is not used as a source.", stacklevel=2)
    return Inputs(found, target_name, goal)


def stem(path: Path) -> str:
    """Return the name of a domain: that of the file, without what says its kind.

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
    """Rows of each domain, or all rows under the given name."""
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


def note_rare_classes(samples: Samples, components: int | str | None) -> None:
    """Say which classes have so few rows that components are the rows themselves."""
    each = COMPONENTS if components is None else components
    if samples.y is None or isinstance(each, str):
        return
    domain = np.zeros(len(samples.y)) if samples.domain is None else samples.domain
    rare = []
    for name in np.unique(samples.y):
        counts = np.unique(domain[samples.y == name], return_counts=True)[1]
        rare += [str(name)] * bool((counts <= each).any())
    if rare:
        warnings.warn(
            f"no more rows than components in class {listed(rare)}: its components are these very "
            "rows; ask for fewer components (--components) or more rows if they must stay here.",
            stacklevel=2,
        )


def fit_domain(
    name: str,
    samples: Samples,
    components: int | str | None,
    seed: int,
    verbose: bool,
    n_init: int = 1,
    checkpoint: PathArgument | None = None,
) -> Mixture:
    """Fit a mixture; features of mixed units are standardized for the fit, and put back after.

    An affine map of an axis-aligned mixture is one, so nothing is lost on the way back.
    """
    X = samples.X
    unit = feature_units(X.std(axis=0), np.abs(X).max(axis=0), "auto")
    mean = X.mean(axis=0) if (unit != 1.0).any() else np.zeros(X.shape[1])
    Z = (X - mean) / unit
    if components is None and samples.y is None:
        components = min(TARGET_COMPONENTS, max(1, len(X) // 10))
    mixture = cached_mixture(
        checkpoint,
        fit_mixture if samples.y is None else fit_labeled_mixture,
        *([Z] if samples.y is None else [Z, samples.y]),
        n_components=COMPONENTS if components is None else components,
        n_init=n_init,
        random_state=check_random_state(seed),
        verbose=verbose,
    )
    return replace(
        mixture,
        means=mixture.means * unit + mean,
        stds=mixture.stds * unit,
        feature_names=samples.feature_names,
        info={"name": name, "n_samples": len(X), "preprocessing": []},
    )


def fit_domains_of(
    source: RowSource, name: str, components: Any, seed: int, verbose: bool, **options: Any
) -> dict[str, Mixture]:
    """Fit the mixtures of `fit_domain` to data of any size, those of all domains at once."""
    default = COMPONENTS if source.has_label else TARGET_COMPONENTS
    sparse = components is None and not source.has_label
    found = fit_domains(
        source,
        default if components is None else components,
        standardize="auto",
        rows_per_component=10 if sparse else 1,
        random_state=seed,
        verbose=verbose,
        **options,
    )
    return {
        domain or name: replace(
            mixture, info={"name": domain or name, "preprocessing": [], **(mixture.info or {})}
        )
        for domain, mixture in found.items()
    }


def _target_files(target: PathArgument) -> list[Path]:
    """Files of the target; none if it is no path."""
    found = Path(target).exists() or bool(glob.glob(str(target), recursive=True))
    return expand_paths(target) if found else []


def _open_sources(
    sources: Sequence[PathArgument], target: Collection[Path]
) -> tuple[dict[str, Mixture | Table], list[Path]]:
    """Every file that patterns stand for, and every folder, by name; and the target's files."""
    taken = {file.resolve() for file in target}
    opened: dict[str, Mixture | Table] = {}
    left_out: list[Path] = []
    for source in sources:
        files = expand_paths(source)
        whole = [(Path(source), files)] if Path(source).is_dir() else [(f, [f]) for f in files]
        for place, group in whole:
            own = [file for file in group if file.resolve() not in taken]
            left_out += [file for file in group if file.resolve() in taken]
            if own:
                _add(opened, stem(place), _open(own))
    return opened, left_out


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
            f"{mixtures[0]} is one of {len(files)} files of a single domain; a mixture is a whole "
            "domain, give it alone."
        )
    return Mixture.load(files[0]) if mixtures else open_table(files)


def _add(domains: dict[str, Any], name: str, value: Any) -> None:
    if name in domains:
        raise MixdaError(
            f"two sources are called {name!r}; rename one of the files, or give a whole folder for "
            "each source (site1 site2), which is then named after its folder."
        )
    domains[name] = value


def _features(
    opened: Mapping[str, Mixture | Table], goal: Mixture | Table | None, reading: Reading
) -> tuple[str, ...] | None:
    """Names of the features: those of a mixture if one has names, else those of the first file."""
    values = [*opened.values(), *([] if goal is None else [goal])]
    tables = [value for value in values if isinstance(value, Table)]
    for name in reading.drop:
        if not any(name in table.columns for table in tables):
            raise MixdaError(f"no data file has a column {name!r} to leave out (drop, --drop).")
    named = [v.feature_names for v in values if isinstance(v, Mixture) and v.feature_names]
    for names in named:
        different = sorted(set(names) ^ set(named[0]))
        if different:
            raise MixdaError(
                f"the mixtures have different features (one of them lacks {different[0]!r}); fit "
                "them all on the same columns."
            )
    if named:
        asked = set(named[0] if reading.columns is None else reading.columns) - set(reading.drop)
        if asked != set(named[0]):
            raise MixdaError(
                f"the features are those of the mixtures ({', '.join(named[0])}); fit these on "
                "other columns, or leave out columns and drop (--columns, --drop)."
            )
        return named[0]
    return _table_features(tables, reading) if tables else None


def _table_features(tables: Sequence[Table], reading: Reading) -> tuple[str, ...]:
    """Columns of the first table that hold numbers there, or in another table."""
    first = tables[0]
    without = [reading.label, reading.domain, *reading.drop]
    without = [name for name in without if name in first.columns]
    if reading.columns is not None:
        return first.features(reading.columns, without)
    candidates = [name for name in first.columns if name not in without]
    numeric = [n for n in candidates if any(table.is_numeric(n) for table in tables)]
    parts = [part for table in tables for part in table.parts]
    check_left_out(parts, [name for name in candidates if name not in numeric])
    return first.features(numeric or None, without)


def _read_source(
    table: Table,
    names: tuple[str, ...] | None,
    reading: Reading,
    domains: Collection[str] | None,
) -> Samples:
    if reading.label is None:
        raise MixdaError(
            f"{table.files[0]} is a source, and sources need classes; name their column (label, "
            "--label; in an npz it is y)."
        )
    return _read(table, names, reading, domains)


def _read(
    table: Table,
    names: tuple[str, ...] | None,
    reading: Reading,
    domains: Collection[str] | None,
) -> Samples:
    absent = [name for name in names or () if name not in table.columns]
    if absent:
        raise MixdaError(
            f"{table.files[0]} has no column {absent[0]!r}, which is a feature of the other "
            "domains; add it, or leave it out of all of them (drop, --drop)."
        )
    return table.read(
        names, reading.label, reading.domain, missing=reading.missing, domains=domains
    )
