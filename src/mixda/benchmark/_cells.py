"""The cells of a benchmark and their JSON files, named by a key.

The key is a digest of everything that determines the outcome: data, features and their recipe, and
all hyper-parameters including defaults. A finished cell is therefore never run twice.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mixda._core.atomic import write_atomically
from mixda._core.errors import MixdaError
from mixda.benchmark._entries import METHODS

_FOLDERS = ("cells", "features")
_STALE_AFTER_SECONDS = 3600.0  # for temporary files of killed runs
# as write_atomically names them, now and in earlier versions
_TEMPORARY = re.compile(r"\..+\.(json|npz)\.[a-z0-9_]{8}(\.mixda-tmp)?")
_ERROR = ".error.json"
_OPTIONAL = {"parameters", "recipe"}  # missing in cells of older runs
# entries that tables and figures need: numbers by experiment and by ablation, then others
_NUMBERS = {"accuracy": ("accuracy",), "interpolation": ("accuracy",), "trajectory": ()}
_DRAWN = {"lighter": ("size",), "faster": ("learn_seconds", "fit_seconds", "fit_cpu_seconds")}
_PARTS: dict[str, dict[str, Any]] = {
    "interpolation": {"lambda0": list, "curve": list, "own_lambda0": (int, float, type(None))},
    "trajectory": {"arrays": str},
}

Record = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """Everything that determines an outcome.

    Attributes
    ----------
    suite : str
        Name of the suite or ablation; for your own data, the name of the file or folder, marked as
        such.
    data, features, rows, fingerprint
        Origin of the samples (the suite itself, except for ablations), kind of features, maximum
        number of rows per domain (None: all), and a digest of the arrays.
    target, method : str
    seed : int
        Seed of the method; the held-out fold is ``seed % n_folds``.
    settings : dict
        Hyper-parameters that differ from the method's defaults.
    head : str or None
        Classifier trained on samples of the target mixture, if the method has one.
    experiment : str
        "accuracy", "interpolation" or "trajectory".
    parameters : dict
        All hyper-parameters of the method that JSON can represent, including defaults.
    recipe : str
        Version of the computation of features and folds.

    Examples
    --------
    >>> from mixda.benchmark import Cell
    >>> a = Cell("toy", "toy", "raw", None, "f00d", "target", "GMMWBT", 0)
    >>> b = Cell("toy", "toy", "raw", None, "f00d", "target", "GMMWBT", 0, {"beta": 2.0})
    >>> a.key[:21], a.key == b.key
    ('toy-target-GMMWBT-s0-', False)
    """

    suite: str
    data: str
    features: str
    rows: int | None
    fingerprint: str
    target: str
    method: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    head: str | None = "logistic"
    experiment: str = "accuracy"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    recipe: str = ""

    @property
    def key(self) -> str:
        """Name of the file of the cell, without its suffix."""
        name = "-".join(slug(word) for word in (self.suite, self.target, self.method))
        return f"{name}-s{self.seed}-{digest(asdict(self))}"


def digest(value: Any) -> str:
    """Hash a JSON value to twelve hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def slug(text: str) -> str:
    """Reduce a name to letters, digits and dashes, for a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40] or "x"


def check_folder(out: str | Path) -> Path:
    """Return the output folder; an empty string, which would mean the current one, is refused."""
    if not str(out).strip():
        raise MixdaError("out is empty. Pass a folder ('.' for the current one), or omit it.")
    return Path(out)


def is_done(folder: Path, cell: Cell) -> bool:
    """Return whether a cell is finished and its file undamaged."""
    path = _path(folder, cell)
    try:
        return path.is_file() and "error" not in _read(path)
    except ValueError:
        return False


def write_result(folder: Path, cell: Cell, outcome: Record) -> None:
    """Write a finished cell and remove its error file."""
    _write(_path(folder, cell), {"cell": asdict(cell), **outcome})
    _error_path(folder, cell).unlink(missing_ok=True)


def write_error(folder: Path, cell: Cell, outcome: Record) -> None:
    """Write the error of a failed cell, which the next run tries again."""
    _write(_error_path(folder, cell), {"cell": asdict(cell), **outcome})


def read_records(folder: str | Path) -> list[Record]:
    """Read all cells of a run, finished (with ``accuracy``) and failed (with ``error``).

    Parameters
    ----------
    folder : str or Path
        The ``out`` of `mixda.benchmark.run`.

    Examples
    --------
    >>> from mixda.benchmark import read_records
    >>> read_records("no/such/run")
    Traceback (most recent call last):
    ...
    mixda.MixdaError: no/such/run contains no benchmark run. Pass ...
    """
    cells = Path(folder) / "cells"
    records = [_read(path) for path in sorted(cells.glob("*.json"))]
    if not records:
        raise MixdaError(
            f"{folder} contains no benchmark run. Pass the folder given as out, or --out of "
            "mixda bench run."
        )
    finished = {digest(record["cell"]) for record in records if "error" not in record}
    return [r for r in records if "error" not in r or digest(r["cell"]) not in finished]


def sweep(folder: Path) -> None:
    """Remove old temporary files of killed runs."""
    for path in (path for name in _FOLDERS for path in (folder / name).glob(".*")):
        if (
            _TEMPORARY.fullmatch(path.name)
            and time.time() - path.stat().st_mtime > _STALE_AFTER_SECONDS
        ):
            path.unlink(missing_ok=True)


def _path(folder: Path, cell: Cell) -> Path:
    return folder / "cells" / f"{cell.key}.json"


def _error_path(folder: Path, cell: Cell) -> Path:
    return folder / "cells" / f"{cell.key}{_ERROR}"


def _read(path: Path) -> Record:
    try:
        record = json.loads(path.read_bytes())
        valid = _is_cell(record["cell"]) and _is_outcome(record)
    except (ValueError, TypeError, KeyError, AttributeError):
        valid = False
    if not valid:
        raise MixdaError(
            f"{path} is not a benchmark cell, is damaged, or is from another version of mixda. "
            "Remove it."
        )
    return dict(record)


def _is_cell(cell: Record) -> bool:
    words = [cell[name] for name in ("suite", "data", "features", "fingerprint", "target")]
    words += [cell.get("recipe", "")]
    return (
        set(Cell.__dataclass_fields__) - _OPTIONAL <= set(cell)
        and all(isinstance(word, str) for word in words)
        and cell["method"] in METHODS
        and _is_count(cell["seed"])
        and (cell["rows"] is None or _is_count(cell["rows"]))
        and isinstance(cell["settings"], dict)
    )


def _is_outcome(record: Record) -> bool:
    """Return whether a record has the entries that tables and figures need."""
    dated = isinstance(record.get("date", ""), str)
    if "error" in record:
        return dated and isinstance(record["error"], str)
    cell = record["cell"]
    is_table = cell["suite"] == cell["data"]
    more = ("fit_cpu_seconds",) if is_table else _DRAWN.get(cell["suite"], ())
    numbers = {name: record[name] for name in (*_NUMBERS[cell["experiment"]], *more)}
    if "head_accuracy" in record:
        numbers["head_accuracy"] = record["head_accuracy"]
    shares = [numbers[name] for name in numbers if name.endswith("accuracy")]
    parts = _PARTS.get(cell["experiment"], {})
    return (
        dated
        and all(_is_number(number) for number in numbers.values())
        and all(share <= 1 for share in shares)
        and all(isinstance(record[name], kind) for name, kind in parts.items())
        and isinstance(record.get("domains", []), list)
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 <= value < math.inf


def _write(path: Path, content: Record) -> None:
    lines = [
        f'"{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in content.items()
    ]
    write_atomically(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
