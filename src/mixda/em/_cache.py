"""A folder of fitted mixtures that lets an interrupted run resume: ``.gmm`` files, no pickles."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mixda._core.resume import Folder, fingerprint, open_cache_folder
from mixda._version import __version__
from mixda.mixture import Mixture

_CACHE_AFTER_SECONDS = 0.5  # faster fits are not worth a file


def cached_mixture(
    folder: Folder | None,
    fit: Callable[..., Mixture],
    *arrays: Any,
    random_state: np.random.Generator,
    verbose: bool,
    **settings: Any,
) -> Mixture:
    """Return ``fit(*arrays, **settings)``, loaded from the cache folder if it holds the result.

    The state of the generator is cached with the mixture, so that later draws are the same.
    """

    def run_fit() -> Mixture:
        return fit(*arrays, random_state=random_state, verbose=verbose, **settings)

    if folder is None:
        return run_fit()
    state = random_state.bit_generator.state
    named = [part for item in sorted(settings.items()) for part in item]
    key = fingerprint([*arrays, *named], (fit.__name__, _to_json(state), __version__))
    path = open_cache_folder(folder) / f"{key}.gmm"
    try:
        mixture = Mixture.load(path)
        random_state.bit_generator.state = _from_json(mixture.info.pop("random_state"), state)
        return mixture
    except (ValueError, KeyError):  # not cached, or damaged
        pass
    start = time.monotonic()
    mixture = run_fit()
    if time.monotonic() - start > _CACHE_AFTER_SECONDS:
        final_state = _to_json(random_state.bit_generator.state)
        saved = replace(mixture, info={**mixture.info, "random_state": final_state})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the file may expose rows, but it is temporary
            saved.save(path)
    return mixture


def _to_json(state: Any) -> Any:
    """Convert the arrays in the state of a generator to lists."""
    if isinstance(state, Mapping):
        return {name: _to_json(value) for name, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray | np.integer) else state


def _from_json(state: Any, example: Any) -> Any:
    """Undo `_to_json`: make arrays where `example` has arrays."""
    if isinstance(example, Mapping):
        return {name: _from_json(state[name], value) for name, value in example.items()}
    return np.array(state, example.dtype) if isinstance(example, np.ndarray) else state
