"""TableSchema: names and types of columns, in PyFlink's older form.

Promises: PyFlink's methods.
Does not know: catalogs."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.errors import UserError
from millstream.sql.types import data_types as t


class TableSchema:
    """Columns by name and position."""

    class Builder:
        """Makes a schema field by field."""

        def __init__(self) -> None:
            self._names: list[str] = []
            self._types: list[t.DataType] = []

        def field(self, name: str, data_type: t.DataType) -> TableSchema.Builder:
            """Add a field."""
            self._names.append(name)
            self._types.append(data_type)
            return self

        def build(self) -> TableSchema:
            """The schema."""
            return TableSchema(self._names, self._types)

    def __init__(self, field_names: Sequence[str] = (), data_types: Sequence[t.DataType] = ()) -> None:
        if len(field_names) != len(data_types):
            msg = f"{len(field_names)} names for {len(data_types)} types"
            raise UserError(msg)
        self._names, self._types = list(field_names), list(data_types)

    def copy(self) -> TableSchema:
        """The same schema."""
        return TableSchema(self._names, self._types)

    def get_field_data_types(self) -> list[t.DataType]:
        """The types."""
        return list(self._types)

    def get_field_data_type(self, field: int | str) -> t.DataType | None:
        """The type of a field, None where there is none."""
        if isinstance(field, str):
            return self._types[self._names.index(field)] if field in self._names else None
        return self._types[field] if 0 <= field < len(self._types) else None

    def get_field_count(self) -> int:
        """How many fields there are."""
        return len(self._names)

    def get_field_names(self) -> list[str]:
        """The names."""
        return list(self._names)

    def get_field_name(self, field_index: int) -> str | None:
        """The name of a field, None where there is none."""
        return self._names[field_index] if 0 <= field_index < len(self._names) else None

    def to_row_data_type(self) -> t.RowType:
        """The schema as a row type."""
        return t.row_of(self._names, self._types)

    @classmethod
    def builder(cls) -> TableSchema.Builder:
        """A builder."""
        return TableSchema.Builder()

    def __repr__(self) -> str:
        lines = "".join(f" |-- {n}: {k}\n" for n, k in zip(self._names, self._types, strict=True))
        return f"root\n{lines}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSchema) and (self._names, self._types) == (other._names, other._types)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self._names), tuple(self._types)))
