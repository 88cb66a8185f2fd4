"""Which column holds the classes of which file, and classes under other names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mixda._core.errors import MixdaError
from mixda.chunks import EncodedColumn, RowBlock
from mixda.tables import Samples, Table, class_names


@dataclass(frozen=True)
class LabelColumns:
    """The column of the classes: one for all files, or others for some of them."""

    default: str | None = None
    by_file: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, label: str | Sequence[str] | None) -> LabelColumns:
        """Parse column names, each optionally preceded by a file, as in "b.csv:type".

        Examples
        --------
        >>> from mixda.workflow._labels import LabelColumns
        >>> LabelColumns.parse(["state", "b.csv:type"])
        LabelColumns(default='state', by_file=(('b.csv', 'type'),))
        """
        values = [label] if isinstance(label, str) else list(label or ())
        pairs = [_split(value) for value in values]
        columns = [column for file, column in pairs if file is None]
        if len(columns) > 1:
            raise MixdaError(
                f"label (--label) names two columns for all files, {columns[0]!r} and "
                f"{columns[1]!r}; write file.csv:column for files that differ."
            )
        by_file = tuple((file, column) for file, column in pairs if file is not None)
        return cls(columns[0] if columns else None, by_file)

    def of(self, table: Table) -> str | None:
        """Return the column of the classes in a table."""
        names = {str(file) for file in table.files} | {file.name for file in table.files}
        names |= {file.parent.name for file in table.files}
        return next((column for file, column in self.by_file if file in names), self.default)

    def check_files(self, tables: Sequence[Table]) -> None:
        """Check that every file that is named is a source."""
        for file, column in self.by_file:
            if not any(self.of(table) == column for table in tables):
                raise MixdaError(f"label (--label) names {file!r}, which is not among the sources.")

    @property
    def columns(self) -> set[str]:
        """All columns that hold classes in some file."""
        return {name for name in (self.default, *(c for _, c in self.by_file)) if name is not None}


def rename_classes(samples: Samples, names: Mapping[str, str]) -> Samples:
    """Return the samples with some classes renamed."""
    if samples.y is None or not names:
        return samples
    renamed = [names.get(str(name), str(name)) for name in samples.y.tolist()]
    return replace(samples, y=class_names(np.array(renamed, dtype=object)))


@dataclass(frozen=True)
class RenamedClasses:
    """Renames classes block by block."""

    names: Mapping[str, str]

    def __call__(self, block: RowBlock) -> RowBlock:
        """Return the block with some classes renamed."""
        if block.label is None:
            return block
        renamed = [self.names.get(str(name), str(name)) for name in block.label.names]
        return replace(block, label=EncodedColumn(renamed, block.label.codes))


def _split(value: str) -> tuple[str | None, str]:
    file, sign, column = value.rpartition(":")
    is_file = bool(sign) and (Path(file).suffix != "" or Path(file).exists())
    return (file, column) if is_file else (None, value)
