"""Parallel, resumable simulation of Tennessee Eastman runs with tep-studio."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray

from mixda._core.atomic import write_atomically
from mixda._core.errors import MixdaError
from mixda._core.progress import Progress
from mixda._core.validation import check_number, check_positive_int
from mixda.datasets._npz import read_arrays
from mixda.datasets.tep import class_name

MODES = (1, 2, 3, 4, 5, 6)
FAULTS = tuple(range(29))  # 0 is none
CONTROL_INTERVAL = 0.01  # hours between two actions of the controller
SAMPLES_PER_HOUR = 10
MAGNITUDE_FACTOR = 0.25  # between attempts, if a fault trips the plant
MAX_ATTEMPTS = 5
FIRST_MAGNITUDE = {0: 0.0, 6: MAGNITUDE_FACTOR}  # IDV 6 stops the A feed, which trips the plant
_FRACTIONAL_MAGNITUDES = 0x8F  # tep-studio's default 0x0F rounds magnitudes to 0 or 1

_DTYPES = {"y": np.int8, "d": np.int8, "run": np.int32, "idv_magnitude": np.float16}

Series = NDArray[np.float32]


def generate_tep(
    path: str | Path,
    n_runs: int = 9,
    modes: Sequence[int] = MODES,
    faults: Sequence[int] = FAULTS,
    hours: float = 30.0,
    burn_in: float = 70.0,
    before: float = 0.0,
    n_jobs: int = 1,
    verbose: bool = True,
) -> Path:
    """Simulate runs of the Tennessee Eastman process and write them to a file for `load_tep`.

    For each mode and run, the plant is simulated for `burn_in` hours under Ricker's decentralized
    control. From this state, each fault is simulated for `hours`. Requires the `tep` extra
    (``pip install 'mixda[tep]'``).

    Finished runs are stored in the folder ``<name of path>-cells`` next to `path`, the burn-in of
    each mode and run once. An interrupted call can therefore be resumed, and a call with more runs,
    modes, faults or another `before` simulates only what is new. Run 0 of all modes and faults is
    simulated first, then run 1, and so on.

    Parameters
    ----------
    path : str or Path
        The npz file to write, in the layout of ``tep_modes_sim.npz``.
    n_runs : int
        Number of runs per fault and mode.
    modes : sequence of int
        Modes from 1 to 6, one domain each.
    faults : sequence of int
        Faults from 0 (none) to 28 (IDV 28), one class each.
    hours : float
        Length of a run, which is sampled every 6 minutes.
    burn_in : float
        Hours before the fault. Modes 2 and 5 start from the base case, and the controller needs
        20 hours to reach the set point of their product mix.
    before : float
        Hours of the burn-in to record in front of each run, at most `burn_in`. By default, a run
        starts with the fault.
    n_jobs : int
        Number of parallel simulations (joblib); -1 uses all cores.
    verbose : bool
        Show progress on a terminal.

    Returns
    -------
    Path
        `path`. Its arrays are ``X (n, steps, 34)`` in float16, standardized by ``mu (34,)`` and
        ``sd (34,)``; the fault ``y``, the domain ``d``, ``run``, ``idv_magnitude`` and ``doms``.

    Warns
    -----
    UserWarning
        If a fault has no effect: its series equal those of normal operation from the same state.
        With the default settings, this is the case of IDV 14 in modes 2 and 5.

    Notes
    -----
    A run is determined by mode, fault, run number, `hours`, `burn_in` and the version of
    tep-studio. Faults have magnitude 1, IDV 6 has 0.25. A fault that trips the plant is
    simulated again at a quarter of its magnitude, at most four times; ``idv_magnitude`` records the
    magnitude used. The seeds of ``tep_modes_sim.npz`` are unknown, so its runs cannot be
    reproduced exactly. One hour takes about 0.07 s on one core, and a mode and run with all
    29 classes about a minute.

    Examples
    --------
    >>> from mixda.datasets import generate_tep, load_tep
    >>> path = generate_tep("more.npz", n_runs=20, n_jobs=-1)  # doctest: +SKIP
    >>> load_tep("moments", path=path)  # doctest: +SKIP
    """
    path = Path(path).expanduser()
    n_runs = check_positive_int(n_runs, "n_runs")
    modes = _check_numbers(modes, "modes", MODES)
    faults = _check_numbers(faults, "faults", FAULTS)
    hours = check_number(hours, "hours", least=1 / SAMPLES_PER_HOUR)
    burn_in = check_number(burn_in, "burn_in")
    before = check_number(before, "before", most=burn_in)
    cells = path.with_name(f"{path.stem}-cells")
    if path.suffix != ".npz" or (path.exists() and not cells.is_dir()):
        raise MixdaError(
            f"path must end in .npz and must not be an existing file that generate_tep did not "
            f"write, got {path}."
        )
    version = _simulator_version()
    ending = f"{burn_in:g}h_{hours:g}h_tep{version}.npz"
    try:
        cells.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MixdaError(f"{cells} cannot be created: {error.strerror}.") from None

    branches = [
        _Branch(
            mode,
            run,
            past=cells / f"mode{mode}_past_run{run}_{burn_in:g}h_tep{version}.npz",
            files={f: cells / f"mode{mode}_idv{f:02d}_run{run}_{ending}" for f in faults},
        )
        for mode in modes
        for run in range(n_runs)
    ]
    tasks = [
        joblib.delayed(_simulate)(branch, missing, hours, burn_in)
        for branch in sorted(branches, key=lambda branch: branch.run)
        if (missing := branch.missing()) or (before and not branch.past.exists())
    ]
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    with Progress(max(len(tasks), 1), "simulating", verbose) as progress:
        for done, _ in enumerate(parallel(tasks), start=1):
            progress.update(done)
    _collect(path, modes, branches, before)
    return path


def join_tep(path: str | Path, files: Sequence[str | Path]) -> Path:
    """Join files of Tennessee Eastman runs into one, standardized over all of them.

    Parameters
    ----------
    path : str or Path
        The npz file to write, in the layout of ``tep_modes_sim.npz``.
    files : sequence of str or Path
        Files of this layout with the same modes and the same number of steps, for instance
        ``tep_modes_sim.npz`` and a file of `generate_tep`. Runs of later files are numbered on
        from those of earlier ones.

    Returns
    -------
    Path
        `path`.

    Examples
    --------
    >>> from mixda.datasets import generate_tep, join_tep
    >>> generate_tep("more.npz", n_runs=11, n_jobs=-1)  # doctest: +SKIP
    >>> join_tep("tep20/tep_modes_sim.npz", ["tep_modes_sim.npz", "more.npz"])  # doctest: +SKIP
    """
    path = Path(path).expanduser()
    names = ("X", "mu", "sd", "y", "d", "run", "idv_magnitude", "doms")
    parts = [read_arrays(Path(file).expanduser(), names) for file in files]
    if not parts:
        raise MixdaError("files must name at least one file, got none.")
    for file, part in zip(files, parts, strict=True):
        same = part["X"].shape[1:] == parts[0]["X"].shape[1:]
        if not same or part["doms"].tolist() != parts[0]["doms"].tolist():
            raise MixdaError(
                f"files must have the same modes, steps and variables, but {file} differs from "
                f"{files[0]}."
            )
    first = np.cumsum([0, *(part["run"].max() + 1 for part in parts[:-1])])
    for start, part in zip(first, parts, strict=True):
        part["X"] = part["X"].astype(np.float32) * part["sd"] + part["mu"]
        part["run"] = part["run"] + start
    joined = {
        name: np.concatenate([part[name] for part in parts])
        for name in ("X", "y", "d", "run", "idv_magnitude")
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_runs(path, joined.pop("X"), doms=parts[0]["doms"], **joined)
    return path


class _Branch(NamedTuple):
    """The runs of one mode that share a burn-in, and their files."""

    mode: int
    run: int
    past: Path
    files: dict[int, Path]  # by fault

    def missing(self) -> dict[int, Path]:
        return {fault: file for fault, file in self.files.items() if not file.exists()}


def _check_numbers(values: Sequence[int], name: str, known: tuple[int, ...]) -> tuple[int, ...]:
    numbers = list(values)
    if not numbers or not set(numbers) <= set(known) or len(set(numbers)) != len(numbers):
        raise MixdaError(
            f"{name} must be distinct integers from {known[0]} to {known[-1]}, got {values!r}."
        )
    return tuple(sorted(int(number) for number in numbers))


def _simulator_version() -> str:
    try:
        import tep_studio
    except ImportError:
        raise ImportError(
            "generate_tep requires tep-studio. Install it with: pip install 'mixda[tep]'"
        ) from None
    return str(tep_studio.__version__)


def _simulate(branch: _Branch, missing: dict[int, Path], hours: float, burn_in: float) -> None:
    """Simulate the burn-in of a mode and run once, then each missing fault from there."""
    mode, run = branch.mode, branch.run
    plant = _Plant(mode, run)
    past = plant.advance(burn_in, fault=0, magnitude=0.0)
    if past is None:
        raise MixdaError(
            f"The plant trips in mode {mode}, run {run}, before any fault. Change "
            f"burn_in={burn_in}."
        )
    if not branch.past.exists():
        _write_cell(branch.past, past, 0.0)
    start = copy.deepcopy(plant.controller), plant.simulator.snapshot(), plant.measurements
    for fault, file in missing.items():
        for attempt in range(MAX_ATTEMPTS):
            magnitude = FIRST_MAGNITUDE.get(fault, 1.0) * MAGNITUDE_FACTOR**attempt
            plant.controller = copy.deepcopy(start[0])
            plant.simulator.restore(start[1])
            plant.measurements = start[2]
            series = plant.advance(hours, fault, magnitude)
            if series is not None:
                break
        else:
            raise MixdaError(
                f"The plant trips in mode {mode}, run {run}, at every magnitude of fault {fault}. "
                f"Reduce hours={hours} or change burn_in={burn_in}."
            )
        _write_cell(file, series, magnitude)


class _Plant:
    """The simulator and its controller, both of which have state."""

    def __init__(self, mode: int, run: int) -> None:
        from tep_studio import RickerMultiLoopController, TennesseeEastmanProcess
        from tep_studio.simulation.modes import mode_setpoints

        # the simulator's generator multiplies modulo 2³²: an even seed shortens it, 0 stops it
        seed = np.random.SeedSequence([run, mode]).generate_state(1)[0] | 1
        self.simulator: Any = TennesseeEastmanProcess(ms_flag=_FRACTIONAL_MAGNITUDES)
        self.controller: Any = RickerMultiLoopController(setpoints=mode_setpoints(f"mode{mode}"))
        self.measurements, _ = self.simulator.reset(mode=f"mode{mode}", seed=float(seed))
        self.controller.reset(self.measurements)

    def advance(self, hours: float, fault: int, magnitude: float) -> Series | None:
        """Simulate; return a row of values every 6 minutes, or None if the plant trips."""
        disturbances = np.zeros(28)
        if fault:
            disturbances[fault - 1] = magnitude
        per_row = round(1 / (SAMPLES_PER_HOUR * CONTROL_INTERVAL))
        rows = []
        for _ in range(round(hours * SAMPLES_PER_HOUR)):
            for _ in range(per_row):
                time = self.simulator.time
                action, _ = self.controller.compute_action(self.measurements, time=time)
                result = self.simulator.advance(
                    action, control_interval=CONTROL_INTERVAL, disturbances=disturbances
                )
                self.measurements = result.measurements
                if result.shutdown_status["terminated"]:
                    return None
            rows.append(np.concatenate([result.measurements[:22], result.implemented_action]))
        return np.array(rows, dtype=np.float32).reshape(-1, 34)


def _collect(path: Path, modes: tuple[int, ...], branches: list[_Branch], before: float) -> None:
    cells = [_read_cell(file) for branch in branches for file in branch.files.values()]
    faults = list(branches[0].files)
    shape = len(branches), len(faults)
    X = np.array([cell["series"] for cell in cells])
    _warn_without_effect(X.reshape(*shape, *X.shape[1:]), branches)
    if n_before := round(before * SAMPLES_PER_HOUR):
        pasts = np.array([_read_cell(branch.past)["series"][-n_before:] for branch in branches])
        X = np.concatenate([pasts.repeat(len(faults), axis=0), X], axis=1)
    _write_runs(
        path,
        X,
        y=np.tile(faults, len(branches)),
        d=np.repeat([modes.index(b.mode) for b in branches], len(faults)),
        run=np.repeat([b.run for b in branches], len(faults)),
        idv_magnitude=np.array([cell["magnitude"] for cell in cells]),
        doms=np.array([f"mode{mode}" for mode in modes]),
    )


def _write_runs(path: Path, X: Series, **arrays: NDArray[Any]) -> None:
    """Standardize series (n, steps, variables) over all runs, and write them for `load_tep`."""
    mu = X.mean(axis=(0, 1), dtype=np.float64)
    sd = X.std(axis=(0, 1), dtype=np.float64)
    constant = ~(X - X[0, 0]).any(axis=(0, 1))
    mu[constant], sd[constant] = X[0, 0, constant], 1.0
    Z = ((X - mu) / sd).astype(np.float16)
    cast: Any = {name: a.astype(_DTYPES.get(name, a.dtype)) for name, a in arrays.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=Z, mu=mu.astype(np.float32), sd=sd.astype(np.float32), **cast)
    write_atomically(path, buffer.getvalue())


def _warn_without_effect(series: Series, branches: list[_Branch]) -> None:
    """Warn of faults that equal no fault; `series` is (branches, faults, steps, variables)."""
    faults = list(branches[0].files)
    if 0 not in faults:
        return
    equal = (series == series[:, [faults.index(0)]]).all(axis=(2, 3))
    modes = np.array([branch.mode for branch in branches])
    shown = [
        f"{class_name(fault)} in mode {mode} ({count} of {(modes == mode).sum()} runs)"
        for column, fault in enumerate(faults)
        for mode in np.unique(modes)
        if fault and (count := equal[modes == mode, column].sum())
    ]
    if shown:
        warnings.warn(f"Faults equal to normal operation: {', '.join(shown)}.", stacklevel=4)


def _write_cell(file: Path, series: Series, magnitude: float) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, series=series, magnitude=magnitude)
    write_atomically(file, buffer.getvalue())


def _read_cell(file: Path) -> dict[str, NDArray[Any]]:
    try:
        return read_arrays(file, ("series", "magnitude"))
    except ValueError:
        raise MixdaError(f"{file} is damaged. Delete it and call generate_tep again.") from None
