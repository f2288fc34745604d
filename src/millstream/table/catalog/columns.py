"""Columns of a resolved schema: physical, computed, of metadata.

Promises: PyFlink's names; a column is a value.
Does not know: schemas and tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.sql.types import data_types as t


def quoted(name: str) -> str:
    """A name as SQL has it, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


@dataclass(frozen=True)
class Column:
    """A column of a resolved schema."""

    name: str
    data_type: t.DataType
    comment: str | None = None

    @staticmethod
    def physical(name: str, data_type: t.DataType) -> PhysicalColumn:
        """A column that the record itself holds."""
        return PhysicalColumn(name, data_type)

    @staticmethod
    def computed(name: str, resolved_expression: Any) -> ComputedColumn:
        """A column computed from others."""
        kind = (
            resolved_expression.get_output_data_type()
            if hasattr(resolved_expression, "get_output_data_type")
            else t.STRING
        )
        return ComputedColumn(name, kind, None, resolved_expression)

    @staticmethod
    def metadata(name: str, data_type: t.DataType, metadata_key: str | None, is_virtual: bool) -> MetadataColumn:
        """A column of the record's metadata."""
        return MetadataColumn(name, data_type, None, metadata_key, is_virtual)

    def with_comment(self, comment: str | None) -> Column:
        """The same with a sentence for people."""
        return replace(self, comment=comment)

    def is_physical(self) -> bool:
        """Whether the record itself holds it."""
        return True

    def is_persisted(self) -> bool:
        """Whether it is written to a sink."""
        return True

    def get_data_type(self) -> t.DataType:
        """The type."""
        return self.data_type

    def get_name(self) -> str:
        """The name."""
        return self.name

    def get_comment(self) -> str | None:
        """A sentence for people."""
        return self.comment

    def as_summary_string(self) -> str:
        """The column as text."""
        extras = self.explain_extras()
        return f"{quoted(self.name)} {self.data_type}" + (f" {extras}" if extras else "")

    def explain_extras(self) -> str | None:
        """What else there is to say."""
        return None

    def copy(self, new_type: t.DataType) -> Column:
        """The same with another type."""
        return replace(self, data_type=new_type)

    def rename(self, new_name: str) -> Column:
        """The same with another name."""
        return replace(self, name=new_name)


@dataclass(frozen=True)
class PhysicalColumn(Column):
    """A column that the record itself holds."""

    def copy(self, new_data_type: t.DataType) -> PhysicalColumn:
        """The same with another type."""
        return replace(self, data_type=new_data_type)


@dataclass(frozen=True)
class ComputedColumn(Column):
    """A column computed from others."""

    expression: Any = None

    def copy(self, new_data_type: t.DataType) -> ComputedColumn:
        """The same with another type."""
        return replace(self, data_type=new_data_type)

    def is_physical(self) -> bool:
        """It is not."""
        return False

    def is_persisted(self) -> bool:
        """It is not."""
        return False

    def get_expression(self) -> Any:
        """What it is computed by."""
        return self.expression

    def explain_extras(self) -> str | None:
        """What it is computed by."""
        return f"AS {self.expression}"


@dataclass(frozen=True)
class MetadataColumn(Column):
    """A column of the record's metadata."""

    metadata_key: str | None = None
    virtual: bool = False

    def copy(self, new_data_type: t.DataType) -> MetadataColumn:
        """The same with another type."""
        return replace(self, data_type=new_data_type)

    def is_physical(self) -> bool:
        """It is not."""
        return False

    def is_persisted(self) -> bool:
        """Unless it is virtual."""
        return not self.virtual

    def is_virtual(self) -> bool:
        """Whether it is only read."""
        return self.virtual

    def get_metadata_key(self) -> str | None:
        """The name the connector has for it."""
        return self.metadata_key

    def explain_extras(self) -> str | None:
        """Where it comes from."""
        return (
            "METADATA"
            + (f" FROM '{self.metadata_key}'" if self.metadata_key else "")
            + (" VIRTUAL" if self.virtual else "")
        )
