"""An ordered map over threads, for work that releases the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

Map = Callable[..., Iterable[Any]]


@contextmanager
def thread_map(enabled: bool) -> Iterator[Map]:
    """Yield an ordered ``map`` over as many threads as BLAS would use, each with one BLAS thread.

    If `enabled` is false, the work stays in the calling thread. Results are ordered, so they do not
    depend on the number of threads.

    Examples
    --------
    >>> from mixda._core.parallel import thread_map
    >>> with thread_map(enabled=True) as run:
    ...     list(run(abs, [-2, -1]))
    [2, 1]
    """
    n_threads = 1
    if enabled:
        blas = _blas()
        n_threads = max((library["num_threads"] for library in blas.info()), default=1)
        n_threads = min(n_threads, os.cpu_count() or 1)
    if n_threads == 1:
        yield map
        return
    with blas.limit(limits=1), ThreadPoolExecutor(n_threads) as pool:
        yield pool.map


@contextmanager
def one_thread(openmp_only: bool = False) -> Iterator[None]:
    """Let BLAS and OpenMP use one thread each: many small fits are slower with more.

    Parameters
    ----------
    openmp_only : bool
        In a thread of joblib, where the limit of OpenMP is the thread's own and that of BLAS is the
        business of the main thread.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> from mixda._core.parallel import one_thread
    >>> with one_thread():
    ...     all(library["num_threads"] == 1 for library in threadpool_info())
    True
    """
    pools = _pools()
    with (pools.select(user_api="openmp") if openmp_only else pools).limit(limits=1):
        yield


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _blas() -> ThreadpoolController:
    """Return the controller of the BLAS libraries; finding them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")
