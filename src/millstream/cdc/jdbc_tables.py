"""Creates tables for the JDBC sink, or adds columns to them.

Promises: the column types can store every value of the SQL types; a type without a counterpart in a database is refused
by name.
Does not know: rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.cdc.errors import InvalidPipeline
from millstream.connectors.jdbc.dialects import find_dialect
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.mysql.driver import fetch
from millstream.connectors.jdbc.options import JdbcConnectionOptions
from millstream.connectors.jdbc.statements import quote_name
from millstream.sql.types import data_types as t

_Types = Mapping[type[t.DataType], str]

_POSTGRES: _Types = {
    t.BooleanType: "boolean", t.TinyIntType: "smallint", t.SmallIntType: "smallint", t.IntType: "integer",
    t.BigIntType: "bigint", t.FloatType: "real", t.DoubleType: "double precision", t.DateType: "date",
    t.TimeType: "time", t.TimestampType: "timestamp", t.LocalZonedTimestampType: "timestamptz", t.CharType: "text",
    t.VarCharType: "text", t.BinaryType: "bytea", t.VarBinaryType: "bytea",
}  # fmt: skip
_MYSQL: _Types = {
    t.BooleanType: "tinyint(1)", t.TinyIntType: "tinyint", t.SmallIntType: "smallint", t.IntType: "int",
    t.BigIntType: "bigint", t.FloatType: "float", t.DoubleType: "double", t.DateType: "date", t.TimeType: "time(6)",
    t.TimestampType: "datetime(6)", t.LocalZonedTimestampType: "timestamp(6)", t.CharType: "longtext",
    t.VarCharType: "longtext", t.BinaryType: "longblob", t.VarBinaryType: "longblob",
}  # fmt: skip
_SQLITE: _Types = {
    t.BooleanType: "BOOLEAN", t.TinyIntType: "TINYINT", t.SmallIntType: "SMALLINT", t.IntType: "INT",
    t.BigIntType: "BIGINT", t.FloatType: "FLOAT", t.DoubleType: "DOUBLE", t.DateType: "DATE", t.TimeType: "TIME",
    t.TimestampType: "TIMESTAMP", t.LocalZonedTimestampType: "TIMESTAMP", t.CharType: "TEXT", t.VarCharType: "TEXT",
    t.BinaryType: "BLOB", t.VarBinaryType: "BLOB",
}  # fmt: skip
_TYPES: Mapping[str, _Types] = {"postgresql": _POSTGRES, "mysql": _MYSQL, "sqlite": _SQLITE}
_COLUMNS = "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
_KEY_TEXT = "varchar(255)"  # MySQL cannot index texts of unlimited length


def prepare_jdbc_table(
    connection: JdbcConnectionOptions, path: tuple[str, str], columns: Mapping[str, t.DataType], key: Sequence[str]
) -> None:
    """Create a table, or add the columns that it lacks."""
    database = connection.database()
    types = {name: _column_type(database, name, data_type, name in key) for name, data_type in columns.items()}
    if database == "postgresql":
        session = Session(connection.conninfo())
        try:
            _prepare_postgres(session, path, types, key)
        finally:
            session.close()
        return
    dialect = find_dialect(connection)
    assert dialect is not None
    dialect_session = dialect.session()
    try:
        dialect_session.run(
            "cannot prepare the table",
            lambda opened: (
                _prepare_mysql(opened, path, types, key)
                if database == "mysql"
                else _prepare_sqlite(opened, path[1], types, key)
            ),
        )
    finally:
        dialect_session.close()


def _column_type(database: str, name: str, data_type: t.DataType, is_key: bool) -> str:
    if isinstance(data_type, t.DecimalType):
        word = "numeric" if database == "postgresql" else "DECIMAL"
        return f"{word}({data_type.precision}, {data_type.scale})"
    if database == "postgresql" and isinstance(data_type, t.ArrayType):
        return f"{_column_type(database, name, data_type.element, False)}[]"
    text = _TYPES[database].get(type(data_type))
    if text is None:
        message = f"the column {name} has the type {data_type}, for which {database} has no type"
        raise InvalidPipeline(message, hint="cast or leave it out in a projection: CAST(...) AS name")
    return _KEY_TEXT if is_key and text == "longtext" else text


def _create(table: str, types: Mapping[str, str], key: Sequence[str], quote: Any) -> str:
    lines = [f"{quote(name)} {text}{' NOT NULL' if name in key else ''}" for name, text in types.items()]
    lines += [f"PRIMARY KEY ({', '.join(quote(name) for name in key)})"] if key else []
    return f"CREATE TABLE {table} ({', '.join(lines)})"


def _additions(table: str, types: Mapping[str, str], existing: Sequence[str], quote: Any) -> list[str]:
    known = {name.lower() for name in existing}
    return [
        f"ALTER TABLE {table} ADD COLUMN {quote(name)} {text}"
        for name, text in types.items()
        if name.lower() not in known
    ]


def _prepare_postgres(session: Session, path: tuple[str, str], types: Mapping[str, str], key: Sequence[str]) -> None:
    action, schema = "cannot prepare the table", path[0] or "public"
    existing = [name for (name,) in session.query(action, _COLUMNS, (schema, path[1]))]
    table = f"{quote_name(schema)}.{quote_name(path[1])}"
    if existing:
        statements = _additions(table, types, existing, quote_name)
    else:
        statements = [_create(table, types, key, quote_name)]
        if not session.query(action, "SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)):
            statements.insert(0, f"CREATE SCHEMA IF NOT EXISTS {quote_name(schema)}")
    for statement in statements:
        session.query(action, statement)


def _prepare_mysql(opened: Any, path: tuple[str, str], types: Mapping[str, str], key: Sequence[str]) -> None:
    def quote(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    database = path[0] or fetch(opened, "SELECT DATABASE()")[0][0]
    existing = [name for (name,) in fetch(opened, _COLUMNS, (database, path[1]))]
    nullable = {name: text if name in key or text != "timestamp(6)" else f"{text} NULL" for name, text in types.items()}
    table = f"{quote(database)}.{quote(path[1])}"
    if not existing:
        fetch(opened, f"CREATE DATABASE IF NOT EXISTS {quote(database)}")
    for statement in (
        _additions(table, nullable, existing, quote) if existing else [_create(table, nullable, key, quote)]
    ):
        fetch(opened, statement)


def _prepare_sqlite(opened: Any, name: str, types: Mapping[str, str], key: Sequence[str]) -> None:
    table = quote_name(name)
    existing = [row[1] for row in opened.execute(f"PRAGMA table_info({table})")]
    statements = (
        _additions(table, types, existing, quote_name) if existing else [_create(table, types, key, quote_name)]
    )
    for statement in statements:
        opened.execute(statement)
