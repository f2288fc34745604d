"""Schema: the columns, the watermark and the primary key of a table.

Promises: PyFlink's builder. A schema can express the same as the column list of CREATE TABLE.
Does not know: catalogs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.errors import InvalidArgument
from millstream.sql.types import data_types as t
from millstream.table.catalog.columns import quote
from millstream.table.expression import Expression
from millstream.table.expression.terms import format_expression
from millstream.table.udf import to_data_type


def to_sql_text(expression: Any) -> str:
    """Return the SQL text of an expression, which can be given as text."""
    return format_expression(expression._node) if isinstance(expression, Expression) else str(expression)


class Schema:
    """The columns, the watermark and the primary key of a table, built with `Schema.new_builder`.

    Example:
        >>> from millstream.table import DataTypes
        >>> schema = (
        ...     Schema.new_builder()
        ...     .column("id", DataTypes.BIGINT(nullable=False))
        ...     .column("ts", DataTypes.TIMESTAMP(3))
        ...     .watermark("ts", "ts - INTERVAL '5' SECOND")
        ...     .primary_key("id")
        ...     .build()
        ... )

    """

    class Builder:
        """Build a schema column by column."""

        def __init__(self) -> None:
            self._schema = Schema()

        def from_schema(self, unresolved_schema: Schema) -> Schema.Builder:
            """Add all columns, the watermark and the primary key of another schema.

            Args:
                unresolved_schema: The other schema.

            """
            self._schema._columns += unresolved_schema._columns
            self._schema._watermark = unresolved_schema._watermark or self._schema._watermark
            if unresolved_schema._key:
                self._schema._key, self._schema._constraint = unresolved_schema._key, unresolved_schema._constraint
            return self

        def from_resolved_schema(self, resolved_schema: Any) -> Schema.Builder:
            """Add the columns of a resolved schema as physical columns.

            Args:
                resolved_schema: A `ResolvedSchema`.

            """
            return self.from_fields(resolved_schema.get_column_names(), resolved_schema.get_column_data_types())

        def from_row_data_type(self, data_type: t.RowType) -> Schema.Builder:
            """Add the fields of a row type as physical columns.

            Args:
                data_type: The row type.

            """
            return self.from_fields(data_type.names, data_type.types)

        def from_fields(self, field_names: Sequence[str], field_data_types: Sequence[Any]) -> Schema.Builder:
            """Add physical columns.

            Args:
                field_names: The names.
                field_data_types: The types, as many as names.

            """
            for name, data_type in zip(field_names, field_data_types, strict=True):
                self.column(name, data_type)
            return self

        def column(self, column_name: str, data_type: Any) -> Schema.Builder:
            """Add a physical column, which the records of the connector contain.

            Args:
                column_name: The name.
                data_type: A `DataType`, or its SQL text.

            """
            self._schema._columns.append((column_name, to_data_type(data_type), None, None, False))
            return self

        def column_by_expression(self, column_name: str, expr: Any) -> Schema.Builder:
            """Add a computed column.

            Args:
                column_name: The name.
                expr: An expression over other columns, or its SQL text.

            """
            self._schema._columns.append((column_name, None, to_sql_text(expr), None, False))
            return self

        def column_by_metadata(
            self, column_name: str, data_type: Any, metadata_key: str | None = None, is_virtual: bool = False
        ) -> Schema.Builder:
            """Add a metadata column, which the connector reads from or writes to the metadata of a record.

            Args:
                column_name: The name.
                data_type: A `DataType`, or its SQL text.
                metadata_key: The key of the metadata; by default the name of the column.
                is_virtual: Whether the column is only read and not written to a sink.

            """
            self._schema._columns.append(
                (column_name, to_data_type(data_type), None, metadata_key or column_name, is_virtual)
            )
            return self

        def watermark(self, column_name: str, watermark_expr: Any) -> Schema.Builder:
            """Declare an event-time attribute and its watermark strategy.

            Args:
                column_name: A column of type TIMESTAMP(3) or TIMESTAMP_LTZ(3).
                watermark_expr: The watermark, as in `"ts - INTERVAL '5' SECOND"`, or `"SOURCE_WATERMARK()"`.

            """
            self._schema._watermark = (column_name, to_sql_text(watermark_expr))
            return self

        def primary_key(self, *column_names: str) -> Schema.Builder:
            """Declare the primary key, which is not enforced.

            Args:
                *column_names: The columns of the key.

            Raises:
                UserError: If there are no columns.

            """
            return self.primary_key_named(f"PK_{'_'.join(column_names)}", *column_names)

        def primary_key_named(self, constraint_name: str, *column_names: str) -> Schema.Builder:
            """Declare the primary key, which is not enforced, with a constraint name.

            Args:
                constraint_name: The name of the constraint.
                *column_names: The columns of the key.

            Raises:
                UserError: If there are no columns.

            """
            if not column_names:
                msg = "a primary key needs at least one column"
                raise InvalidArgument(msg)
            self._schema._constraint, self._schema._key = constraint_name, column_names
            return self

        def build(self) -> Schema:
            """Return the schema."""
            return self._schema

    def __init__(self) -> None:
        self._columns: list[tuple[str, t.DataType | None, str | None, str | None, bool]] = []
        self._watermark: tuple[str, str] | None = None
        self._key: tuple[str, ...] = ()
        self._constraint: str | None = None

    @staticmethod
    def new_builder() -> Schema.Builder:
        """Return a builder."""
        return Schema.Builder()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(name for name, *_ in self._columns))

    def __str__(self) -> str:
        lines = []
        for name, data_type, expr, metadata_key, virtual in self._columns:
            if expr is not None:
                lines.append(f"{quote(name)} AS [{expr}]")
            elif metadata_key is None:
                lines.append(f"{quote(name)} {data_type}")
            else:
                source = "" if metadata_key == name else f" FROM '{metadata_key}'"
                lines.append(f"{quote(name)} {data_type} METADATA{source}{' VIRTUAL' if virtual else ''}")
        if self._watermark is not None:
            column, expression = self._watermark
            lines.append(f"WATERMARK FOR {quote(column)} AS [{expression}]")
        if self._key:
            keys = ", ".join(map(quote, self._key))
            lines.append(f"CONSTRAINT {quote(self._constraint or '')} PRIMARY KEY ({keys}) NOT ENFORCED")
        return "(\n  " + ",\n  ".join(lines) + "\n)"

    __repr__ = __str__
