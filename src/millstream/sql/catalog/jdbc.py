"""The tables of a PostgreSQL server as a catalog: 'type' = 'jdbc'.

Promises: Flink's options. Databases are those of the server; a table of a schema is `schema.table`, and a table of the
schema `public` can be named without it. Types are those of Flink's PostgreSQL catalog; types that it refuses, such as
UUID and JSON, are STRING. The catalog is read only, as in Flink.
Does not know: rows; tables are read and written by the connector `jdbc`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, NoReturn

from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.options import JdbcConnectionOptions
from millstream.connectors.jdbc.statements import quote_name
from millstream.sql.catalog.catalog import Catalog, CatalogObject, ColumnDefinition, Database, TableDefinition
from millstream.sql.catalog.external import NoFunctions, check_options, refuse_change
from millstream.sql.errors import CatalogError
from millstream.sql.types import data_types as t

_DATABASES = "SELECT datname FROM pg_database WHERE NOT datistemplate AND datallowconn ORDER BY datname"
_TABLES = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
ORDER BY 1
"""
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, col_description(a.attrelid, a.attnum)
FROM pg_attribute a WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEY = """
SELECT a.attname, o.conname FROM pg_constraint o CROSS JOIN unnest(o.conkey) WITH ORDINALITY AS k (number, key_position)
JOIN pg_attribute a ON a.attrelid = o.conrelid AND a.attnum = k.number
WHERE o.conrelid = to_regclass(%s) AND o.contype = 'p' ORDER BY k.key_position
"""
_TYPE = re.compile(r"(?P<name>[a-z\" ]+?)(?:\((?P<sizes>[\d,]+)\))?(?P<zone> with(?:out)? time zone)?(?P<array>\[\])?")
_TYPES: dict[str, t.DataType] = {
    "boolean": t.BOOLEAN, "smallint": t.SMALLINT, "integer": t.INT, "bigint": t.BIGINT, "real": t.FLOAT,
    "double precision": t.DOUBLE, "bytea": t.BYTES, "date": t.DATE,
}  # fmt: skip


def open_jdbc_catalog(name: str, options: Mapping[str, str]) -> Catalog:
    """Open the catalog of a server."""
    check_options(name, options, ["base-url", "default-database"], ["username", "password"])
    return _JdbcCatalog(name, options["default-database"], options, _Databases(options))


def _refuse_change(action: str) -> NoReturn:
    refuse_change("jdbc", action, "it is read only: make the change in the database itself")


class _JdbcCatalog(Catalog):
    def alter_database(self, name: str, options: Mapping[str, str], comment: str | None) -> None:
        _refuse_change("alter a database")


class _Databases(MutableMapping[str, Database]):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._default = self._connection(options["default-database"])
        self._default.conninfo()  # refuses a URL of another database system
        self._opened: dict[str, Database] = {}

    def _connection(self, database: str) -> JdbcConnectionOptions:
        url = f"{self._options['base-url'].rstrip('/')}/{database}"
        return JdbcConnectionOptions(url, None, self._options.get("username"), self._options.get("password"))

    def __getitem__(self, name: str) -> Database:
        if name not in self._opened:
            if name not in self._names():
                raise KeyError(name)
            self._opened[name] = Database(tables=_Tables(self._connection(name)), functions=NoFunctions())
        return self._opened[name]

    def __setitem__(self, name: str, database: Database) -> None:
        _refuse_change("create a database")

    def __delitem__(self, name: str) -> None:
        _refuse_change("drop a database")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def _names(self) -> list[str]:
        return [str(name) for (name,) in _query(self._default, "cannot list the databases", _DATABASES)]


class _Tables(MutableMapping[str, CatalogObject]):
    """The tables of one database, read from the server at each access."""

    def __init__(self, connection: JdbcConnectionOptions) -> None:
        self._connection = connection

    def __getitem__(self, name: str) -> CatalogObject:
        schema, dot, table = name.partition(".")
        path = (f"{quote_name(schema if dot else 'public')}.{quote_name(table if dot else name)}",)
        columns = _query(self._connection, f"cannot read the columns of {name}", _COLUMNS, path)
        if not columns:
            raise KeyError(name)
        key = _query(self._connection, f"cannot read the primary key of {name}", _KEY, path)
        options = {"connector": "jdbc", "url": self._connection.url, "table-name": path[0]}
        login = {"username": self._connection.user_name, "password": self._connection.password}
        return TableDefinition(
            tuple(
                ColumnDefinition(column, _read_type(name, column, type_text, not_null), comment=comment)
                for column, type_text, not_null, comment in columns
            ),
            {**options, **{name: value for name, value in login.items() if value is not None}},
            primary_key=tuple(column for column, _ in key),
            constraint=key[0][1] if key else None,
        )

    def __setitem__(self, name: str, definition: CatalogObject) -> None:
        _refuse_change(f"create or alter table '{name}'")

    def __delitem__(self, name: str) -> None:
        _refuse_change(f"drop table '{name}'")

    def __iter__(self) -> Iterator[str]:
        return iter([name for (name,) in _query(self._connection, "cannot list the tables", _TABLES)])

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _query(connection: JdbcConnectionOptions, action: str, statement: str, parameters: Any = None) -> list[Any]:
    session = Session(connection.conninfo())
    try:
        return session.query(action, statement, parameters)
    finally:
        session.close()


def _read_type(table: str, column: str, text: str, not_null: bool) -> t.DataType:
    """Return the SQL type of PostgreSQL's text of a type, such as `numeric(10,2)[]`."""
    match = _TYPE.fullmatch(text)
    data_type: t.DataType = t.STRING
    if match is not None:
        sizes = [int(size) for size in (match["sizes"] or "").split(",") if size]
        data_type = _scalar_type(table, column, match["name"].strip(), sizes, match["zone"] or "")
        if match["array"]:
            data_type = t.ArrayType(data_type)
    return data_type.not_null() if not_null else data_type


def _scalar_type(table: str, column: str, name: str, sizes: list[int], zone: str) -> t.DataType:
    match name:
        case "numeric":
            precision, scale = sizes or (38, 18)
            if precision > 38 or scale < 0:
                message = f"column '{column}' of '{table}' is numeric({precision},{scale}), but DECIMAL has 38 digits"
                raise CatalogError(message, hint="make a view in the database that casts the column")
            return t.create_decimal(precision, scale)
        case "character":
            return t.CharType(sizes[0]) if sizes else t.CharType(1)
        case "character varying":
            return t.VarCharType(sizes[0]) if sizes else t.STRING
        case "time":
            return t.TimeType(precision=sizes[0] if sizes else 6)
        case "timestamp":
            timestamp = t.LocalZonedTimestampType if zone == " with time zone" else t.TimestampType
            return timestamp(precision=sizes[0] if sizes else 6)
    return _TYPES.get(name, t.STRING)
