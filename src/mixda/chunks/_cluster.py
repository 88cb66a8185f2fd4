"""A Dask cluster as executor, imported only if a client is given.

Parameters are sent to the workers once per pass, results are added up on the workers, and only the
sum comes back.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np

from mixda._core.errors import MixdaError
from mixda._version import __version__
from mixda.chunks._connection import ClusterError, connected_client, within_deadline
from mixda.chunks._dask import DaskPartition, load_partition
from mixda.chunks._sources import RowSource
from mixda.chunks._sums import ARITY, Executor

T = TypeVar("T")

_CONNECT_SECONDS = 5
_MAX_SECONDS_WITHOUT_WORKERS = 30
_MAX_MEMORY_FRACTION = 0.4  # of the workers' memory that rows may occupy between passes


_checked: WeakSet[Any] = WeakSet()  # clients of blocks that have checked their cluster


@contextmanager
def open_client(client: Any) -> Iterator[Any]:
    """Yield a client that was given, or one opened, and closed, for an address, after a check."""
    try:
        import distributed
    except ImportError:
        raise MixdaError("client requires Dask; pip install 'mixda[scale]'") from None
    if isinstance(client, distributed.Client):
        if client in _checked:
            yield client
            return
        _check_cluster(client)
        _checked.add(client)
        try:
            yield client
        finally:
            _checked.discard(client)
        return
    if not isinstance(client, str):
        raise MixdaError(
            "client must be a dask.distributed.Client or the address of a scheduler such as "
            f"'tcp://10.0.0.1:8786', got {type(client).__name__}."
        )
    with connected_client(client, "client (--scheduler)") as opened, open_client(opened):
        yield opened


@contextmanager
def dask_executor(client: Any, source: RowSource) -> Iterator[Executor]:
    """Yield the executor of a client or of the scheduler at an address."""
    with open_client(client) as opened:
        yield _DaskExecutor(opened, source)


class _DaskExecutor:
    """Keeps rows in the memory of the workers if they fit; otherwise every pass reads them."""

    def __init__(self, client: Any, source: RowSource) -> None:
        self._client = client
        self._partitions = [_delayed_partition(p) for p in source.partitions]
        if source.in_memory or _fits_in_memory(client, source):
            import dask

            loaded = [dask.delayed(load_partition, pure=False)(p) for p in self._partitions]
            self._partitions = client.compute(loaded)

    def fold(self, task: Callable[[int, Any], T], merge: Any, partitions: Sequence[int]) -> T:
        import dask

        shared = dask.delayed(task, pure=False, traverse=False)
        run, add = dask.delayed(_run, pure=False), dask.delayed(_add, pure=False)
        level = [run(shared, k, self._partitions[k]) for k in partitions]
        while len(level) > 1:
            level = [add(merge, level[k : k + ARITY]) for k in range(0, len(level), ARITY)]
        result: T = self._wait(self._client.compute(level[0]))
        return result

    def _wait(self, future: Any) -> Any:
        """Wait for a result as long as the cluster has a scheduler and workers."""
        import distributed

        alive = time.monotonic()
        while True:
            try:
                return future.result(timeout=1.0)
            except (TimeoutError, distributed.TimeoutError):
                if self._has_workers():
                    alive = time.monotonic()
                if time.monotonic() - alive > _MAX_SECONDS_WITHOUT_WORKERS:
                    raise ClusterError(
                        f"the cluster has had no worker for {_MAX_SECONDS_WITHOUT_WORKERS} "
                        "seconds; start workers and run the fit again (it resumes from its "
                        "checkpoint, if any)."
                    ) from None
            except distributed.scheduler.KilledWorker as error:
                raise ClusterError(
                    f"one partition of the data crashed {error.allowed_failures + 1} workers, "
                    "probably for lack of memory; give workers more memory, or write smaller row "
                    "groups."
                ) from None
            except (CancelledError, OSError):
                raise self._lost() from None

    def _has_workers(self) -> bool:
        try:
            info = within_deadline(self._client.scheduler_info, _MAX_SECONDS_WITHOUT_WORKERS)
        except (TimeoutError, CancelledError, OSError):
            raise self._lost() from None
        return bool(info["workers"])

    def _lost(self) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler at {_address(self._client)} was lost; start it and run the fit "
            "again (it resumes from its checkpoint, if any)."
        )


def _run(task: Callable[[int, Any], T], index: int, partition: Any) -> T:
    return task(index, partition)


def _add(merge: Any, results: Sequence[T]) -> T:
    return reduce(merge, results)


def _delayed_partition(partition: Any) -> Any:
    import dask

    if isinstance(partition, DaskPartition):
        return partition.delayed
    return dask.delayed(partition, pure=False, traverse=False)


def _fits_in_memory(client: Any, source: RowSource) -> bool:
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    available = sum(worker["memory_limit"] or 0 for worker in workers)
    return source.nbytes is not None and source.nbytes < _MAX_MEMORY_FRACTION * available


def _check_cluster(client: Any) -> None:
    """Check that the client is open, that there are workers, and that versions agree."""
    import distributed

    address = _address(client)
    if client.status != "running":
        raise ClusterError(f"the client of {address} is {client.status}; create a new one.")
    try:
        client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
    except (TimeoutError, distributed.TimeoutError):
        raise ClusterError(
            f"the Dask scheduler at {address} has no workers; start some with "
            f"`dask worker {address}`."
        ) from None
    versions: dict[str, Any] = {}
    try:
        versions["scheduler"] = within_deadline(lambda: client.run_on_scheduler(_versions))
    except Exception as error:  # of any type: the other installation may lack mixda
        versions["scheduler"] = error
    try:
        answers = within_deadline(lambda: client.run(_versions, on_error="return"))
    except (TimeoutError, OSError):
        raise ClusterError(f"the workers of {address} do not answer; restart them.") from None
    for worker, theirs in answers.items():
        versions[f"worker {worker}"] = theirs
    for who, theirs in versions.items():
        _check_versions(who, theirs)


def _check_versions(who: str, theirs: Any) -> None:
    mine = _versions()
    if not isinstance(theirs, dict):
        reason = " ".join(f"{type(theirs).__name__}: {theirs}".split())[:200]
        raise ClusterError(
            f"the {who} cannot run mixda ({reason}); install mixda {mine['mixda']} there."
        )
    for name in mine:
        if theirs.get(name) != mine[name]:
            raise ClusterError(
                f"the {who} has {name} {theirs.get(name)}, but this process has {mine[name]}; "
                "use the same versions everywhere."
            )


def _versions() -> dict[str, str]:
    import dask
    import distributed

    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "mixda": __version__,
        "numpy": np.__version__.rpartition(".")[0],
        "dask": dask.__version__,
        "distributed": distributed.__version__,
    }


def _address(client: Any) -> str:
    return str(client.scheduler.address if client.scheduler is not None else "an unknown address")
