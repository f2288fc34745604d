"""Columns of a resolved schema: physical columns, computed columns and metadata columns.

Promises: PyFlink's names. Columns compare by value.
Does not know: schemas and tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.sql.types import data_types as t


def quote(name: str) -> str:
    """Quote a name as a SQL identifier."""
    return f"`{name.replace('`', '``')}`"


def quote_string(text: str) -> str:
    """Quote a text as a SQL string."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Column:
    """A column of a resolved schema.

    Example:
        >>> from millstream.table import DataTypes
        >>> Column.physical("amount", DataTypes.INT()).with_comment("in cents").as_summary_string()
        "`amount` INT COMMENT 'in cents'"

    """

    name: str
    data_type: t.DataType
    comment: str | None = None

    @staticmethod
    def physical(name: str, data_type: t.DataType) -> PhysicalColumn:
        """Create a physical column, which the records of the connector contain.

        Args:
            name: The name of the column.
            data_type: The data type.

        """
        return PhysicalColumn(name, data_type)

    @staticmethod
    def computed(name: str, resolved_expression: Any) -> ComputedColumn:
        """Create a computed column.

        Args:
            name: The name.
            resolved_expression: The expression; a `ResolvedExpression` determines the data type.

        """
        data_type = (
            resolved_expression.get_output_data_type()
            if hasattr(resolved_expression, "get_output_data_type")
            else t.STRING
        )
        return ComputedColumn(name, data_type, None, resolved_expression)

    @staticmethod
    def metadata(name: str, data_type: t.DataType, metadata_key: str | None, is_virtual: bool) -> MetadataColumn:
        """Create a metadata column.

        Args:
            name: The name.
            data_type: The data type.
            metadata_key: The key of the metadata; by default the name.
            is_virtual: Whether the column is only read and not written to a sink.

        """
        return MetadataColumn(name, data_type, None, metadata_key, is_virtual)

    def with_comment(self, comment: str | None) -> Column:
        """Return the column with a comment.

        Args:
            comment: The comment; None for none.

        """
        return replace(self, comment=comment)

    def is_physical(self) -> bool:
        """Return whether the records of the connector contain the column."""
        return True

    def is_persisted(self) -> bool:
        """Return whether the column is written to a sink."""
        return True

    def get_data_type(self) -> t.DataType:
        """Return the data type."""
        return self.data_type

    def get_name(self) -> str:
        """Return the name."""
        return self.name

    def get_comment(self) -> str | None:
        """Return the comment."""
        return self.comment

    def as_summary_string(self) -> str:
        """Return the column for people: its name, type and extras."""
        extras = self.explain_extras()
        text = f"{quote(self.name)} {self.data_type}" + (f" {extras}" if extras else "")
        return text if self.comment is None else f"{text} COMMENT {quote_string(self.comment)}"

    def __str__(self) -> str:
        return self.as_summary_string()

    def explain_extras(self) -> str | None:
        """Return the part of the declaration after the type, such as METADATA; None if there is none."""
        return None

    def copy(self, new_type: t.DataType) -> Column:
        """Return the column with another data type.

        Args:
            new_type: The data type.

        """
        return replace(self, data_type=new_type)

    def rename(self, new_name: str) -> Column:
        """Return the column with another name.

        Args:
            new_name: The name.

        """
        return replace(self, name=new_name)


@dataclass(frozen=True)
class PhysicalColumn(Column):
    """A column that the records of the connector contain.

    Example:
        >>> from millstream.table import DataTypes
        >>> Column.physical("amount", DataTypes.INT()).is_physical()
        True

    """

    def copy(self, new_data_type: t.DataType) -> PhysicalColumn:
        """Return the column with another data type."""
        return replace(self, data_type=new_data_type)


@dataclass(frozen=True)
class ComputedColumn(Column):
    """A column that is computed from others.

    Example:
        >>> Column.computed("total", "price * amount").is_persisted()
        False

    """

    expression: Any = None

    def copy(self, new_data_type: t.DataType) -> ComputedColumn:
        """Return the column with another data type."""
        return replace(self, data_type=new_data_type)

    def is_physical(self) -> bool:
        """Return False."""
        return False

    def is_persisted(self) -> bool:
        """Return False."""
        return False

    def get_expression(self) -> Any:
        """Return the expression that computes the column."""
        return self.expression

    def explain_extras(self) -> str | None:
        """Return AS and the expression."""
        return f"AS {self.expression}"


@dataclass(frozen=True)
class MetadataColumn(Column):
    """A column that the connector reads from or writes to the metadata of a record.

    Example:
        >>> from millstream.table import DataTypes
        >>> Column.metadata("time", DataTypes.TIMESTAMP_LTZ(3), "timestamp", True).get_metadata_key()
        'timestamp'

    """

    metadata_key: str | None = None
    virtual: bool = False

    def copy(self, new_data_type: t.DataType) -> MetadataColumn:
        """Return the column with another data type."""
        return replace(self, data_type=new_data_type)

    def is_physical(self) -> bool:
        """Return False."""
        return False

    def is_persisted(self) -> bool:
        """Return whether the column is not virtual."""
        return not self.virtual

    def is_virtual(self) -> bool:
        """Return whether the column is only read and not written to a sink."""
        return self.virtual

    def get_metadata_key(self) -> str | None:
        """Return the key of the metadata; None if it is the name of the column."""
        return self.metadata_key

    def explain_extras(self) -> str | None:
        """Return METADATA with its key and VIRTUAL."""
        return (
            "METADATA"
            + (f" FROM '{self.metadata_key}'" if self.metadata_key else "")
            + (" VIRTUAL" if self.virtual else "")
        )
