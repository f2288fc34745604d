"""Resolved schemas: columns whose types are known, with event time and key.

Promises: PyFlink's names.
Does not know: catalogs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from millstream.sql.types import data_types as t
from millstream.table.catalog.columns import Column, PhysicalColumn, quoted


@dataclass(frozen=True)
class WatermarkSpec:
    """Event time of a resolved schema."""

    rowtime_attribute: str
    watermark_expression: Any

    @staticmethod
    def of(rowtime_attribute: str, watermark_expression: Any) -> WatermarkSpec:
        """A watermark."""
        return WatermarkSpec(rowtime_attribute, watermark_expression)

    def get_rowtime_attribute(self) -> str:
        """The column."""
        return self.rowtime_attribute

    def get_watermark_expression(self) -> Any:
        """What the watermark follows."""
        return self.watermark_expression

    def as_summary_string(self) -> str:
        """The watermark as text."""
        return f"WATERMARK FOR {quoted(self.rowtime_attribute)} AS {self.watermark_expression}"


@dataclass(frozen=True)
class Constraint:
    """A promise about rows."""

    class ConstraintType(Enum):
        """Kinds of promises."""

        PRIMARY_KEY = 0
        UNIQUE_KEY = 1

    name: str

    def get_name(self) -> str:
        """Its name."""
        return self.name

    def is_enforced(self) -> bool:
        """Never: it is a promise of the data."""
        return False

    def get_type(self) -> Constraint.ConstraintType:
        """Its kind."""
        return Constraint.ConstraintType.PRIMARY_KEY

    def as_summary_string(self) -> str:
        """The promise as text."""
        return f"CONSTRAINT {quoted(self.name)}"


@dataclass(frozen=True)
class UniqueConstraint(Constraint):
    """A primary key."""

    columns: tuple[str, ...] = ()

    @staticmethod
    def primary_key(name: str, columns: Sequence[str]) -> UniqueConstraint:
        """A primary key."""
        return UniqueConstraint(name, tuple(columns))

    def get_columns(self) -> list[str]:
        """The columns."""
        return list(self.columns)

    def get_type_string(self) -> str:
        """PRIMARY KEY."""
        return "PRIMARY KEY"

    def as_summary_string(self) -> str:
        """The key as text."""
        name, *keys = map(quoted, (self.name, *self.columns))
        return f"CONSTRAINT {name} PRIMARY KEY ({', '.join(keys)}) NOT ENFORCED"


class ResolvedSchema:
    """Columns whose types are known, with watermarks and key."""

    def __init__(
        self,
        columns: Sequence[Column] | None = None,
        watermark_specs: Sequence[WatermarkSpec] | None = None,
        primary_key: UniqueConstraint | None = None,
    ) -> None:
        self._columns = list(columns or ())
        self._watermarks = list(watermark_specs or ())
        self._key = primary_key

    @staticmethod
    def _of(row: t.RowType) -> ResolvedSchema:
        return ResolvedSchema([PhysicalColumn(f.name, f.data_type) for f in row.fields])

    @staticmethod
    def of(columns: Sequence[Column]) -> ResolvedSchema:
        """A schema of columns."""
        return ResolvedSchema(columns)

    @staticmethod
    def physical(column_names: Sequence[str], column_data_types: Sequence[t.DataType]) -> ResolvedSchema:
        """A schema of physical columns."""
        return ResolvedSchema([PhysicalColumn(n, k) for n, k in zip(column_names, column_data_types, strict=True)])

    def get_column_count(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    def get_columns(self) -> list[Column]:
        """The columns."""
        return list(self._columns)

    def get_column_names(self) -> list[str]:
        """Their names."""
        return [each.name for each in self._columns]

    def get_column_data_types(self) -> list[t.DataType]:
        """Their types."""
        return [each.data_type for each in self._columns]

    def get_column(self, column_index_or_name: int | str) -> Column | None:
        """A column, None where there is none."""
        if isinstance(column_index_or_name, str):
            return next((each for each in self._columns if each.name == column_index_or_name), None)
        return self._columns[column_index_or_name] if 0 <= column_index_or_name < len(self._columns) else None

    def get_watermark_specs(self) -> list[WatermarkSpec]:
        """Event time."""
        return list(self._watermarks)

    def get_primary_key(self) -> UniqueConstraint | None:
        """The key."""
        return self._key

    def get_primary_key_indexes(self) -> list[int]:
        """Where the columns of the key are."""
        return [] if self._key is None else [self.get_column_names().index(each) for each in self._key.columns]

    def _row(self, wanted: Sequence[Column]) -> t.RowType:
        return t.row_of([each.name for each in wanted], [each.data_type for each in wanted], null=False)

    def to_source_row_data_type(self) -> t.RowType:
        """All columns as a row."""
        return self._row(self._columns)

    def to_physical_row_data_type(self) -> t.RowType:
        """The physical columns as a row."""
        return self._row([each for each in self._columns if each.is_physical()])

    def to_sink_row_data_type(self) -> t.RowType:
        """The columns that are written, as a row."""
        return self._row([each for each in self._columns if each.is_persisted()])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResolvedSchema) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(self._columns))

    def __str__(self) -> str:
        parts = [each.as_summary_string() for each in self._columns]
        parts += [each.as_summary_string() for each in self._watermarks]
        parts += [] if self._key is None else [self._key.as_summary_string()]
        return "(\n  " + ",\n  ".join(parts) + "\n)"

    __repr__ = __str__
