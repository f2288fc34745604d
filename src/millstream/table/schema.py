"""Schema: the columns, watermark and key of a table, written in Python.

Promises: PyFlink's builder; what CREATE TABLE can say, it can say.
Does not know: catalogs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.errors import UserError
from millstream.sql.types import data_types as t
from millstream.table.catalog.columns import quoted
from millstream.table.expression import Expression
from millstream.table.expression.terms import text_of
from millstream.table.udf import as_type


def expression_text(given: Any) -> str:
    """The SQL of an expression."""
    return text_of(given._node) if isinstance(given, Expression) else str(given)


class Schema:
    """What Schema.new_builder() makes."""

    class Builder:
        """Makes a schema column by column."""

        def __init__(self) -> None:
            self._schema = Schema()

        def from_schema(self, unresolved_schema: Schema) -> Schema.Builder:
            """Take all of another schema."""
            self._schema._columns += unresolved_schema._columns
            self._schema._watermark = unresolved_schema._watermark or self._schema._watermark
            if unresolved_schema._key:
                self._schema._key, self._schema._constraint = unresolved_schema._key, unresolved_schema._constraint
            return self

        def from_resolved_schema(self, resolved_schema: Any) -> Schema.Builder:
            """Take the columns of a resolved schema."""
            return self.from_fields(resolved_schema.get_column_names(), resolved_schema.get_column_data_types())

        def from_row_data_type(self, data_type: t.RowType) -> Schema.Builder:
            """Take the fields of a row type."""
            return self.from_fields(data_type.names, data_type.types)

        def from_fields(self, field_names: Sequence[str], field_data_types: Sequence[Any]) -> Schema.Builder:
            """Add columns by names and types."""
            for name, kind in zip(field_names, field_data_types, strict=True):
                self.column(name, kind)
            return self

        def column(self, column_name: str, data_type: Any) -> Schema.Builder:
            """Add a physical column."""
            self._schema._columns.append((column_name, as_type(data_type), None, None, False))
            return self

        def column_by_expression(self, column_name: str, expr: Any) -> Schema.Builder:
            """Add a computed column."""
            self._schema._columns.append((column_name, None, expression_text(expr), None, False))
            return self

        def column_by_metadata(
            self, column_name: str, data_type: Any, metadata_key: str | None = None, is_virtual: bool = False
        ) -> Schema.Builder:
            """Add a column of the record's metadata."""
            self._schema._columns.append(
                (column_name, as_type(data_type), None, metadata_key or column_name, is_virtual)
            )
            return self

        def watermark(self, column_name: str, watermark_expr: Any) -> Schema.Builder:
            """Event time, and how the watermark follows it."""
            self._schema._watermark = (column_name, expression_text(watermark_expr))
            return self

        def primary_key(self, *column_names: str) -> Schema.Builder:
            """The columns that tell rows apart."""
            return self.primary_key_named(f"PK_{'_'.join(column_names)}", *column_names)

        def primary_key_named(self, constraint_name: str, *column_names: str) -> Schema.Builder:
            """The columns that tell rows apart, under a name."""
            if not column_names:
                msg = "a primary key needs at least one column"
                raise UserError(msg)
            self._schema._constraint, self._schema._key = constraint_name, column_names
            return self

        def build(self) -> Schema:
            """The schema."""
            return self._schema

    def __init__(self) -> None:
        self._columns: list[tuple[str, t.DataType | None, str | None, str | None, bool]] = []
        self._watermark: tuple[str, str] | None = None
        self._key: tuple[str, ...] = ()
        self._constraint: str | None = None

    @staticmethod
    def new_builder() -> Schema.Builder:
        """A builder."""
        return Schema.Builder()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(name for name, *_ in self._columns))

    def __str__(self) -> str:
        lines = []
        for name, kind, expr, key, virtual in self._columns:
            if expr is not None:
                lines.append(f"{quoted(name)} AS [{expr}]")
            else:
                tail = "" if key is None else f" METADATA FROM '{key}'" + (" VIRTUAL" if virtual else "")
                lines.append(f"{quoted(name)} {kind}{tail}")
        if self._watermark is not None:
            lines.append(f"WATERMARK FOR {quoted(self._watermark[0])} AS [{self._watermark[1]}]")
        if self._key:
            keys = ", ".join(map(quoted, self._key))
            lines.append(f"CONSTRAINT {quoted(self._constraint or '')} PRIMARY KEY ({keys}) NOT ENFORCED")
        return "(\n  " + ",\n  ".join(lines) + "\n)"

    __repr__ = __str__
