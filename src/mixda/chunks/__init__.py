"""Data of any size: rows in blocks, read again in every pass, in processes or on a Dask cluster."""

from mixda.chunks._executors import executor_for as executor_for
from mixda.chunks._rows import Key as Key
from mixda.chunks._rows import column_names as column_names
from mixda.chunks._rows import weighed as weighed
from mixda.chunks._sources import ChunkSource, from_arrays, from_batches, from_dask, from_files
from mixda.chunks._sources import Part as Part
from mixda.chunks._sums import Executor as Executor
from mixda.chunks._sums import tree_sum as tree_sum

__all__ = ["ChunkSource", "from_arrays", "from_batches", "from_dask", "from_files"]
