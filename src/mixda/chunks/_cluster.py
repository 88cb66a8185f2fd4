"""A Dask cluster as executor: Dask schedules, moves and retries; here are the graph and the words.

Loaded only when a client is given. The parameters go to the workers once per pass, the results are
added up on the workers, and one sum comes back.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from mixda._core.errors import MixdaError
from mixda._version import __version__
from mixda.chunks._dask import DaskPart, load
from mixda.chunks._sources import ChunkSource
from mixda.chunks._sums import ARITY, Executor

T = TypeVar("T")

_CONNECT_SECONDS = 5
_WITHOUT_WORKERS_SECONDS = 30
_SHARE_OF_MEMORY = 0.4  # of the workers, that rows may take before they are read again instead


class ClusterError(ConnectionError, MixdaError):
    """The cluster cannot be reached, does not fit, or went away."""


@contextmanager
def connected(client: Any, source: ChunkSource) -> Iterator[Executor]:
    """Connect to a cluster by its address, or use a client; a client made here is closed."""
    try:
        import distributed
    except ImportError:
        raise MixdaError("a cluster needs Dask; pip install 'mixda[scale]'") from None
    if isinstance(client, distributed.Client):
        _check_cluster(client)
        yield _Dask(client, source)
        return
    if not isinstance(client, str):
        raise MixdaError(
            "client must be a dask.distributed.Client or the address of a scheduler such as "
            f"'tcp://10.0.0.1:8786', got {type(client).__name__}."
        )
    try:
        made = distributed.Client(client, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).split("\n")[0].rstrip(". ") or type(error).__name__
        raise ClusterError(
            f"no Dask scheduler answers at {client!r} ({reason}); check the address, and that "
            "`dask scheduler` runs there."
        ) from None
    with made:
        _check_cluster(made)
        yield _Dask(made, source)


class _Dask:
    """Rows stay on the workers if they fit there, else every pass reads them again."""

    def __init__(self, client: Any, source: ChunkSource) -> None:
        self._client = client
        self._parts = [_delayed_part(part) for part in source.parts]
        if source.in_memory or _fits(client, source):
            import dask

            loaded = [dask.delayed(load, pure=False)(part) for part in self._parts]
            self._parts = client.compute(loaded)

    def fold(self, task: Callable[[int, Any], T], merge: Any, parts: Sequence[int]) -> T:
        import dask

        shared = dask.delayed(task, pure=False, traverse=False)
        run, add = dask.delayed(_run, pure=False), dask.delayed(_add, pure=False)
        level = [run(shared, k, self._parts[k]) for k in parts]
        while len(level) > 1:
            level = [add(merge, level[k : k + ARITY]) for k in range(0, len(level), ARITY)]
        result: T = self._wait(self._client.compute(level[0]))
        return result

    def _wait(self, future: Any) -> Any:
        """Wait as long as there is a scheduler and a worker."""
        import distributed

        alive = time.monotonic()
        while True:
            try:
                return future.result(timeout=1.0)
            except (TimeoutError, distributed.TimeoutError):
                if self._client.scheduler_info()["workers"]:
                    alive = time.monotonic()
                if time.monotonic() - alive > _WITHOUT_WORKERS_SECONDS:
                    raise ClusterError(
                        f"the cluster has had no worker for {_WITHOUT_WORKERS_SECONDS} seconds; "
                        "start workers and run the fit again (it resumes from its checkpoint)."
                    ) from None
            except distributed.scheduler.KilledWorker as error:
                raise ClusterError(
                    f"a part of the data ended {error.allowed_failures + 1} workers in turn, "
                    "probably for lack of memory; give workers more memory, or write smaller row "
                    "groups."
                ) from None
            except (CancelledError, OSError):
                raise ClusterError(
                    f"the Dask scheduler at {_address(self._client)} went away; start it and run "
                    "the fit again (it resumes from its checkpoint)."
                ) from None


def _run(task: Callable[[int, Any], T], index: int, part: Any) -> T:
    return task(index, part)


def _add(merge: Any, results: Sequence[T]) -> T:
    return reduce(merge, results)


def _delayed_part(part: Any) -> Any:
    import dask

    if isinstance(part, DaskPart):
        return part.delayed
    return dask.delayed(part, pure=False, traverse=False)


def _fits(client: Any, source: ChunkSource) -> bool:
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    room = sum(worker["memory_limit"] or 0 for worker in workers)
    return source.nbytes is not None and source.nbytes < _SHARE_OF_MEMORY * room


def _check_cluster(client: Any) -> None:
    """Refuse a closed client, a cluster without workers, and workers with other versions."""
    import distributed

    where = _address(client)
    if client.status != "running":
        raise ClusterError(f"the client of {where} is {client.status}; make a new one.")
    try:
        client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
    except (TimeoutError, distributed.TimeoutError):
        raise ClusterError(
            f"the Dask scheduler at {where} has no workers; start some with `dask worker {where}`."
        ) from None
    found: dict[str, Any] = {}
    try:
        found["scheduler"] = client.run_on_scheduler(_versions)
    except Exception as error:  # of any kind: it comes from another installation
        found["scheduler"] = error
    for worker, theirs in client.run(_versions, on_error="return").items():
        found[f"worker {worker}"] = theirs
    for who, theirs in found.items():
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
