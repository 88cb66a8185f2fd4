"""Domains from files: each one samples or a mixture, by name, all with the same features.

The bookkeeping behind `mixda.workflow`: which files are which domain, which columns are features,
and how samples become a mixture.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mixda._em_search import units_of
from mixda.chunks import ChunkSource
from mixda.em import fit_domains, fit_labeled_mixture, fit_mixture
from mixda.mixture import Mixture
from mixda.tables import Samples, Table, expand_paths, open_table

PathArgument = str | PathLike[str]

COMPONENTS = 3  # per class of a labelled domain
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
    """Labelled sources by name, and the target without labels."""

    sources: dict[str, Samples | Mixture]
    target_name: str
    target: Samples | Mixture

    @property
    def mixtures(self) -> list[str]:
        """Names of the domains that are known as mixtures only."""
        domains = {**self.sources, self.target_name: self.target}
        return [name for name, value in domains.items() if isinstance(value, Mixture)]


def read_inputs(sources: Sequence[PathArgument], target: PathArgument, reading: Reading) -> Inputs:
    """Read every domain; the target's classes are not among the columns that are read."""
    opened: dict[str, Mixture | Table] = {}
    for path in _domain_paths(sources):
        _add(opened, stem(path), _open(path))
    inside = reading.domain is not None and not Path(target).exists()
    goal = None if inside else _open(Path(target))
    names = _features(opened, goal, reading)
    found: dict[str, Samples | Mixture] = {}
    hidden: Samples | None = None
    for name, value in opened.items():
        if isinstance(value, Mixture):
            _add(found, name, value)
            continue
        of = None if reading.domain is None else value.distinct(reading.domain)
        if inside and of is not None and str(target) in of:
            of.remove(str(target))
            hidden = _read(value, names, replace(reading, label=None), [str(target)])
        if of != []:
            for part_name, part in _read_source(value, name, names, reading, of).items():
                _add(found, part_name, part)
    if isinstance(goal, Table):
        hidden = _read(goal, names, replace(reading, label=None, domain=None), None)
    known = goal if isinstance(goal, Mixture) else hidden
    if known is None:
        raise ValueError(
            f"the target {str(target)!r} is neither a file nor a value of column "
            f"{reading.domain!r}."
        )
    if not found:
        raise ValueError("there is no source besides the target; give at least one.")
    target_name = str(target) if inside else stem(Path(target))
    return Inputs(found, target_name + " (target)" * (target_name in found), known)


def stem(path: Path) -> str:
    """Return the name of a domain: that of the file, without what says its kind.

    Examples
    --------
    >>> from pathlib import Path
    >>> from mixda._domains import stem
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
        parts[str(value)] = replace(samples, X=samples.X[rows], y=y, domain=None)
    return parts


def fit_domain(
    name: str, samples: Samples, components: int | str | None, seed: int, verbose: bool
) -> Mixture:
    """Fit a mixture; features of mixed units are standardised for the fit, and put back after.

    An affine map of an axis-aligned mixture is one, so nothing is lost on the way back.
    """
    X = samples.X
    unit = units_of(X.std(axis=0), np.abs(X).max(axis=0), "auto")
    mean = X.mean(axis=0) if (unit != 1.0).any() else np.zeros(X.shape[1])
    Z = (X - mean) / unit
    settings: dict[str, Any] = {"random_state": seed, "verbose": verbose}
    if samples.y is None:
        if components is None:
            components = min(TARGET_COMPONENTS, max(1, len(X) // 10))
        mixture = fit_mixture(Z, components, **settings)  # type: ignore[arg-type]
    else:
        mixture = fit_labeled_mixture(Z, samples.y, components or COMPONENTS, **settings)  # type: ignore[arg-type]
    return replace(
        mixture,
        means=mixture.means * unit + mean,
        stds=mixture.stds * unit,
        feature_names=samples.feature_names,
        info={"name": name, "n_samples": len(X), "preprocessing": []},
    )


def fit_domains_of(
    source: ChunkSource, name: str, components: Any, seed: int, verbose: bool, **options: Any
) -> dict[str, Mixture]:
    """Fit the mixtures of `fit_domain` to data of any size, those of all domains at once."""
    default = COMPONENTS if source.has_label else TARGET_COMPONENTS
    sparse = components is None and not source.has_label
    found = fit_domains(
        source,
        components or default,
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


def _domain_paths(sources: Sequence[PathArgument]) -> list[Path]:
    """Every file that patterns stand for, and folders as they are."""
    paths: list[Path] = []
    for source in sources:
        paths += [Path(source)] if Path(source).is_dir() else expand_paths(source)
    return paths


def _open(path: Path) -> Mixture | Table:
    return Mixture.load(path) if path.suffix.lower() == ".gmm" else open_table(path)


def _add(domains: dict[str, Any], name: str, value: Any) -> None:
    if name in domains:
        raise ValueError(f"two sources are called {name!r}; rename one of the files.")
    domains[name] = value


def _features(
    opened: Mapping[str, Mixture | Table], goal: Mixture | Table | None, reading: Reading
) -> tuple[str, ...] | None:
    """Names of the features: those of a mixture if one has names, else those of the first file."""
    values = [*opened.values(), *([] if goal is None else [goal])]
    named = [v.feature_names for v in values if isinstance(v, Mixture) and v.feature_names]
    for names in named:
        different = sorted(set(names) ^ set(named[0]))
        if different:
            raise ValueError(
                f"the mixtures have different features (one of them lacks {different[0]!r}); fit "
                "them all on the same columns."
            )
    if named:
        return named[0]
    for value in values:
        if isinstance(value, Table):
            without = (reading.label, reading.domain, *reading.drop)
            return value.features(
                reading.columns, [name for name in without if name in value.columns]
            )
    return None


def _read_source(
    table: Table,
    name: str,
    names: tuple[str, ...] | None,
    reading: Reading,
    domains: Collection[str] | None,
) -> dict[str, Samples]:
    if reading.label is None:
        raise ValueError(
            f"{table.files[0]} is a source, and sources need classes; name their column (label, "
            "--label; in an npz it is y)."
        )
    return split_domains(_read(table, names, reading, domains), name)


def _read(
    table: Table,
    names: tuple[str, ...] | None,
    reading: Reading,
    domains: Collection[str] | None,
) -> Samples:
    absent = [name for name in names or () if name not in table.columns]
    if absent:
        raise ValueError(
            f"{table.files[0]} has no column {absent[0]!r}, which is a feature of the other "
            "domains; add it, or leave it out of all of them (drop, --drop)."
        )
    return table.read(
        names, reading.label, reading.domain, missing=reading.missing, domains=domains
    )
