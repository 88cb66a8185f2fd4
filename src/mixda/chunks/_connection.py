"""Connections to a Dask scheduler: each has a deadline, and a lost one is one sentence."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mixda._core.errors import MixdaError

T = TypeVar("T")

CONNECT_SECONDS = 10.0
_LOGGERS = ("distributed", "tornado", "asyncio")
_ADDRESS = re.compile(r"([a-z]+://)?(\[[0-9a-fA-F:.%]+\]|[^\s:/\[\]]+):\d{1,5}")


class ClusterError(MixdaError, ConnectionError):
    """The cluster is unreachable, unsuitable, or was lost."""


@contextmanager
def connected_client(address: str, name: str, set_as_default: bool = False) -> Iterator[Any]:
    """Yield a client of the scheduler at `address`, which messages call `name`.

    The address is probed first: a client that fails to connect leaves threads and messages behind.
    The log messages of Dask about lost connections are not shown.
    """
    import distributed

    if not _ADDRESS.fullmatch(address) and not address.startswith("inproc://"):
        raise ClusterError(
            f"{name} must be the address of a Dask scheduler, such as tcp://10.0.0.1:8786, got "
            f"{address!r}."
        )
    with _quiet_logs():
        _probe(address, name)
        options = {"timeout": CONNECT_SECONDS, "set_as_default": set_as_default}
        try:
            client = within_deadline(lambda: distributed.Client(address, **options))
        except (OSError, ValueError, TimeoutError) as error:
            raise _unreachable(address, name, error) from None
        try:
            yield client
        finally:
            _close(client)


def within_deadline(call: Callable[[], T], seconds: float = 2 * CONNECT_SECONDS) -> T:
    """Return the result of a call; raise TimeoutError if it takes longer than `seconds`.

    The call runs in a thread that does not keep the process alive.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = call()
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    if "error" in outcome:
        raise outcome["error"]
    result: T = outcome["result"]
    return result


def _probe(address: str, name: str) -> None:
    """Ask who is there."""
    import asyncio

    from distributed import Security
    from distributed.core import connect

    async def identity() -> Any:
        options = Security().get_connection_args("client")
        comm = await connect(address, timeout=CONNECT_SECONDS, **options)
        try:
            await comm.write({"op": "identity", "reply": True})
            return await comm.read()
        finally:
            comm.abort()

    async def limited() -> Any:
        return await asyncio.wait_for(identity(), CONNECT_SECONDS)

    try:
        answer = within_deadline(lambda: asyncio.run(limited()))
    except Exception as error:  # of tornado, ssl, asyncio or distributed
        raise _unreachable(address, name, error) from None
    if not isinstance(answer, dict) or answer.get("type") != "Scheduler":
        raise ClusterError(f"{name}: there is no Dask scheduler at {address!r}.")


def _unreachable(address: str, name: str, error: BaseException) -> ClusterError:
    reason = str(error).split("\n")[0].rstrip(". ")[:200] or "no answer"
    return ClusterError(
        f"{name}: no Dask scheduler answers at {address!r} ({reason}). Start one with "
        "`dask scheduler`, or correct the address."
    )


def _close(client: Any) -> None:
    """Close a client, also if its scheduler no longer answers."""
    try:
        within_deadline(lambda: client.close(timeout=2), 5.0)
    except Exception:  # nothing is left to be done
        return


@contextmanager
def _quiet_logs() -> Iterator[None]:
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in _LOGGERS]
    loggers = [logging.getLogger(name) for name in names]  # Dask gives several a level of their own
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
