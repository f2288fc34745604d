"""Objects of a catalog: databases, partitions, functions, tables and views.

Promises: PyFlink's names.
Does not know: where they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from millstream.config.configuration import Configuration
from millstream.sql.catalog import catalog as c
from millstream.sql.types import data_types as t
from millstream.table.schema import Schema


class _PropertiesAndComment:
    """Properties and a comment."""

    def __init__(self, properties: Mapping[str, str] | None = None, comment: str | None = None) -> None:
        self._properties, self._comment = dict(properties or {}), comment

    def get_properties(self) -> dict[str, str]:
        """Return the properties."""
        return dict(self._properties)

    def get_comment(self) -> str | None:
        """Return the comment."""
        return self._comment

    def get_description(self) -> str | None:
        """Return the comment."""
        return self._comment

    def get_detailed_description(self) -> str | None:
        """Return the comment."""
        return self._comment


class CatalogDatabase(_PropertiesAndComment):
    """The properties and the comment of a database.

    Example:
        >>> CatalogDatabase.create_instance({"owner": "ann"}, "orders of the shop").get_comment()
        'orders of the shop'

    """

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogDatabase:
        """Create the description of a database.

        Args:
            properties: The properties.
            comment: The comment; None for none.

        """
        return CatalogDatabase(properties, comment)

    def copy(self) -> CatalogDatabase:
        """Return a copy."""
        return CatalogDatabase(self._properties, self._comment)


class CatalogPartition(_PropertiesAndComment):
    """The properties and the comment of a partition.

    Example:
        >>> CatalogPartition.create_instance({"rows": "5"}).get_properties()
        {'rows': '5'}

    """

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogPartition:
        """Create the description of a partition.

        Args:
            properties: The properties.
            comment: The comment; None for none.

        """
        return CatalogPartition(properties, comment)

    def copy(self) -> CatalogPartition:
        """Return a copy."""
        return CatalogPartition(self._properties, self._comment)


class CatalogPartitionSpec:
    """The values of the partition keys that identify a partition.

    Example:
        >>> CatalogPartitionSpec({"day": "2024-05-01"}).get_partition_spec()
        {'day': '2024-05-01'}

    """

    def __init__(self, partition_spec: Mapping[str, str]) -> None:
        self._spec = dict(partition_spec)

    def get_partition_spec(self) -> dict[str, str]:
        """Return the values by partition key."""
        return dict(self._spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CatalogPartitionSpec) and self._spec == other._spec

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._spec.items())))

    def __str__(self) -> str:
        return f"CatalogPartitionSpec({self._spec})"


class CatalogFunction:
    """A function of a catalog, given by the import path of a Python object.

    Example:
        >>> CatalogFunction.create_instance("functions.discount").get_class_name()
        'functions.discount'

    """

    def __init__(
        self, class_name: str, function_language: str = "Python", options: Mapping[str, str] | None = None
    ) -> None:
        self._class_name, self._language, self._options = class_name, function_language, dict(options or {})

    @staticmethod
    def create_instance(class_name: str, function_language: str = "Python") -> CatalogFunction:
        """Create the description of a function.

        Args:
            class_name: The import path, as `package.module.name`.
            function_language: `Python`.

        """
        return CatalogFunction(class_name, function_language)

    def get_class_name(self) -> str:
        """Return the import path."""
        return self._class_name

    def get_function_language(self) -> str:
        """Return the language of the function."""
        return self._language

    def get_options(self) -> dict[str, str]:
        """Return the options of the function."""
        return dict(self._options)

    def get_description(self) -> str | None:
        """Return the language and the import path."""
        return f"{self._language} function {self._class_name}"

    def get_detailed_description(self) -> str | None:
        """Return the language and the import path."""
        return self.get_description()

    def copy(self) -> CatalogFunction:
        """Return a copy."""
        return CatalogFunction(self._class_name, self._language, self._options)


class CatalogBaseTable:
    """The definition of a table or view of a catalog.

    Example:
        >>> from millstream.table import DataTypes, Schema
        >>> schema = Schema.new_builder().column("name", DataTypes.STRING()).build()
        >>> CatalogBaseTable.create_table(schema, properties={"connector": "blackhole"}).get_options()
        {'connector': 'blackhole'}

    """

    def __init__(self, definition: c.CatalogObject) -> None:
        self._definition = definition

    @staticmethod
    def create_table(
        schema: Schema,
        partition_keys: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """Create the definition of a table.

        Args:
            schema: The columns, the watermark and the primary key.
            partition_keys: The names of the columns that partition the table.
            properties: The options of the connector.
            comment: A comment.

        """
        columns = tuple(
            c.ColumnDefinition(name, data_type or t.NULL, expr, metadata_key, virtual)
            for name, data_type, expr, metadata_key, virtual in schema._columns
        )
        definition = c.TableDefinition(
            columns,
            dict(properties or {}),
            schema._watermark,
            schema._key,
            schema._constraint,
            tuple(partition_keys),
            comment,
        )
        return CatalogBaseTable(definition)

    @staticmethod
    def create_view(
        original_query: str,
        expanded_query: str,
        schema: Schema,
        properties: Mapping[str, str],  # noqa: ARG004 - a view has no options
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """Create the definition of a view.

        Args:
            original_query: The query as the user wrote it.
            expanded_query: The query with full names.
            schema: The columns of the query.
            properties: Accepted for PyFlink programs; a view has no options.
            comment: A comment.

        """
        row = t.row_of([n for n, *_ in schema._columns], [k or t.STRING for _, k, *_ in schema._columns], null=False)
        return CatalogBaseTable(c.ViewDefinition(original_query, row, comment, None, expanded_query))

    def get_options(self) -> dict[str, str]:
        """Return the options of the connector; none for a view."""
        return dict(getattr(self._definition, "options", {}))

    def get_comment(self) -> str | None:
        """Return the comment."""
        return getattr(self._definition, "comment", None)

    def get_unresolved_schema(self) -> Schema:
        """Return the columns, the watermark and the primary key."""
        builder = Schema.new_builder()
        if not isinstance(self._definition, c.TableDefinition):
            return builder.from_row_data_type(self._definition.schema).build()
        for column in self._definition.columns:
            data_type = None if column.expr is not None else column.type
            builder._schema._columns.append((column.name, data_type, column.expr, column.metadata_key, column.virtual))
        schema = builder.build()
        schema._watermark, schema._key = self._definition.watermark, self._definition.primary_key
        schema._constraint = self._definition.constraint or f"PK_{'_'.join(schema._key)}"
        return schema

    def copy(self) -> CatalogBaseTable:
        """Return a copy."""
        return CatalogBaseTable(self._definition)

    def get_description(self) -> str | None:
        """Return the comment."""
        return self.get_comment()

    def get_detailed_description(self) -> str | None:
        """Return the comment."""
        return self.get_comment()


@dataclass(frozen=True)
class CatalogDescriptor:
    """The name, the options and the comment of a catalog to create.

    Example:
        >>> from millstream.common import Configuration
        >>> descriptor = CatalogDescriptor.of("shop", Configuration().set_string("type", "generic_in_memory"))
        >>> descriptor.catalog_name
        'shop'

    """

    catalog_name: str
    configuration: Configuration
    comment: str | None = None

    @staticmethod
    def of(catalog_name: str, configuration: Configuration, comment: str | None = None) -> CatalogDescriptor:
        """Create the description of a catalog.

        Args:
            catalog_name: The name.
            configuration: The options, among them `type`.
            comment: A comment.

        """
        return CatalogDescriptor(catalog_name, configuration, comment)
