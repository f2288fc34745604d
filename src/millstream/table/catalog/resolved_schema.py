"""ResolvedSchema: columns with known data types, watermarks and the primary key.

Promises: PyFlink's names.
Does not know: catalogs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from millstream.sql.types import data_types as t
from millstream.table.catalog.columns import Column, PhysicalColumn, quote
from millstream.table.resolved_expression import ResolvedExpression


@dataclass(frozen=True)
class WatermarkSpec:
    """The event-time attribute of a schema and the expression of its watermark.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> WatermarkSpec.of("rowtime", col("rowtime") - lit(5).seconds).get_rowtime_attribute()
        'rowtime'

    """

    rowtime_attribute: str
    watermark_expression: Any
    data_type: t.DataType | None = None

    @staticmethod
    def of(rowtime_attribute: str, watermark_expression: Any) -> WatermarkSpec:
        """Create a watermark specification.

        Args:
            rowtime_attribute: The name of the column.
            watermark_expression: The expression.

        """
        is_resolved = isinstance(watermark_expression, ResolvedExpression)
        data_type = watermark_expression.get_output_data_type() if is_resolved else None
        return WatermarkSpec(rowtime_attribute, watermark_expression, data_type)

    def get_rowtime_attribute(self) -> str:
        """Return the name of the event-time column."""
        return self.rowtime_attribute

    def get_watermark_expression(self) -> Any:
        """Return the expression of the watermark."""
        return self.watermark_expression

    def as_summary_string(self) -> str:
        """Return the specification for people."""
        data_type = "" if self.data_type is None else f": {self.data_type}"
        return f"WATERMARK FOR {quote(self.rowtime_attribute)}{data_type} AS {self.watermark_expression}"

    def __str__(self) -> str:
        return self.as_summary_string()


@dataclass(frozen=True)
class Constraint:
    """An integrity constraint of a table.

    Example:
        >>> UniqueConstraint.primary_key("pk", ["id"]).get_type()
        <ConstraintType.PRIMARY_KEY: 0>

    """

    class ConstraintType(Enum):
        """The types of constraints."""

        PRIMARY_KEY = 0
        UNIQUE_KEY = 1

    name: str = ""

    def get_name(self) -> str:
        """Return the name of the constraint."""
        return self.name

    def is_enforced(self) -> bool:
        """Return False: constraints are not checked, the data must satisfy them."""
        return False

    def get_type(self) -> Constraint.ConstraintType:
        """Return the type of the constraint."""
        return Constraint.ConstraintType.PRIMARY_KEY

    def as_summary_string(self) -> str:
        """Return the constraint for people."""
        return f"CONSTRAINT {quote(self.name)}"


@dataclass(frozen=True)
class UniqueConstraint(Constraint):
    """A primary key constraint.

    Example:
        >>> UniqueConstraint.primary_key("pk", ["id"]).get_columns()
        ['id']

    """

    columns: tuple[str, ...] = ()

    @staticmethod
    def primary_key(name: str, columns: Sequence[str]) -> UniqueConstraint:
        """Create a primary key constraint.

        Args:
            name: The name of the constraint.
            columns: The names of the columns.

        """
        return UniqueConstraint(name, tuple(columns))

    def get_columns(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.columns)

    def get_type_string(self) -> str:
        """Return `PRIMARY KEY`."""
        return "PRIMARY KEY"

    def as_summary_string(self) -> str:
        """Return the constraint for people."""
        name, *keys = map(quote, (self.name, *self.columns))
        return f"CONSTRAINT {name} PRIMARY KEY ({', '.join(keys)}) NOT ENFORCED"


class ResolvedSchema:
    """The columns of a table with their data types, its watermarks and its primary key.

    Example:
        >>> from millstream.table import DataTypes
        >>> schema = ResolvedSchema.physical(["id", "name"], [DataTypes.INT(), DataTypes.STRING()])
        >>> schema.get_column_names()
        ['id', 'name']

    """

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
        """Create a schema of columns.

        Args:
            columns: The columns, in order.

        """
        return ResolvedSchema(columns)

    @staticmethod
    def physical(column_names: Sequence[str], column_data_types: Sequence[t.DataType]) -> ResolvedSchema:
        """Create a schema of physical columns.

        Args:
            column_names: The names.
            column_data_types: The data types, as many as names.

        """
        return ResolvedSchema([PhysicalColumn(n, k) for n, k in zip(column_names, column_data_types, strict=True)])

    def get_column_count(self) -> int:
        """Return the number of columns."""
        return len(self._columns)

    def get_columns(self) -> list[Column]:
        """Return all columns."""
        return list(self._columns)

    def get_column_names(self) -> list[str]:
        """Return the names of all columns."""
        return [column.name for column in self._columns]

    def get_column_data_types(self) -> list[t.DataType]:
        """Return the data types of all columns."""
        return [column.data_type for column in self._columns]

    def get_column(self, column_index_or_name: int | str) -> Column | None:
        """Return a column by index or name, or None if there is no such column.

        Args:
            column_index_or_name: The index, counted from 0, or the name.

        """
        if isinstance(column_index_or_name, str):
            return next((column for column in self._columns if column.name == column_index_or_name), None)
        return self._columns[column_index_or_name] if 0 <= column_index_or_name < len(self._columns) else None

    def get_watermark_specs(self) -> list[WatermarkSpec]:
        """Return the watermark specifications."""
        return list(self._watermarks)

    def get_primary_key(self) -> UniqueConstraint | None:
        """Return the primary key, or None if there is none."""
        return self._key

    def get_primary_key_indexes(self) -> list[int]:
        """Return the indexes of the columns of the primary key."""
        return [] if self._key is None else [self.get_column_names().index(name) for name in self._key.columns]

    def _row_type(self, columns: Sequence[Column]) -> t.RowType:
        return t.row_of([column.name for column in columns], [column.data_type for column in columns], null=False)

    def to_source_row_data_type(self) -> t.RowType:
        """Return the row type of all columns, as a source produces them."""
        return self._row_type(self._columns)

    def to_physical_row_data_type(self) -> t.RowType:
        """Return the row type of the physical columns."""
        return self._row_type([column for column in self._columns if column.is_physical()])

    def to_sink_row_data_type(self) -> t.RowType:
        """Return the row type of the columns that are written to a sink."""
        return self._row_type([column for column in self._columns if column.is_persisted()])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResolvedSchema) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(self._columns))

    def __str__(self) -> str:
        parts = [column.as_summary_string() for column in self._columns]
        parts += [watermark.as_summary_string() for watermark in self._watermarks]
        parts += [] if self._key is None else [self._key.as_summary_string()]
        return "(\n  " + ",\n  ".join(parts) + "\n)"

    __repr__ = __str__
