"""The cells of a run: arguments are checked and completed here, before any work starts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mixda._core.errors import MixdaError
from mixda._core.text import listed
from mixda._core.validation import check_choice
from mixda.benchmark._ablations import ablation_cells
from mixda.benchmark._cells import Cell, digest
from mixda.benchmark._entries import (
    METHODS,
    SHALLOW,
    check_methods,
    make_method,
    parameters_of,
    without_defaults,
)
from mixda.benchmark._features import FEATURES, check_backbone, recipe
from mixda.benchmark._suites import ABLATIONS, SUITES, find_suite, fingerprint, own_name, thin
from mixda.datasets import DomainDataset


@dataclass(frozen=True, eq=False)
class Plan:
    """The data of a run and its cells, with all hyper-parameters."""

    name: str  # of the data
    data: DomainDataset
    cells: list[Cell]
    is_own: bool  # whether the data are the user's own


def plan_cells(
    suite: str,
    methods: Iterable[str] | None,
    seeds: int,
    out: Path,
    *,
    settings: Mapping[str, Mapping[str, Any]] | None,
    targets: str | Sequence[str | int] | None,
    features: str | None,
    rows: int | None,
    head: str,
    data: str | None,
    reading: Mapping[str, Any],
) -> Plan:
    """Load the data and list the cells; the arguments are those of `mixda.benchmark.run`."""
    is_ablation = suite in ABLATIONS
    if data is not None and not is_ablation:
        raise MixdaError(
            f"data={data!r} applies only to the ablations {', '.join(ABLATIONS)}, and {suite!r} is "
            "none of them. Omit data."
        )
    source = ("cwru" if data is None else data) if is_ablation else suite
    entry = find_suite(source, reading)
    features = check_choice(entry.features if features is None else features, "features", FEATURES)
    check_backbone(features)
    is_own = source not in SUITES
    if is_own:
        _check_apart(out, Path(source).expanduser())
    samples = thin(entry.load(), rows)
    if is_own:
        source = own_name(source)
        suite = suite if is_ablation else source
    names = check_targets(samples, entry.targets if targets is None else targets)
    if is_ablation and targets is not None and len(names) > 1:
        raise MixdaError(
            f"targets must be a single domain for the ablation {suite!r}, got {', '.join(names)}."
        )
    base = Cell(suite, source, features, rows, fingerprint(samples), "", "", 0, {}, head)
    base = replace(base, recipe=recipe(features))
    chosen = None if methods is None else check_methods(methods)
    by_method = {
        check_methods([name])[0]: dict(values) for name, values in (settings or {}).items()
    }
    if is_ablation:
        cells = ablation_cells(base, samples, names, chosen, seeds, by_method)
    else:
        cells = _grid(base, names, chosen or list(SHALLOW), seeds, by_method)
    _check_settings(by_method, cells)
    return Plan(source, samples, _with_parameters(cells), is_own)


def describe_data(plan: Plan) -> str:
    """Summarize the data of a run: rows, features, domains and classes."""
    data = plan.data
    named = f": {listed(data.feature_names)}" if data.feature_names else ""
    parts = [f"{plan.name}: {len(data.X):,} rows", f"{data.X.shape[1]} features{named}"]
    for kind, names in (("domains", data.domain_names), ("classes", data.class_names)):
        parts.append(f"{len(names)} {kind}: {listed(names)}")
    return "\n  ".join(parts)


def _check_apart(out: Path, own: Path) -> None:
    if own.is_dir() and own.resolve() in (out.resolve(), *out.resolve().parents):
        raise MixdaError(
            f"out={str(out)!r} is inside the data folder, so the files of the run would be read as "
            "data. Choose another folder."
        )


def check_targets(data: DomainDataset, targets: str | Sequence[str | int] | None) -> list[str]:
    """Return the names of the target domains, by default of all domains."""
    known = data.domain_names
    if len(known) < 2:
        raise MixdaError(
            f"The data have a single domain ({known[0]}), but a benchmark needs a source and a "
            "target. Name the column of the domains (domain=… in Python, --domain on the command "
            "line)."
        )
    if targets is None:
        return list(known)
    given = _split_names(targets, known) if isinstance(targets, str) else targets
    names = [known[data.domain_index(_name_or_number(one, known))] for one in given]
    if not names:
        raise MixdaError(f"targets is empty. Choose among the domains {listed(known)}.")
    if len(set(names)) < len(names):
        raise MixdaError(f"targets must be distinct, got {', '.join(names)}.")
    return names


def _split_names(text: str, known: Sequence[str]) -> list[str]:
    """Split at commas that are not part of a name; the longest known name wins."""
    parts = text.split(",")
    names = []
    while parts:
        ends = [i for i in range(len(parts), 0, -1) if ",".join(parts[:i]).strip() in known]
        end = ends[0] if ends else 1
        names.append(",".join(parts[:end]).strip())
        parts = parts[end:]
    return [name for name in names if name]


def _name_or_number(domain: str | int, known: Sequence[str]) -> str | int:
    """Convert digits that are not the name of a domain to its number."""
    is_number = isinstance(domain, str) and domain not in known and domain.isdecimal()
    return int(domain) if is_number else domain


def _grid(
    base: Cell,
    targets: Sequence[str],
    methods: Sequence[str],
    seeds: int,
    settings: Mapping[str, Mapping[str, Any]],
) -> list[Cell]:
    own = {m: without_defaults(m, settings.get(m, {})) for m in methods}
    return [
        replace(base, target=target, method=m, seed=seed, settings=own[m])
        for target in targets
        for m in methods
        for seed in range(seeds)
    ]


def _check_settings(settings: Mapping[str, Any], cells: Sequence[Cell]) -> None:
    unused = set(settings) - {cell.method for cell in cells}
    if unused:
        raise MixdaError(
            f"settings names {', '.join(sorted(unused))}, which this run does not include. Add it "
            "to methods, or remove its settings."
        )
    try:
        json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError):
        raise MixdaError(
            f"settings must hold finite numbers, strings, lists or None, got {settings!r}."
        ) from None


def _with_parameters(cells: Sequence[Cell]) -> list[Cell]:
    """Add all hyper-parameters to the cells; invalid settings raise an error here."""
    parameters: dict[tuple[str, str], dict[str, Any]] = {}
    complete = []
    for cell in cells:
        key = cell.method, digest(dict(cell.settings))
        if key not in parameters:
            parameters[key] = parameters_of(make_method(cell.method, cell.settings, 0))
        has_head = METHODS[cell.method].mixture and cell.experiment == "accuracy"
        # without a head the choice of a head must not make another cell
        complete.append(
            replace(cell, parameters=parameters[key], head=cell.head if has_head else None)
        )
    return complete
