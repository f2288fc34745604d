"""Definitions of tables as text of statements, for SHOW CREATE.

Promises: the text can be executed again once its hidden secrets are replaced; all names and values are quoted.
Does not know: catalogs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from millstream.config.secrets import mask_secrets, mask_statement
from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition, TableDistribution
from millstream.sql.catalog.materialization import Materialization
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.parse import list_expression_tokens

_SHORT_NAMES = {"STRING": "VARCHAR(2147483647)", "BYTES": "VARBINARY(2147483647)"}
_SHORT_OR_QUOTED = re.compile(r"`[^`]*`|'[^']*'|\bSTRING\b|\bBYTES\b|\bTIMESTAMP_LTZ\((\d)\)")


def _expand_type_names(type_text: str) -> str:
    """Replace short names of types by the names that Flink writes; names of fields and classes are not changed."""

    def expand(match: re.Match[str]) -> str:
        if match[1] is not None:
            return f"TIMESTAMP({match[1]}) WITH LOCAL TIME ZONE"
        return _SHORT_NAMES.get(match[0], match[0])

    return _SHORT_OR_QUOTED.sub(expand, type_text)


def format_create_table(full_name: tuple[str, ...], table: TableDefinition, *, temporary: bool) -> str:
    """Return the CREATE TABLE statement of a table."""
    lines = [
        format_column(replace(column, type=column.type.not_null()) if column.name in table.primary_key else column)
        for column in table.columns
    ]
    if table.watermark is not None:
        lines.append(f"WATERMARK FOR {quote_name(table.watermark[0])} AS {table.watermark[1]}")
    if table.primary_key:
        keys = ", ".join(map(quote_name, table.primary_key))
        constraint = table.constraint or f"PK_{'_'.join(table.primary_key)}"
        lines.append(f"CONSTRAINT {quote_name(constraint)} PRIMARY KEY ({keys}) NOT ENFORCED")
    body = ",\n  ".join(lines)
    name = ".".join(map(quote_name, full_name))
    statement = f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {name} (\n  {body}\n)"
    if table.comment:
        statement += f"\nCOMMENT {quote_string(table.comment)}"
    if table.distribution is not None:
        statement += f"\nDISTRIBUTED {_format_distribution(table.distribution)}"
    if table.partitions:
        statement += f"\nPARTITIONED BY ({', '.join(map(quote_name, table.partitions))})"
    if table.options:
        statement += f"\nWITH (\n  {format_options(table.options)}\n)"
    return f"{statement}\n"


def format_materialized_table(
    full_name: tuple[str, ...], table: TableDefinition, materialization: Materialization
) -> str:
    """Return the CREATE MATERIALIZED TABLE statement of a table."""
    patterns = {
        f"partition.fields.{column}.date-formatter": pattern
        for column, pattern in materialization.date_patterns.items()
    }
    table = replace(table, options={**table.options, **patterns})
    statement = format_create_table(full_name, table, temporary=False).replace("TABLE", "MATERIALIZED TABLE", 1)
    clauses = f"FRESHNESS = {materialization.freshness}\nREFRESH_MODE = {materialization.mode}"
    return f"{statement}{clauses}\nAS {mask_statement(materialization.query)[0]}\n"


def format_column(column: ColumnDefinition) -> str:
    """Return the definition of a column."""
    comment = f" COMMENT {quote_string(column.comment)}" if column.comment else ""
    if column.expr is not None:
        return f"{quote_name(column.name)} AS {column.expr}{comment}"
    extra = ""
    if column.metadata_key is not None:
        extra = " METADATA" + (
            f" FROM {quote_string(column.metadata_key)}" if column.metadata_key != column.name else ""
        )
        extra += " VIRTUAL" if column.virtual else ""
    return f"{quote_name(column.name)} {_expand_type_names(str(column.type))}{extra}{comment}"


def _format_distribution(distribution: TableDistribution) -> str:
    by = f"BY {distribution.kind or ''}({', '.join(map(quote_name, distribution.columns))})"
    buckets = "" if distribution.buckets is None else f"INTO {distribution.buckets} BUCKETS"
    return " ".join(part for part in (by if distribution.columns else "", buckets) if part)


def quote_name(name: str) -> str:
    """Return a name in backticks."""
    return f"`{name.replace('`', '``')}`"


def quote_string(text: str) -> str:
    """Return a string literal."""
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


def format_options(options: Mapping[str, str]) -> str:
    """Return options as the content of WITH (...), sorted by key, with their secrets hidden."""
    shown = sorted(mask_secrets(options).items())
    return ",\n  ".join(f"{quote_string(key)} = {quote_string(value)}" for key, value in shown)


def format_expression(node: s.Expr, text: str, names: Collection[str]) -> str:
    """Return the text of an expression of a statement, with its columns in backticks."""
    start = _find_start(node)
    parts: list[str] = []
    offset = start
    for token in list_expression_tokens(text, start):
        parts.append(text[offset : token.start])
        is_call = token.type == "word" and text[token.end :].lstrip().startswith("(")
        is_column = token.type == "word" and token.text in names and not is_call
        parts.append(f"`{token.text}`" if is_column else text[token.start : token.end])
        offset = token.end
    return "".join(parts)


def _find_start(node: Any) -> int:
    """Return the offset of the first token of an expression; an operator node has the offset of its symbol."""
    offsets: list[int] = [node.at]
    for value in vars(node).values():
        parts = value if isinstance(value, tuple) else (value,)
        offsets.extend(_find_start(part) for part in parts if isinstance(part, s.Expr))
    return min(offsets)
