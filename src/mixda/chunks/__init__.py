"""Data of any size: rows in partitions, read by threads, processes or Dask workers."""

from mixda.chunks._connection import connected_client as connected_client
from mixda.chunks._executors import executor_for as executor_for
from mixda.chunks._rows import EncodedColumn as EncodedColumn
from mixda.chunks._rows import Grouping as Grouping
from mixda.chunks._rows import GroupKey as GroupKey
from mixda.chunks._rows import RowBlock as RowBlock
from mixda.chunks._rows import apply_sample_weight as apply_sample_weight
from mixda.chunks._rows import column_names as column_names
from mixda.chunks._sources import Partition as Partition
from mixda.chunks._sources import RowSource, from_arrays, from_batches, from_dask, from_files
from mixda.chunks._sums import Executor as Executor

ChunkSource = RowSource  # previous name

__all__ = ["ChunkSource", "RowSource", "from_arrays", "from_batches", "from_dask", "from_files"]
