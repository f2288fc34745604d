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
  | %                                 # what psycopg would take for one
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
    """A statement for many rows. `copied` is the COPY that does the same, for a plain INSERT."""

    sql: str
    placeholders: int
    copied: str | None = None


def statement(sql: str) -> Statement:
    """Parse a statement with JDBC's placeholders into one for psycopg."""
    count = 0

    def replaced(token: re.Match[str]) -> str:
        nonlocal count
        text = token.group()
        if text == "?":
            count += 1
            return "%s"
        return text.replace("%", "%%")

    translated = _TOKEN.sub(replaced, sql)
    plain = _APPEND.fullmatch(sql)
    copied = None
    if plain is not None and len(_names(plain["columns"])) == count:
        copied = f"COPY {plain['table']} ({plain['columns']}) FROM STDIN"
    return Statement(translated, count, copied)


def _names(columns: str) -> list[str]:
    return re.findall(_NAME, columns)


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    if not name or "\0" in name:
        message = f"{name!r} is not the name of a column or table"
        raise InvalidJdbcOption(message)
    return '"' + name.replace('"', '""') + '"'


def quoted_list(names: Sequence[str], prefix: str = "") -> str:
    """Return quoted names, separated by commas."""
    return ", ".join(prefix + quoted(name) for name in names)


def table_name(table: str) -> tuple[str | None, str]:
    """Schema, if any, and name of a table written as `table` or `schema.table`, with quotes or without."""
    parts = re.findall(_NAME, table)
    if len(parts) not in (1, 2) or re.sub(r"\s", "", table) != ".".join(re.sub(r"\s", "", part) for part in parts):
        message = f"{table!r} is not the name of a table"
        raise InvalidJdbcOption(message, hint="write table or schema.table; quote a name with other characters")
    plain = [part[1:-1].replace('""', '"') if part.startswith('"') else part.lower() for part in parts]
    return (plain[0] if len(plain) == 2 else None), plain[-1]


def quoted_table(table: str) -> str:
    """Return the quoted name of a table."""
    schema, name = table_name(table)
    return f"{quoted(schema)}.{quoted(name)}" if schema else quoted(name)


def merge(target: str, staged: str, columns: Sequence[str], keys: Sequence[str], where: str) -> tuple[str, ...]:
    """The statements that bring staged rows into the target, both quoted.

    The staged relation has the columns and `ms_epoch`, `ms_subtask`, `ms_seq` (the order) and `ms_deleted`. With keys
    the last row of each key wins, and deletes it if it says so; without, all rows are added in order."""
    listed = quoted_list(columns)
    if not keys:
        order = "ms_epoch, ms_subtask, ms_seq"
        return (f"INSERT INTO {target} ({listed}) SELECT {listed} FROM {staged} WHERE {where} ORDER BY {order}",)
    by = quoted_list(keys)
    last = (
        f"SELECT DISTINCT ON ({by}) {listed}, ms_deleted FROM {staged} WHERE {where} "
        f"ORDER BY {by}, ms_epoch DESC, ms_seq DESC"
    )
    same = " AND ".join(f"kept.{quoted(key)} = last.{quoted(key)}" for key in keys)
    rest = [column for column in columns if column not in keys]
    update = ", ".join(f"{quoted(column)} = EXCLUDED.{quoted(column)}" for column in rest)
    action = f"DO UPDATE SET {update}" if rest else "DO NOTHING"
    return (
        f"DELETE FROM {target} AS kept USING ({last}) AS last WHERE last.ms_deleted AND {same}",
        f"INSERT INTO {target} ({listed}) SELECT {listed} FROM ({last}) AS last WHERE NOT ms_deleted "
        f"ORDER BY {by} ON CONFLICT ({by}) {action}",
    )
