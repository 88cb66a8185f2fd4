"""Mixtures that a stopped fit has made already: a folder of ``.gmm`` files, never a pickle."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mixda import __version__
from mixda._resume import fingerprint
from mixda.mixture import Mixture

Folder = str | PathLike[str]

_WORTH = 0.5  # seconds of work from which on a mixture is kept
_NAME = re.compile(r"[0-9a-f]{64}\.(gmm|dictionary)")


def open_kept(folder: Folder) -> Path:
    """Make the folder if it is not there."""
    try:
        Path(folder).mkdir(exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"{folder} cannot be the folder of a checkpoint: {error.strerror}."
        ) from None
    return Path(folder)


@contextmanager
def keeping(folder: Folder) -> Iterator[Path]:
    """Delete what was kept as soon as all is done; what was stopped finds it again.

    Files of others are left alone, and so is the folder if there are any.
    """
    folder = Path(folder)
    done = False
    try:
        yield folder
        done = True
    finally:
        kept = [path for path in folder.glob("*") if _NAME.fullmatch(path.name)]
        for path in kept if done else []:
            path.unlink()
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def kept_dictionary(folder: Folder, mixtures: Sequence[Mixture], settings: Any) -> Path:
    """Return where the learning of a dictionary notes its state, a name for every problem."""
    arrays = [a for m in mixtures for a in (m.weights, m.means, m.stds, m.labels) if a is not None]
    return open_kept(folder) / f"{fingerprint(arrays, (settings, __version__))}.dictionary"


def kept_mixture(
    folder: Folder | None,
    fit: Callable[..., Mixture],
    *arrays: Any,
    random_state: np.random.Generator,
    verbose: bool,
    **settings: Any,
) -> Mixture:
    """Return ``fit(*arrays, **settings)``, from the folder if it was done before.

    The generator is left as the fit would leave it, so what comes after is the same, too.
    """

    def fitted() -> Mixture:
        return fit(*arrays, random_state=random_state, verbose=verbose, **settings)

    if folder is None:
        return fitted()
    before = random_state.bit_generator.state
    named = [part for item in sorted(settings.items()) for part in item]
    key = fingerprint([*arrays, *named], (fit.__name__, _without_arrays(before), __version__))
    path = open_kept(folder) / f"{key}.gmm"
    try:
        found = Mixture.load(path)
        random_state.bit_generator.state = _with_arrays(found.info.pop("random_state"), before)
        return found
    except (ValueError, KeyError):  # not there, or damaged
        pass
    start = time.monotonic()
    found = fitted()
    if time.monotonic() - start > _WORTH:
        after = _without_arrays(random_state.bit_generator.state)
        replace(found, info={**found.info, "random_state": after}).save(path)
    return found


def _without_arrays(state: Any) -> Any:
    """Return the state of a generator as JSON has it."""
    if isinstance(state, Mapping):
        return {name: _without_arrays(value) for name, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray | np.integer) else state


def _with_arrays(state: Any, example: Any) -> Any:
    """Undo `_without_arrays`: arrays where the example has them."""
    if isinstance(example, Mapping):
        return {name: _with_arrays(state[name], value) for name, value in example.items()}
    return np.array(state, example.dtype) if isinstance(example, np.ndarray) else state
