"""Checks of the values: gaps, units, duplicates, and distances between domains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from mixda._core.text import listed
from mixda._core.typing import Array
from mixda.checks._findings import Finding
from mixda.checks._frames import Frame
from mixda.em import fit_mixture
from mixda.tables import Columns, domain_names
from mixda.transport import mw2

_MANY_MISSING = 0.5
_UNIT_RATIO = 100.0  # between the typical values of a column in two domains
_MANY_DUPLICATES = 0.1
_OUTLIER_SPREADS = 50.0  # interquartile ranges from the median
_FAR = 2.0  # times the largest distance between two sources
_ROWS_PER_DISTANCE = 1000
_COMPONENTS_PER_DISTANCE = 3


def encoded(frame: Frame, encoding: Columns) -> Array:
    """Return the features of a frame, with NaN for missing values."""
    return encoding.encode(frame.values.__getitem__)


def missing_shares(frames: Sequence[Frame], encoding: Columns) -> dict[str, dict[str, float]]:
    """Return the share of missing values by column and domain, where there are any."""
    shares: dict[str, dict[str, float]] = {}
    for column in encoding.columns:
        for frame in frames:
            if frame.n_rows:
                gaps = np.isnan(column.encode(frame.values[column.name])).any(axis=1).mean()
                if gaps:
                    shares.setdefault(column.name, {})[frame.name] = float(gaps)
    return shares


def missing_findings(
    shares: dict[str, dict[str, float]], frames: Sequence[Frame], encoding: Columns
) -> Iterator[Finding]:
    """Report columns that are mostly empty, and how many rows have a gap."""
    for column, by_domain in shares.items():
        worst = max(by_domain, key=lambda name: by_domain[name])
        if by_domain[worst] > _MANY_MISSING:
            yield Finding(
                "warning",
                "mostly-missing",
                f"column {column!r} is empty in {by_domain[worst]:.0%} of the rows of {worst!r}",
                f"its values there are guessed from other columns; --drop {column} leaves it out",
            )
    if shares:
        n_rows = sum(frame.n_rows for frame in frames)
        rows = sum(int(np.isnan(encoded(frame, encoding)).any(axis=1).sum()) for frame in frames)
        yield Finding(
            "note",
            "missing-values",
            f"{rows:,} of {n_rows:,} rows have a missing value, in {len(shares)} column(s)",
            "they are kept, and gaps are integrated out (--missing mixture); --missing drop leaves "
            "these rows out",
        )


def level_findings(frames: Sequence[Frame], encoding: Columns) -> Iterator[Finding]:
    """Report levels of text that the encoding does not know."""
    for column in encoding.columns:
        if column.kind == "number":
            continue
        for frame in frames:
            cells = np.array([v for v in frame.values[column.name].tolist() if v is not None])
            names = domain_names(cells) if len(cells) else cells
            unknown = names[~np.isin(names, column.levels)]
            if not len(unknown):
                continue
            shown = listed([repr(name) for name in np.unique(unknown).tolist()], 4)
            where = f"in {len(unknown):,} of {frame.n_rows:,} rows of {frame.name!r}"
            if column.kind == "ordinal":
                yield Finding(
                    "warning" if frame.is_target else "blocker",
                    "unknown-level",
                    f"column {column.name!r} has {shown} {where}, which --ordinal does not list; "
                    "these cells would count as missing",
                    f"list all levels of {column.name!r} in their order",
                )
            else:
                yield Finding(
                    "warning",
                    "unknown-level",
                    f"column {column.name!r} has {shown} {where}, which no source has",
                    "these rows get a zero for every level; check the spelling",
                )


def unit_findings(frames: Sequence[Frame], encoding: Columns) -> Iterator[Finding]:
    """Report columns of numbers whose size differs between domains, and extreme values."""
    for column in encoding.columns:
        if column.kind != "number":
            continue
        cells = {frame.name: frame.values[column.name] for frame in frames}
        cells = {name: values[np.isfinite(values)] for name, values in cells.items()}
        sizes = {n: float(np.median(np.abs(v))) for n, v in cells.items() if len(v) > 1}
        sizes = {name: size for name, size in sizes.items() if size > 0}
        if len(sizes) > 1:
            large = max(sizes, key=lambda name: sizes[name])
            small = min(sizes, key=lambda name: sizes[name])
            ratio = sizes[large] / sizes[small]
            if ratio >= _UNIT_RATIO:
                yield Finding(
                    "warning",
                    "unit-change",
                    f"column {column.name!r} is about {ratio:,.0f} times larger in {large!r} than "
                    f"in {small!r}",
                    f"if units differ, convert them; --scale domain or --drop {column.name} avoids "
                    "the difference",
                )
        for name, values in cells.items():
            yield from _outliers(column.name, name, values)


def duplicate_findings(frames: Sequence[Frame], encoding: Columns) -> Iterator[Finding]:
    """Report rows that occur in two domains."""
    rows = {frame.name: {row.tobytes() for row in encoded(frame, encoding)} for frame in frames}
    for one, other in combinations(frames, 2):
        common = len(rows[one.name] & rows[other.name])
        smaller = max(1, min(len(rows[one.name]), len(rows[other.name])))
        if common > 1 and common >= _MANY_DUPLICATES * smaller:
            yield Finding(
                "warning",
                "duplicates",
                f"{common:,} of {smaller:,} different rows of one domain occur in {one.name!r} and "
                f"in {other.name!r}",
                "if they are the same samples, remove them from one; estimated accuracies would be "
                "too high",
            )


def domain_distances(frames: Sequence[Frame], encoding: Columns) -> dict[str, dict[str, float]]:
    """Return MW2 between all domains, in standard deviations of the sources."""
    samples = {frame.name: encoded(frame, encoding) for frame in frames if frame.n_rows > 1}
    sources = np.vstack([samples[f.name] for f in frames if f.name in samples and not f.is_target])
    rows = np.vstack(list(samples.values()))
    observed = ~np.isnan(rows).all(axis=0) & ~np.isnan(sources).all(axis=0)
    mean, std = np.nanmean(sources[:, observed], axis=0), np.nanstd(sources[:, observed], axis=0)
    mixtures = {}
    for name, X in samples.items():
        Z = (X[:: -(-len(X) // _ROWS_PER_DISTANCE), observed] - mean) / np.where(std > 0, std, 1.0)
        Z[:, np.isnan(Z).all(axis=0)] = 0.0
        k = max(1, min(_COMPONENTS_PER_DISTANCE, len(Z) // 10))
        mixtures[name] = fit_mixture(Z, k, min_std=0.1, random_state=0)
    distances = {a: dict.fromkeys(mixtures, 0.0) for a in mixtures}
    for a, b in combinations(mixtures, 2):
        distances[a][b] = distances[b][a] = float(mw2(mixtures[a], mixtures[b]))
    return distances


def distance_findings(
    distances: dict[str, dict[str, float]], frames: Sequence[Frame]
) -> Iterator[Finding]:
    """Report a target that is much farther from the sources than these from each other."""
    sources = [frame.name for frame in frames if not frame.is_target and frame.name in distances]
    for target in (frame.name for frame in frames if frame.is_target and frame.name in distances):
        between = [distances[a][b] for a, b in combinations(sources, 2)]
        nearest = min(sources, key=lambda name: distances[target][name])
        if between and distances[target][nearest] > _FAR * max(between):
            yield Finding(
                "warning",
                "far-target",
                f"the target {target!r} is {distances[target][nearest]:.1f} standard deviations "
                f"from the nearest source ({nearest!r}), but the sources are at most "
                f"{max(between):.1f} apart",
                "check units and columns; estimated accuracies may not hold",
            )


def _outliers(column: str, domain: str, values: Array) -> Iterator[Finding]:
    if len(values) < 20:
        return
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    if high > low:
        extreme = values[np.abs(values - median) > _OUTLIER_SPREADS * (high - low)]
        few = extreme.size <= 0.01 * len(values) + 1
        if extreme.size and (few or len(np.unique(extreme)) == 1):  # such as -999 for no value
            shown = listed([f"{value:g}" for value in np.unique(extreme)], 3)
            yield Finding(
                "warning",
                "extreme-values",
                f"column {column!r} has values far from all others in {domain!r} ({shown})",
                "if they mark missing values, empty these cells",
            )
