"""Mixtures that a stopped fit has made already: a folder of ``.gmm`` files, never a pickle."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mixda._core.resume import Folder, fingerprint, open_cache_folder
from mixda._version import __version__
from mixda.mixture import Mixture

_WORTH = 0.5  # seconds of work from which on a mixture is kept


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
    path = open_cache_folder(folder) / f"{key}.gmm"
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
