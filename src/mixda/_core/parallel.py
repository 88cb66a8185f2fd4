"""An ordered map over threads, for work that spends its time outside of Python."""

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
def thread_map(worth_it: bool) -> Iterator[Map]:
    """Yield an ordered ``map`` with as many threads as BLAS would use, each with its own BLAS.

    Work that is not worth it stays in this thread. Results come in order, so what is made of them
    does not depend on the number of threads.

    Examples
    --------
    >>> from mixda._core.parallel import thread_map
    >>> with thread_map(worth_it=True) as run:
    ...     list(run(abs, [-2, -1]))
    [2, 1]
    """
    n_threads = 1
    if worth_it:
        blas = _blas()
        n_threads = max((library["num_threads"] for library in blas.info()), default=1)
        n_threads = min(n_threads, os.cpu_count() or 1)
    if n_threads == 1:
        yield map
        return
    with blas.limit(limits=1), ThreadPoolExecutor(n_threads) as pool:
        yield pool.map


@cache
def _blas() -> ThreadpoolController:
    """Return the BLAS of numpy and scipy; to look for it takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")
