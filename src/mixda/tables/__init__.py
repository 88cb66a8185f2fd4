"""Tables in csv, parquet, npz and npy files: columns in, arrays and names out, in batches."""

from mixda.tables._cells import MISSING_NAMES as MISSING_NAMES
from mixda.tables._checks import check_samples as check_samples
from mixda.tables._checks import note_dropped as note_dropped
from mixda.tables._columns import Column as Column
from mixda.tables._columns import Columns as Columns
from mixda.tables._columns import check_ordinals as check_ordinals
from mixda.tables._columns import ordinal_levels as ordinal_levels
from mixda.tables._file import TableFile as TableFile
from mixda.tables._file import pyarrow as pyarrow
from mixda.tables._file import reason_of as reason_of
from mixda.tables._names import class_names
from mixda.tables._names import domain_names as domain_names
from mixda.tables._names import one_kind_of_classes as one_kind_of_classes
from mixda.tables._parquet import PARQUET_SUFFIXES as PARQUET_SUFFIXES
from mixda.tables._parquet import combined_row_groups as combined_row_groups
from mixda.tables._paths import SUFFIXES as SUFFIXES
from mixda.tables._paths import PathArgument as PathArgument
from mixda.tables._paths import expand_paths
from mixda.tables._table import Batch, Samples, Table, open_table
from mixda.tables._table import check_different as check_different
from mixda.tables._text_columns import check_text_columns as check_text_columns
from mixda.tables._write import check_writable as check_writable
from mixda.tables._write import write_table

check_left_out = check_text_columns  # previous name

__all__ = ["Batch", "Samples", "Table", "class_names", "expand_paths", "open_table", "write_table"]
