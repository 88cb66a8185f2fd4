"""Sums over partitions: the interface of executors, and the tree along which results are added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, Protocol, TypeVar

from mixda._core.errors import MixdaError

T = TypeVar("T")
Task = Callable[[int, Any], T]
Merge = Callable[[T, T], T]

ARITY = 8  # children of a node of the tree


class Executor(Protocol):
    """Runs a task on partitions and adds up the results."""

    def fold(self, task: Task[T], merge: Merge[T], partitions: Sequence[int]) -> T:
        """Return the sum of ``task(index, partition)`` over the partitions of these indices."""
        ...  # pragma: no cover


def tree_sum(results: Iterable[T], merge: Merge[T]) -> T:
    """Add results in order along a tree with `ARITY` children per node.

    The tree depends only on the number of results, so rounding is the same for all executors.

    Examples
    --------
    >>> from mixda.chunks._sums import tree_sum
    >>> tree_sum(map(str, range(10)), lambda a, b: a + b)
    '0123456789'
    """
    levels: list[list[T]] = []

    def push(level: int, value: T) -> None:
        if level == len(levels):
            levels.append([])
        levels[level].append(value)
        if len(levels[level]) == ARITY:
            full, levels[level] = levels[level], []
            push(level + 1, reduce(merge, full))

    for result in results:
        push(0, result)
    level = 0
    while level < len(levels):
        rest, levels[level] = levels[level], []
        if rest and level == len(levels) - 1:
            return reduce(merge, rest)
        if rest:
            push(level + 1, reduce(merge, rest))
        level += 1
    raise MixdaError("there are no partitions to sum over; the data are empty.")
