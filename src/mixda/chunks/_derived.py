"""Sources made from other sources: rows mapped block by block, some domains only, joined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixda._core.errors import MixdaError
from mixda.chunks._dask import DaskPartition, LoadedPartition
from mixda.chunks._rows import RowBlock
from mixda.chunks._sources import RowSource

BlockMap = Callable[[RowBlock], RowBlock]


def map_rows(source: RowSource, function: BlockMap, n_features: int | None = None) -> RowSource:
    """Apply a function to every block, where it is read.

    Parameters
    ----------
    source : RowSource
    function : callable
        From a `RowBlock` to a `RowBlock`. Processes and clusters must be able to pickle it.
    n_features : int, optional
        Features after the map, if their number changes; they then have no names.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from mixda import chunks, fit_mixture
    >>> source = chunks.from_arrays(np.arange(10.0)[:, None])
    >>> doubled = chunks.map_rows(source, lambda block: replace(block, X=2 * block.X))
    >>> fit_mixture(doubled).means
    array([[9.]])
    """
    partitions = tuple(_mapped(partition, function) for partition in source.partitions)
    source = replace(source, partitions=partitions)
    if n_features is None or n_features == source.n_features:
        return source
    nbytes = None if source.nbytes is None else source.nbytes // source.n_features * n_features
    return replace(source, n_features=n_features, feature_names=None, nbytes=nbytes)


def select_domains(source: RowSource, domains: Collection[str], *, labeled: bool) -> RowSource:
    """Return the rows of some domains as those of one; their classes are read if `labeled`.

    Other rows are not checked. Without classes, rows that have none are not left out.
    """
    if labeled and not source.has_label:
        raise MixdaError("a source domain has no classes; make it with a label.")
    names = frozenset(domains)
    partitions = tuple(_selected(partition, names, labeled) for partition in source.partitions)
    return replace(source, partitions=partitions, has_label=labeled, has_domain=False, nbytes=None)


def one_domain(source: RowSource, *, labeled: bool) -> RowSource:
    """Return all rows as those of one domain; classes in files are not read unless `labeled`."""
    partitions = tuple(_selected(partition, None, labeled) for partition in source.partitions)
    return replace(source, partitions=partitions, has_label=labeled, has_domain=False)


def join_sources(sources: Sequence[RowSource]) -> RowSource:
    """Return the rows of several sources with the same features as those of one."""
    sizes = [source.nbytes for source in sources]
    return replace(
        sources[0],
        partitions=tuple(part for source in sources for part in source.partitions),
        nbytes=None if None in sizes else sum(size for size in sizes if size is not None),
        in_memory=all(source.in_memory for source in sources),
    )


@dataclass(frozen=True)
class _Selection:
    """Keeps the rows of some domains (None: of all), and drops the classes unless `labeled`."""

    domains: frozenset[str] | None
    labeled: bool

    def __call__(self, block: RowBlock) -> RowBlock:
        rows: Any = slice(None)
        if self.domains is not None:
            if block.domain is None:
                raise MixdaError("the data have no names of domains; make them with a domain.")
            known = np.array([str(name) in self.domains for name in block.domain.names], bool)
            rows = np.flatnonzero(known[block.domain.codes])
        label = block.label if self.labeled else None
        return replace(block, label=label, domain=None)[rows]


def _selected(partition: Any, domains: frozenset[str] | None, labeled: bool) -> Any:
    """Let partitions that can do so leave out rows and classes before they are checked."""
    if hasattr(partition, "select_domains") and getattr(partition, "load", True) is not None:
        return partition.select_domains(domains, labeled)
    return _mapped(partition, _Selection(domains, labeled))


@dataclass(frozen=True, eq=False)
class _MappedPartition:
    inner: Any
    function: BlockMap

    def blocks(self) -> Iterator[RowBlock]:
        for block in self.inner.blocks():
            mapped = self.function(block)
            if len(mapped.X) or mapped.n_left_out:
                yield mapped


def _mapped(partition: Any, function: BlockMap) -> Any:
    if not isinstance(partition, DaskPartition):
        return _MappedPartition(partition, function)
    import dask

    return DaskPartition(dask.delayed(_map_loaded, pure=False)(partition.delayed, function))


def _map_loaded(loaded: LoadedPartition, function: BlockMap) -> LoadedPartition:
    return LoadedPartition(tuple(_MappedPartition(loaded, function).blocks()))
