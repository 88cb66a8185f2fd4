"""A folder of fitted mixtures that lets an interrupted run resume: ``.gmm`` files, no pickles."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mixda._core.resume import Folder, fingerprint, open_cache_folder
from mixda._version import __version__
from mixda.chunks import RowSource
from mixda.em._fit import fit_labeled_mixture, fit_mixture
from mixda.mixture import Mixture

_CACHE_AFTER_SECONDS = 0.5  # faster fits are not worth a file
_REFINEMENTS = 10  # iterations over all rows, after a fit to a sample


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
        _save_quietly(saved, path)
    return mixture


def refine_mixture(
    folder: Folder | None,
    source: RowSource,
    start: Mixture,
    *,
    digest: Any,
    verbose: bool,
    n_jobs: int | None = None,
    client: Any = None,
    **settings: Any,
) -> Mixture:
    """Continue EM from a mixture of a sample, over all rows; at most a few iterations.

    The optimum of a large sample is close to that of all rows, so a few iterations suffice. With
    a cache folder, the result is loaded from there, and an interrupted refinement resumes.

    Parameters
    ----------
    folder : path or None
    source : RowSource
        With classes if `start` is labeled.
    start : Mixture
    digest : object
        Identifies the rows of the source.
    verbose, n_jobs, client, settings
        As in `mixda.fit_mixture`.
    """
    fit: Any = fit_labeled_mixture if start.is_labeled else fit_mixture
    path = checkpoint = None
    if folder is not None:
        named = [part for item in sorted(settings.items()) for part in item]
        arrays = [start.weights, start.means, start.stds, *named]
        key = fingerprint(arrays, ("refine", repr(digest), source.n_features, __version__))
        path = open_cache_folder(folder) / f"{key}.gmm"
        checkpoint = path.with_suffix(".em")
        try:
            return Mixture.load(path)
        except ValueError:  # not cached, or damaged
            pass
    mixture: Mixture = fit(
        source,
        init=start,
        max_iter=_REFINEMENTS,
        checkpoint=checkpoint,
        random_state=0,
        verbose=verbose,
        n_jobs=n_jobs,
        client=client,
        **settings,
    )
    if path is not None:
        _save_quietly(mixture, path)
    return mixture


def _save_quietly(mixture: Mixture, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the file may expose rows, but it is temporary
        mixture.save(path)


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
