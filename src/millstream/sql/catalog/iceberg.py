"""The tables of an Iceberg catalog: 'type' = 'iceberg', through pyiceberg.

Promises: the options of Iceberg's catalog for Flink; other properties go to pyiceberg. Namespaces are databases. CREATE
TABLE and DROP TABLE create and drop Iceberg tables; the primary key is the table's identifier fields.
Does not know: rows; tables are read and written by the connector `iceberg`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager
from typing import Any

from millstream.connectors.lakehouse.iceberg_catalog import open_catalog, pyiceberg
from millstream.sql.catalog.catalog import Catalog, CatalogObject, ColumnDefinition, Database, TableDefinition
from millstream.sql.catalog.external import NoFunctions, check_options, refuse_change
from millstream.sql.catalog.iceberg_types import read_type, write_schema
from millstream.sql.errors import CatalogError

_CATALOG_TYPES = ("rest", "sql", "hive", "glue", "dynamodb", "bigquery")
_CONNECTOR_OPTIONS = ("catalog-type", "uri", "warehouse")  # of the table connector, without a prefix
_OF_JAVA = ("property-version", "cache-enabled", "clients", "io-impl", "hive-conf-dir", "hadoop-conf-dir")
_OF_CATALOG = ("type", "default-database", "catalog-type", *_OF_JAVA)

_log = logging.getLogger("millstream.iceberg")


def open_iceberg_catalog(name: str, options: Mapping[str, str]) -> Catalog:
    """Open an Iceberg catalog."""
    check_options(name, options, ["catalog-type"], options)
    if options["catalog-type"] not in _CATALOG_TYPES:
        message = f"catalog '{name}': there is no 'catalog-type' = '{options['catalog-type']}' in pyiceberg"
        raise CatalogError(message, hint=f"use one of {', '.join(_CATALOG_TYPES)}; Flink's jdbc is sql")
    for key in options:
        if key in _OF_JAVA:
            _log.warning("option '%s' of catalog '%s' has no effect: it belongs to Iceberg's Java client", key, name)
    default_database = options.get("default-database", "default")
    return _IcebergCatalog(name, default_database, options, _Databases(name, options, default_database))


class _IcebergCatalog(Catalog):
    def alter_database(self, name: str, options: Mapping[str, str], comment: str | None) -> None:
        refuse_change("iceberg", "alter a database", "change the properties of the namespace with a tool of Iceberg")


class _Client:
    """The catalog behind pyiceberg; a connection is opened for each request."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self.name, self.options = name, options

    def open(self, subject: str) -> AbstractContextManager[Any]:
        properties = {key: value for key, value in self.options.items() if key not in _OF_CATALOG}
        return open_catalog(self.name, {**properties, "type": self.options["catalog-type"]}, subject)

    def table_options(self, database: str, table: str) -> dict[str, str]:
        """Return the options with which the table connector finds a table."""
        other = {key: value for key, value in self.options.items() if key not in (*_CONNECTOR_OPTIONS, *_OF_CATALOG)}
        return {
            "connector": "iceberg",
            "catalog-name": self.name,
            **{key: self.options[key] for key in _CONNECTOR_OPTIONS if key in self.options},
            **{f"catalog.{key}": value for key, value in other.items()},
            "catalog-database": database,
            "catalog-table": table,
        }


class _Databases(MutableMapping[str, Database]):
    """Namespaces by name. The default database is created on first use."""

    def __init__(self, name: str, options: Mapping[str, str], default: str) -> None:
        self._client, self._default = _Client(name, options), default
        self._opened: dict[str, Database] = {}

    def __getitem__(self, name: str) -> Database:
        with self._client.open(name) as catalog:
            if name == self._default:
                catalog.create_namespace_if_not_exists(name)
            try:
                properties = dict(catalog.load_namespace_properties(name))
            except pyiceberg("exceptions").NoSuchNamespaceError:
                raise KeyError(name) from None
        if name not in self._opened:
            self._opened[name] = Database(tables=_Tables(self._client, name), functions=NoFunctions())
        database = self._opened[name]
        database.comment = properties.pop("comment", None)
        database.options = properties
        return database

    def __setitem__(self, name: str, database: Database) -> None:
        comment = {} if database.comment is None else {"comment": database.comment}
        with self._client.open(name) as catalog:
            catalog.create_namespace(name, {**database.options, **comment})

    def __delitem__(self, name: str) -> None:
        tables = self[name].tables
        for table in list(tables):
            del tables[table]
        with self._client.open(name) as catalog:
            catalog.drop_namespace(name)

    def __iter__(self) -> Iterator[str]:
        with self._client.open(self._client.name) as catalog:
            names = {".".join(namespace) for namespace in catalog.list_namespaces()}
        return iter(sorted({*names, self._default}))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Tables(MutableMapping[str, CatalogObject]):
    def __init__(self, client: _Client, database: str) -> None:
        self._client, self._database = client, database

    def __getitem__(self, name: str) -> CatalogObject:
        exceptions = pyiceberg("exceptions")
        with self._client.open(self._path(name)) as catalog:
            try:
                table = catalog.load_table(self._path(name))
            except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
                raise KeyError(name) from None
        schema = table.schema()
        partitions = [field for field in table.spec().fields if str(field.transform) == "identity"]
        return TableDefinition(
            tuple(
                ColumnDefinition(field.name, read_type(field.field_type, not field.required), comment=field.doc)
                for field in schema.fields
            ),
            self._client.table_options(self._database, name),
            primary_key=tuple(schema.find_column_name(identifier) for identifier in schema.identifier_field_ids),
            partitions=tuple(schema.find_column_name(field.source_id) for field in partitions),
            comment=table.properties.get("comment"),
        )

    def __setitem__(self, name: str, definition: CatalogObject) -> None:
        if not isinstance(definition, TableDefinition):
            refuse_change("iceberg", f"store the view '{name}'", "write CREATE TEMPORARY VIEW")
        if name in self:
            refuse_change("iceberg", f"alter table '{name}'", "change it with a tool of Iceberg, or create a new table")
        _check_storable(name, definition)
        schema = write_schema(name, definition)
        comment = {} if definition.comment is None else {"comment": definition.comment}
        properties = {key: value for key, value in definition.options.items() if key != "connector"}
        with (
            self._client.open(self._path(name)) as catalog,
            catalog.create_table_transaction(
                self._path(name), schema=schema, properties={**properties, **comment}
            ) as creation,
            creation.update_spec() as spec,
        ):
            for column in definition.partitions:
                spec.add_identity(column)

    def __delitem__(self, name: str) -> None:
        with self._client.open(self._path(name)) as catalog:
            catalog.drop_table(self._path(name))

    def __iter__(self) -> Iterator[str]:
        with self._client.open(self._database) as catalog:
            return iter(sorted(identifier[-1] for identifier in catalog.list_tables(self._database)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _path(self, name: str) -> str:
        return f"{self._database}.{name}"


def _check_storable(name: str, definition: TableDefinition) -> None:
    if definition.options.get("connector", "iceberg") != "iceberg":
        message = f"table '{name}' has the connector '{definition.options['connector']}'"
        raise CatalogError(message, hint="an Iceberg catalog has Iceberg tables: omit it, or create a temporary table")
    if definition.watermark is not None or not all(column.is_physical for column in definition.columns):
        message = f"table '{name}' has a watermark, a computed or a metadata column, which Iceberg cannot store"
        raise CatalogError(message, hint="create a temporary table LIKE the Iceberg table, and add them there")
