"""Where a pass over the data runs: in threads, in joblib's processes, or on a Dask cluster.

A pass applies ``task(index, partition)`` to every partition and adds up the results along the same
tree everywhere, so all executors give the same result to the bit.
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
from mixda.chunks._sources import RowSource
from mixda.chunks._sums import Executor, Merge, Task, tree_sum

T = TypeVar("T")


def executor_for(
    source: RowSource, n_jobs: int | None, client: Any
) -> AbstractContextManager[Executor]:
    """Return a context manager for the executor selected by `n_jobs` and `client`."""
    if n_jobs is not None and client is not None:
        raise MixdaError(
            f"n_jobs={n_jobs!r} and client={client!r} exclude each other; give one of them."
        )
    if client is not None:
        from mixda.chunks._cluster import dask_executor

        return dask_executor(client, source)
    if n_jobs is not None:
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
            raise MixdaError(f"n_jobs must be a nonzero integer or None, got {n_jobs!r}.")
        return nullcontext(_JoblibExecutor(source, int(n_jobs)))
    return _thread_executor(source)


@contextmanager
def running_on(client: Any) -> Iterator[Any]:
    """Yield the client of a Dask cluster, given by a client or an address; None without one.

    Meanwhile, joblib runs on the cluster as well.
    """
    if client is None:
        yield None
        return
    from joblib import parallel_config

    from mixda.chunks._cluster import open_client

    with (
        open_client(client) as opened,
        opened.as_current(),
        parallel_config(backend="dask", n_jobs=-1),
    ):
        yield opened


@dataclass(frozen=True, eq=False)
class _ThreadExecutor:
    source: RowSource
    map: Map

    def fold(self, task: Task[T], merge: Merge[T], partitions: Sequence[int]) -> T:
        chosen = [self.source.partitions[k] for k in partitions]
        results: Iterable[T] = self.map(task, partitions, chosen)
        return tree_sum(results, merge)


@contextmanager
def _thread_executor(source: RowSource) -> Iterator[Executor]:
    with thread_map(len(source.partitions) > 1) as run:
        yield _ThreadExecutor(source, run)


@dataclass(frozen=True, eq=False)
class _JoblibExecutor:
    """Uses threads for partitions in memory and processes for the others.

    ``joblib.parallel_config(backend=…)`` overrides this choice.
    """

    source: RowSource
    n_jobs: int

    def fold(self, task: Task[T], merge: Merge[T], partitions: Sequence[int]) -> T:
        from joblib import Parallel, delayed

        prefer = "threads" if self.source.in_memory else "processes"
        calls = (delayed(task)(k, self.source.partitions[k]) for k in partitions)
        with ThreadpoolController().limit(limits=1, user_api="blas"):
            results: list[T] = Parallel(n_jobs=self.n_jobs, prefer=prefer)(calls)
        return tree_sum(results, merge)
