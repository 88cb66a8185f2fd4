"""Parallel, resumable simulation of Tennessee Eastman runs with tep-studio."""

from __future__ import annotations

import copy
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from mixda._core.atomic import write_atomically
from mixda._core.errors import MixdaError
from mixda._core.progress import Progress
from mixda._core.validation import check_number, check_positive_int
from mixda.datasets._npz import read_arrays

MODES = (1, 2, 3, 4, 5, 6)
FAULTS = tuple(range(29))  # 0 is none
CONTROL_INTERVAL = 0.01  # hours between two actions of the controller
SAMPLES_PER_HOUR = 10
MAGNITUDE_FACTOR = 0.25  # between attempts, if a fault trips the plant
MAX_ATTEMPTS = 5
FIRST_MAGNITUDE = {0: 0.0, 6: MAGNITUDE_FACTOR}  # IDV 6 stops the A feed, which trips the plant
_FRACTIONAL_MAGNITUDES = 0x8F  # tep-studio's default 0x0F rounds magnitudes to 0 or 1

Series = NDArray[np.float32]


def generate_tep(
    path: str | Path,
    n_runs: int = 9,
    modes: Sequence[int] = MODES,
    faults: Sequence[int] = FAULTS,
    hours: float = 30.0,
    burn_in: float = 70.0,
    n_jobs: int = 1,
    verbose: bool = True,
) -> Path:
    """Simulate runs of the Tennessee Eastman process and write them to a file for `load_tep`.

    For each mode and run, the plant is simulated for `burn_in` hours under Ricker's decentralized
    control. From this state, each fault is simulated for `hours`. Requires the `tep` extra
    (``pip install 'mixda[tep]'``).

    Finished runs are stored in the folder ``<name of path>-cells`` next to `path`. An interrupted
    call can therefore be resumed, and a call with more runs, modes or faults simulates only the new
    ones.

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
        Hours before the fault, which are discarded. Modes 2 and 5 start from the base case, and the
        controller needs 20 hours to reach the set point of their product mix.
    n_jobs : int
        Number of parallel simulations (joblib); -1 uses all cores.
    verbose : bool
        Show progress on a terminal.

    Returns
    -------
    Path
        `path`. Its arrays are ``X (n, steps, 34)`` in float16, standardized by ``mu (34,)`` and
        ``sd (34,)``; the fault ``y``, the domain ``d``, ``run``, ``idv_magnitude`` and ``doms``.

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
    cells = path.with_name(f"{path.stem}-cells")
    if path.suffix != ".npz" or (path.exists() and not cells.is_dir()):
        raise MixdaError(
            f"path must end in .npz and must not be an existing file that generate_tep did not "
            f"write, got {path}."
        )
    ending = f"{burn_in:g}h_{hours:g}h_tep{_simulator_version()}.npz"
    try:
        cells.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MixdaError(f"{cells} cannot be created: {error.strerror}.") from None

    pasts = [(mode, run) for mode in modes for run in range(n_runs)]
    wanted = {
        (mode, run): {f: cells / f"mode{mode}_idv{f:02d}_run{run}_{ending}" for f in faults}
        for mode, run in pasts
    }
    missing = {past: _missing(files) for past, files in wanted.items()}
    tasks = [
        joblib.delayed(_simulate)(*past, files, hours, burn_in)
        for past, files in missing.items()
        if files
    ]
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    with Progress(max(len(tasks), 1), "simulating", verbose) as progress:
        for done, _ in enumerate(parallel(tasks), start=1):
            progress.update(done)
    _collect(path, modes, wanted)
    return path


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


def _missing(files: dict[int, Path]) -> dict[int, Path]:
    return {fault: file for fault, file in files.items() if not file.exists()}


def _simulate(mode: int, run: int, files: dict[int, Path], hours: float, burn_in: float) -> None:
    """Simulate the burn-in of a mode and run once, then each fault from there."""
    plant = _Plant(mode, run)
    past = plant.advance(burn_in, fault=0, magnitude=0.0)
    if past is None:
        raise MixdaError(
            f"The plant trips in mode {mode}, run {run}, before any fault. Change "
            f"burn_in={burn_in}."
        )
    start = copy.deepcopy(plant.controller), plant.simulator.snapshot(), plant.measurements
    for fault, file in files.items():
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
        buffer = io.BytesIO()
        np.savez_compressed(buffer, series=series, magnitude=magnitude)
        write_atomically(file, buffer.getvalue())


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


def _collect(
    path: Path, modes: tuple[int, ...], wanted: dict[tuple[int, int], dict[int, Path]]
) -> None:
    rows = [(past, fault) for past, files in wanted.items() for fault in files]
    labels = np.array([(modes.index(mode), run, fault) for (mode, run), fault in rows])
    cells = [_read_cell(wanted[past][fault]) for past, fault in rows]
    X = np.array([cell["series"] for cell in cells])
    mu = X.mean(axis=(0, 1), dtype=np.float64)
    sd = X.std(axis=(0, 1), dtype=np.float64)
    constant = ~(X - X[0, 0]).any(axis=(0, 1))
    mu[constant], sd[constant] = X[0, 0, constant], 1.0
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        X=((X - mu) / sd).astype(np.float16),
        mu=mu.astype(np.float32),
        sd=sd.astype(np.float32),
        y=labels[:, 2].astype(np.int8),
        d=labels[:, 0].astype(np.int8),
        run=labels[:, 1].astype(np.int32),
        idv_magnitude=np.array([cell["magnitude"] for cell in cells]).astype(np.float16),
        doms=np.array([f"mode{mode}" for mode in modes]),
    )
    write_atomically(path, buffer.getvalue())


def _read_cell(file: Path) -> dict[str, NDArray[Any]]:
    try:
        return read_arrays(file, ("series", "magnitude"))
    except ValueError:
        raise MixdaError(f"{file} is damaged. Delete it and call generate_tep again.") from None
