"""What catalogs hold: databases, partitions, functions, tables and views.

Promises: PyFlink's names.
Does not know: where they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from millstream.config.configuration import Configuration
from millstream.sql.catalog import catalog as c
from millstream.sql.types import data_types as t
from millstream.table.schema import Schema


class _Described:
    """Properties and a comment."""

    def __init__(self, properties: Mapping[str, str] | None = None, comment: str | None = None) -> None:
        self._properties, self._comment = dict(properties or {}), comment

    def get_properties(self) -> dict[str, str]:
        """The properties."""
        return dict(self._properties)

    def get_comment(self) -> str | None:
        """A sentence for people."""
        return self._comment

    def get_description(self) -> str | None:
        """A sentence for people."""
        return self._comment

    def get_detailed_description(self) -> str | None:
        """A sentence for people."""
        return self._comment


class CatalogDatabase(_Described):
    """A database's properties."""

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogDatabase:
        """A database."""
        return CatalogDatabase(properties, comment)

    def copy(self) -> CatalogDatabase:
        """The same."""
        return CatalogDatabase(self._properties, self._comment)


class CatalogPartition(_Described):
    """A partition's properties."""

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogPartition:
        """A partition."""
        return CatalogPartition(properties, comment)

    def copy(self) -> CatalogPartition:
        """The same."""
        return CatalogPartition(self._properties, self._comment)


class CatalogPartitionSpec:
    """The columns of a partition and their values."""

    def __init__(self, partition_spec: Mapping[str, str]) -> None:
        self._spec = dict(partition_spec)

    def get_partition_spec(self) -> dict[str, str]:
        """Columns and values."""
        return dict(self._spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CatalogPartitionSpec) and self._spec == other._spec

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._spec.items())))

    def __str__(self) -> str:
        return f"CatalogPartitionSpec({self._spec})"


class CatalogFunction:
    """A function of a catalog."""

    def __init__(
        self, class_name: str, function_language: str = "Python", options: Mapping[str, str] | None = None
    ) -> None:
        self._class_name, self._language, self._options = class_name, function_language, dict(options or {})

    @staticmethod
    def create_instance(class_name: str, function_language: str = "Python") -> CatalogFunction:
        """A function."""
        return CatalogFunction(class_name, function_language)

    def get_class_name(self) -> str:
        """Where it is defined."""
        return self._class_name

    def get_function_language(self) -> str:
        """The language it is written in."""
        return self._language

    def get_options(self) -> dict[str, str]:
        """Its options."""
        return dict(self._options)

    def get_description(self) -> str | None:
        """A sentence for people."""
        return f"{self._language} function {self._class_name}"

    def get_detailed_description(self) -> str | None:
        """A sentence for people."""
        return self.get_description()

    def copy(self) -> CatalogFunction:
        """The same."""
        return CatalogFunction(self._class_name, self._language, self._options)


class Procedure:
    """What CALL would run; catalogs here have none."""


class CatalogBaseTable:
    """A table or view of a catalog."""

    def __init__(self, definition: c.CatalogObject) -> None:
        self._definition = definition

    @staticmethod
    def create_table(
        schema: Schema,
        partition_keys: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """A table."""
        columns = tuple(
            c.ColumnDefinition(name, kind or t.NULL, expr, key, virtual)
            for name, kind, expr, key, virtual in schema._columns
        )
        made = c.TableDefinition(
            columns,
            dict(properties or {}),
            schema._watermark,
            schema._key,
            schema._constraint,
            tuple(partition_keys),
            comment,
        )
        return CatalogBaseTable(made)

    @staticmethod
    def create_view(
        original_query: str,
        expanded_query: str,
        schema: Schema,
        properties: Mapping[str, str],  # noqa: ARG004 - a view has no options
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """A view."""
        row = t.row_of([n for n, *_ in schema._columns], [k or t.STRING for _, k, *_ in schema._columns], null=False)
        return CatalogBaseTable(c.ViewDefinition(original_query, row, comment, None, expanded_query))

    def get_options(self) -> dict[str, str]:
        """The options."""
        return dict(getattr(self._definition, "options", {}))

    def get_comment(self) -> str | None:
        """A sentence for people."""
        return getattr(self._definition, "comment", None)

    def get_unresolved_schema(self) -> Schema:
        """The columns."""
        builder = Schema.new_builder()
        if not isinstance(self._definition, c.TableDefinition):
            return builder.from_row_data_type(self._definition.schema).build()
        for each in self._definition.columns:
            builder._schema._columns.append(
                (each.name, None if each.expr is not None else each.type, each.expr, each.metadata_key, each.virtual)
            )
        made = builder.build()
        made._watermark, made._key = self._definition.watermark, self._definition.primary_key
        made._constraint = self._definition.constraint
        return made

    def copy(self) -> CatalogBaseTable:
        """The same."""
        return CatalogBaseTable(self._definition)

    def get_description(self) -> str | None:
        """A sentence for people."""
        return self.get_comment()

    def get_detailed_description(self) -> str | None:
        """A sentence for people."""
        return self.get_comment()


@dataclass(frozen=True)
class CatalogDescriptor:
    """A catalog to be made."""

    catalog_name: str
    configuration: Configuration
    comment: str | None = None

    @staticmethod
    def of(catalog_name: str, configuration: Configuration, comment: str | None = None) -> CatalogDescriptor:
        """A description."""
        return CatalogDescriptor(catalog_name, configuration, comment)
