"""Tennessee Eastman: faults of a simulated chemical plant; a domain is an operating mode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.validation import check_choice, check_positive_int
from mixda.datasets._dataset import DomainDataset, data_file
from mixda.datasets._npz import LAYOUT, read_arrays

FILE = "tep_modes_sim.npz"


def load_tep(
    representation: str = "series",
    modes: Sequence[int] | None = None,
    n_runs: int | None = None,
    path: str | Path | None = None,
    data_home: str | Path | None = None,
) -> DomainDataset:
    """Tennessee Eastman process under 28 faults and normal operation; a domain is a mode.

    A run has 34 variables (XMEAS 1–22, XMV 1–12) over 30 hours from the onset of a fault, sampled
    every 6 minutes under Ricker's decentralized control. The file has 1566 runs: 6 modes × 29
    classes × 9 seeds. Variables are standardized over the whole file.

    Parameters
    ----------
    representation : {"series", "moments"}
        "series": the time series of shape (34, 300), flattened to 10200 features (`sample_shape`
        has the original shape). "moments": the mean and the standard deviation of each variable
        that is not constant, 62 features.
    modes : sequence of int, optional
        Operating modes from 1 to 6, one domain each; by default all in the file.
    n_runs : int, optional
        Use only runs 0 to ``n_runs - 1`` of each class and mode; by default all.
    path : str or Path, optional
        Another file of this layout, for instance written by `generate_tep`.
    data_home : str or Path, optional
        Folder of ``tep_modes_sim.npz``; by default the environment variable ``MIXDA_DATA``.

    Returns
    -------
    DomainDataset
        `block` is the run.

    Notes
    -----
    All classes of a mode and run start from the same simulated state of the plant. Split by
    `block`, not by row.

    The data were simulated with tep-studio 0.2.0 after a burn-in of 70 hours. They are not the data
    of the paper. Faults have magnitude 1, except 0.25 for IDV 6 and for two other runs, which would
    trip the plant. XMV 5, 9 and 12 are constant. In modes 2 and 5, IDV 14 has no effect: 17 of its
    18 runs equal the normal run from the same state.

    Examples
    --------
    >>> from mixda.datasets import load_tep
    >>> data = load_tep()  # doctest: +SKIP
    >>> data.X.shape, data.sample_shape  # doctest: +SKIP
    ((1566, 10200), (34, 300))
    >>> from mixda.deep import BackboneEncoder  # doctest: +SKIP
    >>> BackboneEncoder("fcn", input_shape=data.sample_shape)  # doctest: +SKIP
    BackboneEncoder(architecture='fcn', input_shape=(34, 300))
    """
    check_choice(representation, "representation", ("series", "moments"))
    file = data_file(FILE, data_home) if path is None else _own_file(path)
    arrays = read_arrays(file, (*LAYOUT, "run"))
    series = arrays["X"]
    if series.ndim != 3 or any(arrays[k].shape != series.shape[:1] for k in ("y", "d", "run")):
        raise MixdaError(
            f"{file} must contain X (runs, steps, variables) with y, d and run for each run, but X "
            f"has shape {series.shape}. Replace it with the original file."
        )
    names = [str(name) for name in arrays["doms"]]
    kept = _kept_names(names, modes, file)
    rows = np.isin(arrays["d"], [names.index(name) for name in kept])
    if n_runs is not None:
        rows &= arrays["run"] < check_positive_int(n_runs, "n_runs")
    faults, y = np.unique(arrays["y"][rows], return_inverse=True)
    codes = np.array([kept.index(name) if name in kept else -1 for name in names])
    X = series[rows].astype(np.float64)
    if representation == "moments":
        X = np.concatenate([X.mean(axis=1), X.std(axis=1)], axis=1)[
            :, np.tile(_changing(series), 2)
        ]
    else:
        X = X.transpose(0, 2, 1)
    return DomainDataset(
        X=X.reshape(len(X), -1),
        y=y,
        domain=codes[arrays["d"][rows]],
        domain_names=tuple(kept),
        class_names=tuple(class_name(fault) for fault in faults),
        description=(
            "Tennessee Eastman process simulated with tep-studio, Ricker's control, z-scored; "
            f"{series.shape[1]} steps of {series.shape[2]} variables, as {representation}."
        ),
        block=arrays["run"][rows],
        sample_shape=X.shape[1:],
    )


def class_name(fault: int) -> str:
    """Return the name of a fault, 0 for none."""
    return f"IDV {fault}" if fault else "normal"


def _own_file(path: str | Path) -> Path:
    file = Path(path).expanduser()
    if not file.is_file():
        raise MixdaError(f"path {file} does not exist. Create it with generate_tep, or omit path.")
    return file


def _kept_names(names: list[str], modes: Sequence[int] | None, file: Path) -> list[str]:
    if modes is None:
        return names
    kept = [f"mode{mode}" for mode in modes]
    if not kept or len(set(kept)) != len(kept) or not set(kept) <= set(names):
        raise MixdaError(
            f"modes must be distinct modes in {file}, which contains {', '.join(names)}; got "
            f"{modes!r}."
        )
    return kept


def _changing(series: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Return which variables are not constant over the whole file, whatever `modes` is."""
    values = series.astype(np.float32)  # float16 is slow to compare
    return np.asarray((values != values[0, 0]).any(axis=(0, 1)))
