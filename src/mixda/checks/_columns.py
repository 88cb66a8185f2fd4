"""Which columns are features, how they are encoded, and why the others are left out."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.text import did_you_mean, listed
from mixda.checks._frames import Frame
from mixda.tables import Column, check_text_columns, domain_names

_MIN_ROWS = 10  # in a domain, to recognize an identifier or a timestamp
_MIN_EXPECTED_REPEATS = 10.0  # of distinct integers, if they were drawn from their range
_MAX_LEVELS = 30  # of a column of text that is used without being asked for
_MAX_CHOSEN_LEVELS = 1000
_ID_NAME = re.compile(
    r"(?i)(^|[_\W])(id|ids|uid|uuid|guid|key|index|idx|serial|no|nr|number|row|record)$"
    r"|(?-i:[a-z](Id|ID|No|Nr)$)"
)
_TIME_NAME = re.compile(r"(?i)(^|[_\W])(time|date|datetime|timestamp|ts|day|year|month)([_\W]|$)")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([T ].*)?"
    r"|\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?"
)


@dataclass(frozen=True)
class ColumnUse:
    """Whether a column is used, as what, and why not.

    `kind` is "number", "category", "ordinal", "text", "date", "empty", "label" or "domain".
    """

    name: str
    kind: str
    used: bool
    reason: str = ""


@dataclass(frozen=True)
class Request:
    """What the user asked for: columns of classes and domains, features, ordinals."""

    labels: Collection[str] = ()
    domain: str | None = None
    columns: Sequence[str] | None = None
    drop: Collection[str] = ()
    ordinal: Mapping[str, Sequence[str]] = field(default_factory=dict)
    numbers_only: bool = False


@dataclass(frozen=True)
class Decision:
    """The use of a column, its encoding if it is used, and a finding (severity, code, …) if any."""

    use: ColumnUse
    column: Column | None = None
    finding: tuple[str, str, str, str] | None = None


def decide_columns(frames: Sequence[Frame], request: Request) -> list[Decision]:
    """Decide about every column of some domains."""
    sources = [frame for frame in frames if not frame.is_target]
    names = list(dict.fromkeys(name for frame in [*sources, *frames] for name in frame.kinds))
    for name in request.columns or ():
        if name not in names:
            where = f"{frames[0].files[0]} has"
            raise MixdaError(
                f"{where} no column {name!r} (columns, --columns);{did_you_mean(name, names)} its "
                f"columns are {listed([repr(column) for column in names])}."
            )
    if request.columns is not None:
        names = [*request.columns, *(name for name in names if name not in request.columns)]
    return [_decide(name, frames, request) for name in names]


def _decide(name: str, frames: Sequence[Frame], request: Request) -> Decision:
    kinds = {frame.name: frame.kinds[name] for frame in frames if name in frame.kinds}
    given = {kind for kind in kinds.values() if kind != "empty"}
    is_text = bool(given) and given <= {"text", "other"}
    kind = "empty" if not given else "text" if is_text else "number"
    chosen = request.columns is not None and name in request.columns
    if name in request.drop:
        return _left_out(name, kind, "left out on request (drop, --drop)")
    if request.columns is not None and not chosen:
        return _left_out(name, kind, "not among the requested columns (columns, --columns)")
    if given & {"label", "domain"} and not chosen:
        return _left_out(name, next(iter(given)), f"the array {name!r} of an npz file")
    if not given:
        return _left_out(name, kind, "it has no value", ("note", "empty"))
    holders = [frame for frame in frames if name in frame.kinds]
    if name in request.ordinal:
        return _use(Column(name, "ordinal", tuple(request.ordinal[name])))
    if not is_text and given & {"text", "other"}:
        return _conflict(name, holders)
    decision = _decide_text(name, holders, request, chosen) if is_text else None
    if decision is None:
        decision = _decide_number(name, holders, chosen)
    if decision.use.used and len(holders) < len(frames):
        return _absent(name, kind, frames, chosen)
    return decision


def _decide_number(name: str, frames: Sequence[Frame], chosen: bool) -> Decision:
    cells = [frame.values[name] for frame in frames]
    cells = [values[np.isfinite(values)] for values in cells]
    cells = [values for values in cells if len(values)]
    enough = bool(cells) and all(len(values) >= _MIN_ROWS for values in cells)
    brings_back = f"--columns {name},… uses it"
    if chosen or not enough:
        return _use(Column(name))
    if all(_is_time(values) for values in cells) or (
        _TIME_NAME.search(name) and all(_is_monotone(values) for values in cells)
    ):
        return _left_out(name, "date", "it is a timestamp", ("note", "timestamp"), brings_back)
    if _is_identifier(name, cells):
        return _left_out(name, "number", "it is an identifier", ("note", "identifier"), brings_back)
    constant = all((values == values[0]).all() for values in cells)
    if constant and len({float(values[0]) for values in cells}) > 1:
        reason = "it is constant within each domain and tells only where a row comes from"
        return _left_out(name, "number", reason, ("note", "site-code"), brings_back)
    return _use(Column(name))


def _decide_text(
    name: str, frames: Sequence[Frame], request: Request, chosen: bool
) -> Decision | None:
    """Decide about a column of text; None if it is to be treated as numbers."""
    sources = [frame for frame in frames if not frame.is_target] or list(frames)
    cells = [[v for v in frame.values[name].tolist() if v is not None] for frame in sources]
    texts = domain_names(np.array([v for part in cells for v in part], dtype=object))
    levels, n = sorted(set(texts.tolist())), len(texts)
    brings_back = f"--columns {name},… uses it"
    if not chosen and n and np.mean([bool(_DATE.fullmatch(text)) for text in texts[:1000]]) > 0.9:
        return _left_out(name, "date", "it is a timestamp", ("note", "timestamp"), brings_back)
    looks_numeric = None if chosen else _number_like(name, frames)
    if looks_numeric is not None:
        return looks_numeric
    if request.numbers_only:
        if chosen:
            frames[0].table.features([name])  # raises an error that names the first such cell
        reason = "it is text, and a mixture file holds numbers only"
        return _left_out(name, "text", reason, ("note", "text"), f"encode it, or --drop {name}")
    if not chosen and len(levels) > n / 2:
        reason = "nearly every row has a value of its own"
        return _left_out(name, "text", reason, ("note", "identifier"), brings_back)
    if len(levels) > (_MAX_CHOSEN_LEVELS if chosen else _MAX_LEVELS):
        reason = f"it has {len(levels)} different values"
        remedy = f"group them, --columns {name},… uses it, or --drop {name}"
        return _left_out(name, "text", reason, ("warning", "many-levels"), remedy)
    constant = all(len(set(part)) <= 1 for part in cells)
    if constant and not chosen:
        if len(levels) < 2:
            return _left_out(name, "text", "it has a single value", ("note", "constant"))
        reason = "it is constant within each domain and tells only where a row comes from"
        return _left_out(name, "text", reason, ("note", "site-code"), brings_back)
    return _use(Column(name, "category", tuple(levels)))


def _number_like(name: str, frames: Sequence[Frame]) -> Decision | None:
    """Return a decision about text that was probably meant to be numbers."""
    files = [file for frame in frames for file in frame.table.table_files]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_text_columns(files, [name])
        except MixdaError as error:
            finding = ("blocker", "number-as-text", str(error), "")
            return Decision(ColumnUse(name, "text", False, "it looks like numbers"), None, finding)
    if not caught:
        return None
    finding = ("warning", "number-as-text", str(caught[0].message), "")
    return Decision(ColumnUse(name, "text", False, "it looks like numbers"), None, finding)


def _is_time(values: NDArray[Any]) -> bool:
    """Return whether numbers are dates (20240131) or Unix times of the years 2000 to 2100."""
    if not (values == np.round(values)).all() or len(np.unique(values)) < 2:
        return False
    day, month, year = values % 100, values // 100 % 100, values // 10_000
    is_date = (year >= 1900) & (year <= 2100) & (month >= 1) & (month <= 12)
    if (is_date & (day >= 1) & (day <= 31)).all():
        return True
    seconds = [values / unit for unit in (1.0, 1e3, 1e6, 1e9)]
    return any(bool(((t > 9.4e8) & (t < 4.2e9)).all()) for t in seconds)


def _is_monotone(values: NDArray[Any]) -> bool:
    steps = np.diff(values)
    steady = bool((steps >= 0).all() or (steps <= 0).all())
    return steady and 2 * len(np.unique(values)) >= len(values)


def _is_identifier(name: str, cells: Sequence[NDArray[Any]]) -> bool:
    """Return whether numbers go up or down in every row, or are integers that never repeat.

    Integers drawn from a range of r values would repeat about n (n - 1) / 2 r times.
    """
    distinct = all(len(np.unique(values)) == len(values) for values in cells)
    if not distinct:
        return False
    if all(_is_monotone(values) for values in cells):
        return True
    if not all((values == np.round(values)).all() for values in cells):
        return False
    ranges = [float(np.ptp(values)) + 1.0 for values in cells]
    pairs = [len(values) * (len(values) - 1) / 2 for values in cells]
    repeats = sum(n / r for n, r in zip(pairs, ranges, strict=True))
    return repeats >= _MIN_EXPECTED_REPEATS or _ID_NAME.search(name) is not None


def _conflict(name: str, holders: Sequence[Frame]) -> Decision:
    text = next(frame for frame in holders if frame.kinds[name] in ("text", "other"))
    numeric = next(frame for frame in holders if frame.kinds[name] in ("number", "bool"))
    evidence = next((f.evidence(name) for f in text.table.table_files if name in f.kinds), "")
    sentence = (
        f"{text.files[0]}: column {name!r} is not made of numbers{evidence}, as it is in "
        f"{numeric.files[0]}"
    )
    finding = ("blocker", "type-conflict", sentence, f"correct it, or leave it out (--drop {name})")
    return Decision(ColumnUse(name, "text", False, "text here, numbers there"), None, finding)


def _absent(name: str, kind: str, frames: Sequence[Frame], chosen: bool) -> Decision:
    first = next((frame for frame in frames if not frame.is_target), frames[0])
    lacking = next(frame for frame in frames if name not in frame.kinds)
    expected = chosen or (name in first.kinds and kind == "number")
    sentence = (
        f"{lacking.files[0]} has no column {name!r}, which is a feature of the other domains"
        f"{_similar(name, lacking)}"
    )
    remedy = f"add it, or leave it out of all of them (--drop {name})"
    severity = "blocker" if expected else "note"
    finding = (severity, "missing-column", sentence, remedy)
    reason = f"{lacking.name!r} does not have it"
    return Decision(ColumnUse(name, kind, False, reason), None, finding)


def _similar(name: str, frame: Frame) -> str:
    return did_you_mean(name, frame.kinds).replace(" did you mean", ", but", 1).rstrip("?")


def _use(column: Column) -> Decision:
    return Decision(ColumnUse(column.name, column.kind, True), column)


def _left_out(
    name: str, kind: str, reason: str, found: tuple[str, str] | None = None, remedy: str = ""
) -> Decision:
    finding = None
    if found is not None:
        sentence = f"column {name!r} is left out because {reason}"
        finding = (*found, sentence, remedy)
    return Decision(ColumnUse(name, kind, False, reason), None, finding)
