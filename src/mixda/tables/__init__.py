"""Tables in files (csv, parquet, npz): columns in, arrays and names out, in batches."""

from mixda.tables._cells import NO_NAME as NO_NAME
from mixda.tables._checks import check_samples as check_samples
from mixda.tables._checks import note_dropped as note_dropped
from mixda.tables._files import PARQUET_SUFFIXES as PARQUET_SUFFIXES
from mixda.tables._files import SUFFIXES as SUFFIXES
from mixda.tables._files import TableFile as TableFile
from mixda.tables._files import pyarrow as pyarrow
from mixda.tables._names import class_names
from mixda.tables._names import domain_names as domain_names
from mixda.tables._names import one_kind_of_classes as one_kind_of_classes
from mixda.tables._table import Batch, Samples, Table, expand_paths, open_table, write_table
from mixda.tables._table import PathArgument as PathArgument
from mixda.tables._table import check_different as check_different
from mixda.tables._table import check_writable as check_writable
from mixda.tables._text_columns import check_left_out as check_left_out

__all__ = ["Batch", "Samples", "Table", "class_names", "expand_paths", "open_table", "write_table"]
