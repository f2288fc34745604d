"""Captured MySQL tables and their description in the database.

Promises: a description is a frozen value with all that a reader needs; a table or a server whose changes cannot be
captured is refused.
Does not know: positions, changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from millstream.connectors.jdbc.cdc.captured import CannotCapture
from millstream.connectors.jdbc.mysql.driver import MysqlSession
from millstream.connectors.jdbc.mysql.types import MysqlColumn, MysqlType, elements_of, mysql_type, quote
from millstream.types.factory import RowTypeInfo

_SYSTEM = ("mysql", "sys", "performance_schema", "information_schema")
_COLUMNS = """
SELECT column_name, data_type, column_type, character_set_name, collation_name, is_nullable,
       coalesce(numeric_precision, 0), coalesce(numeric_scale, 0)
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_KEY = """
SELECT column_name FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND index_name = 'PRIMARY' ORDER BY seq_in_index
"""
_SERVER = "SELECT @@version, @@log_bin, @@global.binlog_format, @@global.binlog_row_image"


@dataclass(frozen=True)
class ReadOptions:
    """How values are converted. `zone`: the time zone of TIMESTAMP columns; `binary`: the form of binary values;
    `numbers`: the TINYINT(1) columns that are numbers; `key_columns`: the column by which each table without a primary
    key is read."""

    zone: str = "UTC"
    binary: str = "bytes"
    numbers: frozenset[str] = frozenset()
    key_columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class MysqlTable:
    """A captured table: its columns in the order of the database, and the key by which it is read in chunks.

    `unique`: the key identifies a row; otherwise the table has no primary key."""

    schema: str
    name: str
    columns: tuple[tuple[str, MysqlColumn], ...]
    key: tuple[str, ...]
    unique: bool = True

    @property
    def id(self) -> str:
        """The database and the name."""
        return f"{self.schema}.{self.name}"

    @property
    def quoted_name(self) -> str:
        """Return the quoted name of the table."""
        return f"{quote(self.schema)}.{quote(self.name)}"

    def row_type(self) -> RowTypeInfo:
        """Return the type of its rows."""
        return RowTypeInfo(
            [mysql_type(column).type_info for _, column in self.columns], [name for name, _ in self.columns]
        )

    def read_texts(self, texts: Sequence[str | None]) -> list[Any]:
        """Return the values of a row of the snapshot."""
        types = (mysql_type(column) for _, column in self.columns)
        return [column_type.value(text) for column_type, text in zip(types, texts, strict=True)]

    def source_fields(self, commit: int) -> dict[str, Any]:
        """Return the fields of Debezium's `source` that locate a change."""
        return {"connector": "mysql", "db": self.schema, "table": self.name, "pos": commit}

    @cached_property
    def key_columns(self) -> tuple[KeyColumn, ...]:
        """The columns of the key."""
        return tuple(KeyColumn.of(dict(self.columns)[name], self._index(name)) for name in self.key)

    def _index(self, name: str) -> int:
        return [column for column, _ in self.columns].index(name)


@dataclass(frozen=True)
class KeyColumn:
    """A column of a key, and how it is compared: by an SQL expression, and by Python values where their order is the
    same."""

    column: MysqlColumn
    index: int
    type: MysqlType
    expression: str

    @classmethod
    def of(cls, column: MysqlColumn, index: int) -> KeyColumn:
        """Return the key column of a column."""
        if column.data_type == "enum":  # ordered by number, not by text
            words = ["", *elements_of(column.column_type)]
            enum_type = mysql_type(column)
            numbers = MysqlType(enum_type.type_info, words.index, int, column.column_type)
            return cls(column, index, numbers, f"({quote(column.name)} + 0)")
        plain = replace(column, boolean=False, binary="bytes", zone="UTC")
        return cls(column, index, mysql_type(plain), quote(column.name))

    @property
    def is_text(self) -> bool:
        """Whether values are texts, whose order only the database knows."""
        return self.column.collation is not None and self.column.data_type != "enum"

    def parameter(self, text: str | None) -> Any:
        """Return the parameter of a statement for the text of a value."""
        value = self.type.value(text)
        return value if isinstance(value, int | bytes) or self.column.data_type == "decimal" else text

    def comparable(self, placeholder: str) -> str:
        """Return an expression that compares a parameter as the column is compared."""
        if not self.is_text:
            return placeholder
        return f"CONVERT({placeholder} USING {self.column.charset}) COLLATE {self.column.collation}"


def after(expressions: Sequence[str], bound: Sequence[str]) -> str:
    """Return the condition that a key is after a bound. It compares columns, because MySQL uses no index to compare
    rows."""
    alternatives = [
        " AND ".join(
            [*(f"{e} = {b}" for e, b in zip(expressions[:n], bound, strict=False)), f"{expression} > {bound[n]}"]
        )
        for n, expression in enumerate(expressions)
    ]
    return "(" + " OR ".join(f"({condition})" for condition in alternatives) + ")"


def bound_parameters(values: Sequence[Any]) -> list[Any]:
    """Return the parameters of `after` for a bound: those of each alternative."""
    return [value for number in range(len(values)) for value in values[: number + 1]]


Query = Callable[[str, str, Sequence[Any]], list[Any]]


def describe_columns(query: Query, schema: str, name: str, options: ReadOptions) -> list[MysqlColumn]:
    """Read the description of the columns of a table; an empty list if there is no such table."""
    columns: list[MysqlColumn] = []
    for column, data_type, column_type, charset, collation, nullable, precision, scale in query(
        "cannot read the description of the table", _COLUMNS, (schema, name)
    ):
        described = MysqlColumn(
            column,
            data_type.lower(),
            column_type.lower() if data_type.lower() not in ("enum", "set") else column_type,
            "binary" if collation == "binary" else charset,
            collation,
            nullable == "YES",
            int(precision),
            int(scale),
            options.zone,
            options.binary,
            column not in options.numbers,
        )
        mysql_type(described)  # raises for an unknown type
        columns.append(described)
    return columns


def describe_table(session: MysqlSession, schema: str, name: str, options: ReadOptions) -> MysqlTable:
    """Read the description of a table from the database."""
    columns = describe_columns(session.query, schema, name, options)
    if not columns:
        message = f"there is no table {schema}.{name}"
        raise CannotCapture(message, hint="write database.table, with the letter case of the server")
    key = tuple(row[0] for row in session.query("cannot read the key of the table", _KEY, (schema, name)))
    table = MysqlTable(schema, name, tuple((column.name, column) for column in columns), key)
    return _with_key_column(table, options)


def _with_key_column(table: MysqlTable, options: ReadOptions) -> MysqlTable:
    chosen = dict(options.key_columns).get(table.id, dict(options.key_columns).get(""))
    if chosen is not None and chosen not in dict(table.columns):
        message = f"the table {table.id} has no column {chosen}, which is set as its chunk key"
        raise CannotCapture(message)
    if table.key:
        return table  # rows are read by primary key, so that each row is read once
    if chosen is None:
        message = f"the table {table.id} has no primary key"
        raise CannotCapture(
            message, hint="set scan.incremental.snapshot.chunk.key-column to a column without nulls, best with an index"
        )
    if dict(table.columns)[chosen].nullable:
        message = f"the chunk key {chosen} of {table.id} may be null"
        raise CannotCapture(message, hint=f"choose another column, or declare {chosen} NOT NULL")
    return replace(table, key=(chosen,), unique=False)


def find_tables(session: MysqlSession, databases: Sequence[str], patterns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the tables whose `database.table` is one of the patterns or matches one, sorted."""
    rows = session.query(
        "cannot list the tables",
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') "
        f"AND table_schema NOT IN ({', '.join(['%s'] * len(_SYSTEM))}) ORDER BY 1, 2",
        _SYSTEM,
    )
    table_names: set[tuple[str, str]] = set()
    for pattern in patterns:
        exact = [path for path in rows if ".".join(path) == pattern]
        table_names |= set(exact or [path for path in rows if compile_pattern(pattern).fullmatch(".".join(path))])
    allowed = [compile_pattern(database) for database in databases]
    return sorted(path for path in table_names if not allowed or any(pattern.fullmatch(path[0]) for pattern in allowed))


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression of names; Debezium ignores the case of names."""
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as problem:
        message = f"{pattern!r} is neither the name of a table nor a regular expression: {problem}"
        raise CannotCapture(message) from None


def check_server(session: MysqlSession) -> Mapping[str, Any]:
    """Check that the server writes a binary log of whole rows; return its version."""
    version, log, log_format, image = session.query("the source cannot read from the database", _SERVER)[0]
    for setting, value, needed in (
        ("log_bin", log, ("1", "ON")),
        ("binlog_format", log_format, ("ROW",)),
        ("binlog_row_image", image, ("FULL",)),
    ):
        if value.upper() not in needed:
            message = f"changes can only be captured with {setting} = {needed[-1]}, the server has {value}"
            raise CannotCapture(
                message, hint=f"set {setting} in the server's configuration; sessions must not change it"
            )
    return {"version": version, "mariadb": "mariadb" in version.lower()}
