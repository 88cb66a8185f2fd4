"""Checks of the classes: spellings, classes that domains share, domains too small."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from mixda._core.text import listed
from mixda.checks._findings import Finding
from mixda.checks._frames import Frame

_MIN_ROWS = 10  # of a domain
_MIN_SIMILARITY = 0.85  # of two names, one of which may be a typing error
_RARE_SHARE = 0.01


def class_counts(frame: Frame) -> dict[str, int]:
    """Return the number of rows of each class, without unlabeled rows."""
    counts = Counter([] if frame.y is None else frame.y.tolist())
    counts.pop("", None)
    return dict(sorted(counts.items()))


def label_findings(frames: Sequence[Frame]) -> Iterator[Finding]:
    """Compare the classes of the sources. The classes of the target are never read."""
    sources = [frame for frame in frames if not frame.is_target and frame.y is not None]
    counts = {frame.name: class_counts(frame) for frame in sources}
    yield from _small_domains(frames)
    if not sources:
        return
    classes = sorted({name for part in counts.values() for name in part})
    yield from _spellings(classes, counts)
    yield from _shared_classes(counts)
    for frame in sources:
        n_missing = int((frame.y == "").sum()) if frame.y is not None else 0
        if n_missing:
            yield Finding(
                "warning",
                "unlabeled-rows",
                f"{n_missing:,} of {frame.n_rows:,} rows of {frame.name!r} have no class and are "
                "left out",
                "label them, or move them to the target",
            )
    total = Counter[str]()
    for part in counts.values():
        total.update(part)
    rare = [name for name, n in total.items() if n < _RARE_SHARE * total.total()]
    if rare:
        yield Finding(
            "note",
            "rare-class",
            f"class {listed(rare)} has less than {_RARE_SHARE:.0%} of the rows of the sources",
            "its predictions are unreliable; add rows or merge it with another class",
        )


def _small_domains(frames: Sequence[Frame]) -> Iterator[Finding]:
    for frame in frames:
        if frame.n_rows < _MIN_ROWS:
            yield Finding(
                "warning",
                "few-rows",
                f"domain {frame.name!r} has {frame.n_rows} rows, too few to describe it",
                "add rows, or leave the domain out",
            )


def _spellings(classes: Sequence[str], counts: dict[str, dict[str, int]]) -> Iterator[Finding]:
    """Find classes that differ by case, spaces or punctuation, or by a typing error."""
    by_key: dict[str, list[str]] = {}
    for name in classes:
        by_key.setdefault(re.sub(r"[\W_]+", "", name.casefold()) or name, []).append(name)
    for names in by_key.values():
        if len(names) > 1:
            yield Finding(
                "blocker",
                "label-spelling",
                f"classes {_quoted(names)} differ only in their spelling ({_where(names, counts)}) "
                "and would be different classes",
                f"write them the same way (--rename-label {names[1]!r}={names[0]!r} does so)",
            )
    keys = [key for key in by_key if len(key) > 4]
    for k, key in enumerate(keys):
        for other in difflib.get_close_matches(key, keys[k + 1 :], 1, _MIN_SIMILARITY):
            names = [by_key[key][0], by_key[other][0]]
            together = any(set(names) <= set(part) for part in counts.values())
            numbered = re.sub(r"\d", "", key) == re.sub(r"\d", "", other)  # fault1, fault2
            if not together and not numbered:
                yield Finding(
                    "warning",
                    "label-typo",
                    f"classes {_quoted(names)} are similar ({_where(names, counts)}) and may be "
                    "the same",
                    f"if so, --rename-label {names[1]!r}={names[0]!r}",
                )


def _shared_classes(counts: dict[str, dict[str, int]]) -> Iterator[Finding]:
    holders = Counter(name for part in counts.values() for name in part)
    if len(holders) == 1:
        yield Finding(
            "blocker",
            "one-class",
            f"the sources have one class only ({next(iter(holders))!r})",
            "add rows of other classes, because a classifier needs at least two",
        )
    if len(holders) < 2:
        return
    if len(counts) > 1 and max(holders.values()) == 1:
        alone = all(len(part) == 1 for part in counts.values())
        what = (
            "every source has a single class of its own, so class and source cannot be told apart"
            if alone
            else f"the sources share no class ({_vocabularies(counts)})"
        )
        yield Finding(
            "blocker",
            "confounded" if alone else "no-shared-class",
            what,
            "give every source rows of several classes, or make the names of the classes agree",
        )
        return
    for name, part in counts.items():
        if len(part) > 1 and max(holders[label] for label in part) == 1 and len(counts) > 1:
            yield Finding(
                "blocker",
                "no-shared-class",
                f"source {name!r} shares no class with the others ({_vocabularies(counts)})",
                "if its classes have other names, make them agree (such as --rename-label 0=ok)",
            )
    for name, part in counts.items():
        if len(part) == 1 and len(counts) > 1:
            yield Finding(
                "warning",
                "single-class",
                f"source {name!r} has a single class ({next(iter(part))!r})",
                "what is particular to this source looks like that class; add rows of others",
            )
    private = [name for name, n in holders.items() if n == 1]
    if private and len(counts) > 1:
        yield Finding(
            "note",
            "class-in-one-source",
            f"class {listed(private)} occurs in one source only ({_where(private, counts)})",
            "check that the same class does not have another name elsewhere",
        )


def _where(names: Sequence[str], counts: dict[str, dict[str, int]]) -> str:
    parts = [
        f"{name!r}: {listed([domain for domain in counts if name in counts[domain]], 4)}"
        for name in names[:4]
    ]
    return "; ".join(parts)


def _vocabularies(counts: dict[str, dict[str, int]]) -> str:
    return "; ".join(f"{domain}: {listed(list(part), 5)}" for domain, part in counts.items())


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(repr(name) for name in names)
