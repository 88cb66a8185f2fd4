"""Data of any size: rows in partitions, read by threads, processes or Dask workers."""

from mixda.chunks._connection import connected_client as connected_client
from mixda.chunks._dask import is_dask as is_dask
from mixda.chunks._derived import join_sources as join_sources
from mixda.chunks._derived import map_rows, select_domains
from mixda.chunks._domains import Domains
from mixda.chunks._domains import as_domains as as_domains
from mixda.chunks._domains import default_max_rows as default_max_rows
from mixda.chunks._executors import executor_for as executor_for
from mixda.chunks._executors import running_on as running_on
from mixda.chunks._rows import EncodedColumn as EncodedColumn
from mixda.chunks._rows import Grouping as Grouping
from mixda.chunks._rows import GroupKey as GroupKey
from mixda.chunks._rows import RowBlock as RowBlock
from mixda.chunks._rows import apply_sample_weight as apply_sample_weight
from mixda.chunks._rows import column_names as column_names
from mixda.chunks._sample import RowSample, sample_rows
from mixda.chunks._sources import Partition as Partition
from mixda.chunks._sources import RowSource, from_arrays, from_batches, from_dask, from_files
from mixda.chunks._sums import Executor as Executor

ChunkSource = RowSource  # previous name

__all__ = [
    "ChunkSource",
    "Domains",
    "RowSample",
    "RowSource",
    "from_arrays",
    "from_batches",
    "from_dask",
    "from_files",
    "map_rows",
    "sample_rows",
    "select_domains",
]
