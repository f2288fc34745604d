"""TableSchema: names and types of columns, in PyFlink's deprecated form.

Promises: PyFlink's methods.
Does not know: catalogs."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.errors import InvalidArgument
from millstream.sql.types import data_types as t
from millstream.table.catalog.resolved_schema import ResolvedSchema


class TableSchema:
    """The names and data types of columns; `ResolvedSchema` is its successor.

    Example:
        >>> from millstream.table import DataTypes
        >>> schema = TableSchema.builder().field("name", DataTypes.STRING()).field("amount", DataTypes.INT()).build()
        >>> schema.get_field_names()
        ['name', 'amount']

    """

    class Builder:
        """Build a schema field by field."""

        def __init__(self) -> None:
            self._names: list[str] = []
            self._types: list[t.DataType] = []

        def field(self, name: str, data_type: t.DataType) -> TableSchema.Builder:
            """Add a field.

            Args:
                name: The name.
                data_type: The data type.

            """
            self._names.append(name)
            self._types.append(data_type)
            return self

        def build(self) -> TableSchema:
            """Return the schema."""
            return TableSchema(self._names, self._types)

    def __init__(self, field_names: Sequence[str] = (), data_types: Sequence[t.DataType] = ()) -> None:
        if len(field_names) != len(data_types):
            msg = f"a schema needs as many names as types, but has {len(field_names)} names and {len(data_types)} types"
            raise InvalidArgument(msg)
        self._names, self._types = list(field_names), list(data_types)
        self._declared: ResolvedSchema | None = None  # what a table declares beside its columns

    def copy(self) -> TableSchema:
        """Return a copy of the schema."""
        return TableSchema(self._names, self._types)

    def get_field_data_types(self) -> list[t.DataType]:
        """Return the data types of all fields."""
        return list(self._types)

    def get_field_data_type(self, field: int | str) -> t.DataType | None:
        """Return the data type of a field by name or index, or None if there is no such field.

        Args:
            field: The index, counted from 0, or the name.

        """
        if isinstance(field, str):
            return self._types[self._names.index(field)] if field in self._names else None
        return self._types[field] if 0 <= field < len(self._types) else None

    def get_field_count(self) -> int:
        """Return the number of fields."""
        return len(self._names)

    def get_field_names(self) -> list[str]:
        """Return the names of all fields."""
        return list(self._names)

    def get_field_name(self, field_index: int) -> str | None:
        """Return the name of a field by index, or None if there is no such field.

        Args:
            field_index: The index, counted from 0.

        """
        return self._names[field_index] if 0 <= field_index < len(self._names) else None

    def to_row_data_type(self) -> t.RowType:
        """Return the schema as a row type, which is NOT NULL."""
        return t.row_of(self._names, self._types, null=False)

    @classmethod
    def builder(cls) -> TableSchema.Builder:
        """Return a builder."""
        return TableSchema.Builder()

    def __repr__(self) -> str:
        lines = [f"{name}: {data_type}" for name, data_type in zip(self._names, self._types, strict=True)]
        if self._declared is not None:
            extras = [column.explain_extras() for column in self._declared.get_columns()]
            lines = [f"{line} {extra}" if extra else line for line, extra in zip(lines, extras, strict=True)]
            for watermark in self._declared.get_watermark_specs():
                name, expression = watermark.rowtime_attribute, watermark.watermark_expression
                lines.append(f"WATERMARK FOR {name}: {watermark.data_type} AS {expression}")
            key = self._declared.get_primary_key()
            lines += [] if key is None else [f"CONSTRAINT {key.name} PRIMARY KEY ({', '.join(key.columns)})"]
        return "root\n" + "".join(f" |-- {line}\n" for line in lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSchema) and (self._names, self._types) == (other._names, other._types)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self._names), tuple(self._types)))
