"""Catalogs as programs see them, and resolved schemas.

Promises: PyFlink's names; a Catalog is a view on the session's own.
Does not know: statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import total_ordering
from typing import Any

from millstream.model.configuration import Configuration
from millstream.sql import catalog as c
from millstream.sql import types as t
from millstream.sql.errors import CatalogError, nearest
from millstream.table.schema import Schema


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
        return f"`{self.name}` {self.data_type}" + (f" {extras}" if extras else "")

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


@dataclass(frozen=True)
class ComputedColumn(Column):
    """A column computed from others."""

    expression: Any = None

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
        return f"WATERMARK FOR `{self.rowtime_attribute}` AS {self.watermark_expression}"


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
        return f"CONSTRAINT `{self.name}`"


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
        keys = ", ".join(f"`{each}`" for each in self.columns)
        return f"CONSTRAINT `{self.name}` PRIMARY KEY ({keys}) NOT ENFORCED"


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


@total_ordering
class ObjectPath:
    """A database and a name in it."""

    def __init__(self, database_name: str | None = None, object_name: str | None = None) -> None:
        self._database, self._name = database_name or "", object_name or ""

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """The path of database.name."""
        database, _, name = full_name.partition(".")
        return ObjectPath(database, name)

    def get_database_name(self) -> str:
        """The database."""
        return self._database

    def get_object_name(self) -> str:
        """The name."""
        return self._name

    def get_full_name(self) -> str:
        """Both, with a dot between."""
        return f"{self._database}.{self._name}"

    def compare_to(self, other: ObjectPath) -> int:
        """Less than, equal to or greater than 0."""
        return (self.get_full_name() > other.get_full_name()) - (self.get_full_name() < other.get_full_name())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and self.get_full_name() == other.get_full_name()

    def __lt__(self, other: ObjectPath) -> bool:
        return self.get_full_name() < other.get_full_name()

    def __le__(self, other: ObjectPath) -> bool:
        return self.get_full_name() <= other.get_full_name()

    def __gt__(self, other: ObjectPath) -> bool:
        return self.get_full_name() > other.get_full_name()

    def __ge__(self, other: ObjectPath) -> bool:
        return self.get_full_name() >= other.get_full_name()

    def __hash__(self) -> int:
        return hash(self.get_full_name())

    def __str__(self) -> str:
        return self.get_full_name()


class ObjectIdentifier:
    """Catalog, database and name."""

    def __init__(self, catalog_name: str, database_name: str, object_name: str) -> None:
        self._parts = (catalog_name, database_name, object_name)

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> ObjectIdentifier:
        """An identifier."""
        return ObjectIdentifier(catalog_name, database_name, object_name)

    def get_catalog_name(self) -> str:
        """The catalog."""
        return self._parts[0]

    def get_database_name(self) -> str:
        """The database."""
        return self._parts[1]

    def get_object_name(self) -> str:
        """The name."""
        return self._parts[2]

    def to_object_path(self) -> ObjectPath:
        """Database and name."""
        return ObjectPath(self._parts[1], self._parts[2])

    def to_list(self) -> list[str]:
        """The three parts."""
        return list(self._parts)

    def as_serializable_string(self) -> str:
        """The parts in backticks."""
        return ".".join(f"`{part.replace('`', '``')}`" for part in self._parts)

    def as_summary_string(self) -> str:
        """The parts with dots."""
        return ".".join(self._parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectIdentifier) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __str__(self) -> str:
        return self.as_summary_string()


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


class CatalogTableStatistics:
    """How much a table holds."""

    def __init__(
        self,
        row_count: int | None = None,
        field_count: int | None = None,
        total_size: int | None = None,
        raw_data_size: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._values = (row_count or 0, field_count or 0, total_size or 0, raw_data_size or 0)
        self._properties = dict(properties or {})

    def get_row_count(self) -> int:
        """Rows."""
        return self._values[0]

    def get_field_count(self) -> int:
        """Columns."""
        return self._values[1]

    def get_total_size(self) -> int:
        """Bytes as stored."""
        return self._values[2]

    def get_raw_data_size(self) -> int:
        """Bytes as read."""
        return self._values[3]

    def get_properties(self) -> dict[str, str]:
        """Anything else."""
        return dict(self._properties)

    def copy(self) -> CatalogTableStatistics:
        """The same."""
        return CatalogTableStatistics(*self._values, properties=self._properties)


class CatalogColumnStatistics:
    """What the columns of a table hold."""

    def __init__(self, column_statistics_data: Any = None, properties: Mapping[str, str] | None = None) -> None:
        self._data, self._properties = column_statistics_data, dict(properties or {})

    def get_column_statistics_data(self) -> Any:
        """By column."""
        return self._data

    def get_properties(self) -> dict[str, str]:
        """Anything else."""
        return dict(self._properties)

    def copy(self) -> CatalogColumnStatistics:
        """The same."""
        return CatalogColumnStatistics(self._data, self._properties)


@dataclass
class Catalog:
    """A catalog of the session."""

    _catalog: c.Catalog
    _session: Any = field(default=None, repr=False)

    def _database(self, name: str) -> c.Database:
        known = self._catalog.databases
        if name not in known:
            msg = f"there is no database '{name}' in catalog '{self._catalog.name}'"
            raise CatalogError(msg, hint=nearest(name, known))
        return known[name]

    def get_default_database(self) -> str:
        """The first database."""
        return self._catalog.default_database

    def list_databases(self) -> list[str]:
        """All databases."""
        return sorted(self._catalog.databases)

    def get_database(self, database_name: str) -> CatalogDatabase:
        """A database."""
        found = self._database(database_name)
        return CatalogDatabase(found.options, found.comment)

    def database_exists(self, database_name: str) -> bool:
        """Whether there is such a database."""
        return database_name in self._catalog.databases

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        """Make a database."""
        if name in self._catalog.databases:
            if ignore_if_exists:
                return
            msg = f"there is a database '{name}' already"
            raise CatalogError(msg)
        self._catalog.databases[name] = c.Database(database.get_comment(), database.get_properties())

    def drop_database(self, name: str, ignore_if_exists: bool) -> None:
        """Forget an empty database."""
        if name not in self._catalog.databases and ignore_if_exists:
            return
        if self._database(name).tables:
            msg = f"database '{name}' is not empty"
            raise CatalogError(msg)
        del self._catalog.databases[name]

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        """Change a database's properties."""
        if name not in self._catalog.databases and ignore_if_not_exists:
            return
        found = self._database(name)
        found.options, found.comment = new_database.get_properties(), new_database.get_comment()

    def list_tables(self, database_name: str) -> list[str]:
        """All tables and views."""
        return sorted(self._database(database_name).tables)

    def list_views(self, database_name: str) -> list[str]:
        """All views."""
        found = self._database(database_name).tables
        return sorted(name for name, each in found.items() if isinstance(each, c.ViewDefinition))

    def list_materialized_tables(self, database_name: str) -> list[str]:
        """None: there are no materialized tables."""
        self._database(database_name)
        return []

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        """A table or view."""
        found = self._database(table_path.get_database_name()).tables
        if table_path.get_object_name() not in found:
            msg = f"there is no table '{table_path}'"
            raise CatalogError(msg, hint=nearest(table_path.get_object_name(), found))
        return CatalogBaseTable(found[table_path.get_object_name()])

    def table_exists(self, table_path: ObjectPath) -> bool:
        """Whether there is such a table."""
        found = self._catalog.databases.get(table_path.get_database_name())
        return found is not None and table_path.get_object_name() in found.tables

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        """Make a table."""
        if self.table_exists(table_path):
            if ignore_if_exists:
                return
            msg = f"there is a table '{table_path}' already"
            raise CatalogError(msg)
        self._database(table_path.get_database_name()).tables[table_path.get_object_name()] = table._definition

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Forget a table or view."""
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        self.get_table(table_path)
        del self._database(table_path.get_database_name()).tables[table_path.get_object_name()]

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        """Give a table another name."""
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        self.create_table(ObjectPath(table_path.get_database_name(), new_table_name), self.get_table(table_path), False)
        self.drop_table(table_path, False)

    def alter_table(self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool) -> None:
        """Put another definition under a name."""
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        self.get_table(table_path)
        self._database(table_path.get_database_name()).tables[table_path.get_object_name()] = new_table._definition

    def list_functions(self, database_name: str) -> list[str]:
        """All functions."""
        return sorted(self._database(database_name).functions)

    def function_exists(self, function_path: ObjectPath) -> bool:
        """Whether there is such a function."""
        found = self._catalog.databases.get(function_path.get_database_name())
        return found is not None and function_path.get_object_name().lower() in found.functions

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        """A function."""
        if not self.function_exists(function_path):
            msg = f"there is no function '{function_path}'"
            raise CatalogError(msg)
        found = self._database(function_path.get_database_name()).functions[function_path.get_object_name().lower()]
        return CatalogFunction(getattr(found, "name", str(found)))

    def create_function(self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool) -> None:
        """Make a function of a Python name."""
        if self.function_exists(function_path):
            if ignore_if_exists:
                return
            msg = f"there is a function '{function_path}' already"
            raise CatalogError(msg)
        loaded = self._session._loaded(function.get_class_name(), function_path.get_object_name(), None)
        self._database(function_path.get_database_name()).functions[function_path.get_object_name().lower()] = loaded

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool
    ) -> None:
        """Put another function under a name."""
        self.drop_function(function_path, ignore_if_not_exists)
        self.create_function(function_path, new_function, False)

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Forget a function."""
        if not self.function_exists(function_path):
            if ignore_if_not_exists:
                return
            self.get_function(function_path)
        del self._database(function_path.get_database_name()).functions[function_path.get_object_name().lower()]
