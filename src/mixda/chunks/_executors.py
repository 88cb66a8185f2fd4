"""Where a pass over the data runs: in this process, in joblib's, or on a Dask cluster.

A pass is ``task(index, part)`` for every part and one sum of the results. Sums go along the same
tree everywhere, so the same parts give the same bits wherever and in whatever order they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from mixda._core.errors import MixdaError
from mixda._core.parallel import Map, thread_map
from mixda.chunks._sources import ChunkSource
from mixda.chunks._sums import Executor, Merge, Task, tree_sum

T = TypeVar("T")


def executor_for(
    source: ChunkSource, n_jobs: int | None, client: Any
) -> AbstractContextManager[Executor]:
    """Return the executor that `n_jobs` and `client` ask for, as a context."""
    if n_jobs is not None and client is not None:
        raise MixdaError("n_jobs and client exclude each other; give one of them.")
    if client is not None:
        from mixda.chunks._cluster import connected

        return connected(client, source)
    if n_jobs is not None:
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
            raise MixdaError(f"n_jobs must be an integer other than zero, got {n_jobs!r}.")
        return nullcontext(_Joblib(source, int(n_jobs)))
    return _threads(source)


@dataclass(frozen=True, eq=False)
class _Threads:
    source: ChunkSource
    map: Map

    def fold(self, task: Task[T], merge: Merge[T], parts: Sequence[int]) -> T:
        results: Iterable[T] = self.map(task, parts, [self.source.parts[k] for k in parts])
        return tree_sum(results, merge)


@contextmanager
def _threads(source: ChunkSource) -> Iterator[Executor]:
    with thread_map(len(source.parts) > 1) as run:
        yield _Threads(source, run)


@dataclass(frozen=True, eq=False)
class _Joblib:
    """Processes for parts that say where the rows are, threads for parts that hold them.

    ``joblib.parallel_config(backend=…)`` decides otherwise.
    """

    source: ChunkSource
    n_jobs: int

    def fold(self, task: Task[T], merge: Merge[T], parts: Sequence[int]) -> T:
        from joblib import Parallel, delayed

        prefer = "threads" if self.source.in_memory else "processes"
        calls = (delayed(task)(k, self.source.parts[k]) for k in parts)
        with ThreadpoolController().limit(limits=1, user_api="blas"):
            results: list[T] = Parallel(n_jobs=self.n_jobs, prefer=prefer)(calls)
        return tree_sum(results, merge)
