"""SQL of the JDBC connector: placeholders, quoted names, upserts.

Promises: a question mark inside quotes or comments is not a placeholder; names given as data are always quoted.
Does not know: connections, values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from millstream.connectors.jdbc.options import InvalidJdbcOption

_TOKEN = re.compile(
    r"""
    '(?:[^']|'')*'                    # text
  | "(?:[^"]|"")*"                    # a quoted name
  | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$   # text between dollars
  | --[^\n]*                          # a comment to the end of the line
  | /\*.*?\*/                         # a comment
  | \?                                # a placeholder
  | %                                 # a placeholder of psycopg
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)'
_APPEND = re.compile(
    rf"\s*INSERT\s+INTO\s+(?P<table>{_NAME}(?:\s*\.\s*{_NAME})?)\s*"
    rf"\(\s*(?P<columns>{_NAME}(?:\s*,\s*{_NAME})*)\s*\)\s*VALUES\s*\(\s*\?(?:\s*,\s*\?)*\s*\)\s*;?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Statement:
    """A statement for many rows. `copy` is an equivalent COPY, for a plain INSERT."""

    sql: str
    placeholders: int
    copy: str | None = None


def statement(sql: str) -> Statement:
    """Parse a statement with JDBC's placeholders into one for psycopg."""
    count = 0

    def replace_token(token: re.Match[str]) -> str:
        nonlocal count
        text = token.group()
        if text == "?":
            count += 1
            return "%s"
        return text.replace("%", "%%")

    psycopg_sql = _TOKEN.sub(replace_token, sql)
    plain_insert = _APPEND.fullmatch(sql)
    copy = None
    if plain_insert is not None and len(_names(plain_insert["columns"])) == count:
        copy = f"COPY {plain_insert['table']} ({plain_insert['columns']}) FROM STDIN"
    return Statement(psycopg_sql, count, copy)


def _names(columns: str) -> list[str]:
    return re.findall(_NAME, columns)


def quote_name(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    if not name or "\0" in name:
        message = f"{name!r} is not the name of a column or table"
        raise InvalidJdbcOption(message)
    return '"' + name.replace('"', '""') + '"'


def quote_names(names: Sequence[str], prefix: str = "") -> str:
    """Return quoted names, separated by commas."""
    return ", ".join(prefix + quote_name(name) for name in names)


def table_name(table: str) -> tuple[str | None, str]:
    """Return schema (or None) and name of a table written as `table` or `schema.table`, with quotes or without."""
    parts = re.findall(_NAME, table)
    if len(parts) not in (1, 2) or re.sub(r"\s", "", table) != ".".join(re.sub(r"\s", "", part) for part in parts):
        message = f"{table!r} is not the name of a table"
        raise InvalidJdbcOption(message, hint="write table or schema.table; quote a name with other characters")
    plain = [part[1:-1].replace('""', '"') if part.startswith('"') else part.lower() for part in parts]
    return (plain[0] if len(plain) == 2 else None), plain[-1]


def quote_table(table: str) -> str:
    """Return the quoted name of a table."""
    schema, name = table_name(table)
    return f"{quote_name(schema)}.{quote_name(name)}" if schema else quote_name(name)


def merge_statements(
    target: str, staged: str, columns: Sequence[str], keys: Sequence[str], condition: str
) -> tuple[str, ...]:
    """Return the statements that merge staged rows into the target; both names are quoted.

    The staged relation has the columns and `ms_epoch`, `ms_subtask`, `ms_seq` (the order) and `ms_deleted`. With keys,
    the last row of each key replaces or deletes the row of the target; without, all rows are inserted in order."""
    column_list = quote_names(columns)
    if not keys:
        order = "ms_epoch, ms_subtask, ms_seq"
        return (
            f"INSERT INTO {target} ({column_list}) SELECT {column_list} FROM {staged} WHERE {condition} "
            f"ORDER BY {order}",
        )
    key_list = quote_names(keys)
    last_rows = (
        f"SELECT DISTINCT ON ({key_list}) {column_list}, ms_deleted FROM {staged} WHERE {condition} "
        f"ORDER BY {key_list}, ms_epoch DESC, ms_seq DESC"
    )
    keys_equal = " AND ".join(f"kept.{quote_name(key)} = last.{quote_name(key)}" for key in keys)
    other_columns = [column for column in columns if column not in keys]
    update = ", ".join(f"{quote_name(column)} = EXCLUDED.{quote_name(column)}" for column in other_columns)
    action = f"DO UPDATE SET {update}" if other_columns else "DO NOTHING"
    return (
        f"DELETE FROM {target} AS kept USING ({last_rows}) AS last WHERE last.ms_deleted AND {keys_equal}",
        f"INSERT INTO {target} ({column_list}) SELECT {column_list} FROM ({last_rows}) AS last WHERE NOT ms_deleted "
        f"ORDER BY {key_list} ON CONFLICT ({key_list}) {action}",
    )
