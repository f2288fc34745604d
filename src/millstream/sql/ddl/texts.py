"""Tables and expressions as the text of statements.

Promises: what is shown can be executed again, once its hidden secrets are put back; names and values of any content
are quoted.
Does not know: catalogs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from millstream.config.secrets import shown_all
from millstream.sql.catalog.catalog import TableDefinition, TableDistribution
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.parse import expression_tokens

_SHORT = {"STRING": "VARCHAR(2147483647)", "BYTES": "VARBINARY(2147483647)"}
_SHORT_OR_QUOTED = re.compile(r"`[^`]*`|'[^']*'|\bSTRING\b|\bBYTES\b|\bTIMESTAMP_LTZ\((\d)\)")


def _spelled_out(kind: str) -> str:
    """A type without the short names of types, as Flink writes it; names of fields and classes stay."""

    def long(found: re.Match[str]) -> str:
        if found[1] is not None:
            return f"TIMESTAMP({found[1]}) WITH LOCAL TIME ZONE"
        return _SHORT.get(found[0], found[0])

    return _SHORT_OR_QUOTED.sub(long, kind)


def create_text(full: tuple[str, ...], table: TableDefinition, *, temporary: bool) -> str:
    """A table as CREATE TABLE would make it."""
    lines: list[str] = []
    for each in table.columns:
        comment = f" COMMENT {string(each.comment)}" if each.comment else ""
        if each.expr is not None:
            lines.append(f"{quoted(each.name)} AS {each.expr}{comment}")
            continue
        extra = ""
        if each.metadata_key is not None:
            extra = " METADATA" + (f" FROM {string(each.metadata_key)}" if each.metadata_key != each.name else "")
            extra += " VIRTUAL" if each.virtual else ""
        kind = each.type.not_null() if each.name in table.primary_key else each.type
        lines.append(f"{quoted(each.name)} {_spelled_out(str(kind))}{extra}{comment}")
    if table.watermark is not None:
        lines.append(f"WATERMARK FOR {quoted(table.watermark[0])} AS {table.watermark[1]}")
    if table.primary_key:
        keys = ", ".join(map(quoted, table.primary_key))
        constraint = table.constraint or f"PK_{'_'.join(table.primary_key)}"
        lines.append(f"CONSTRAINT {quoted(constraint)} PRIMARY KEY ({keys}) NOT ENFORCED")
    body = ",\n  ".join(lines)
    name = ".".join(map(quoted, full))
    made = f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {name} (\n  {body}\n)"
    if table.comment:
        made += f" COMMENT {string(table.comment)}"
    if table.distribution is not None:
        made += f"\nDISTRIBUTED {_distribution(table.distribution)}"
    if table.partitions:
        made += f"\nPARTITIONED BY ({', '.join(map(quoted, table.partitions))})"
    if table.options:
        made += f"\nWITH (\n  {pairs(table.options)}\n)"
    return f"{made}\n"


def _distribution(given: TableDistribution) -> str:
    by = f"BY {given.kind or ''}({', '.join(map(quoted, given.columns))})"
    buckets = "" if given.buckets is None else f"INTO {given.buckets} BUCKETS"
    return " ".join(part for part in (by if given.columns else "", buckets) if part)


def quoted(name: str) -> str:
    """A name in backticks."""
    return f"`{name.replace('`', '``')}`"


def string(text: str) -> str:
    """A text in quotes."""
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


def pairs(options: Mapping[str, str]) -> str:
    """Options as WITH lists them, their secrets hidden."""
    return ",\n  ".join(f"{string(key)} = {string(value)}" for key, value in shown_all(options).items())


def expression_text(node: s.Expr, text: str, names: Collection[str]) -> str:
    """The text of an expression in a statement, its columns in backticks."""
    start = _start(node)
    made: list[str] = []
    at = start
    for token in expression_tokens(text, start):
        made.append(text[at : token.start])
        calls = token.kind == "word" and text[token.end :].lstrip().startswith("(")
        named = token.kind == "word" and token.text in names and not calls
        made.append(f"`{token.text}`" if named else text[token.start : token.end])
        at = token.end
    return "".join(made)


def _start(node: Any) -> int:
    """Where an expression begins: an operator's place is behind its first operand."""
    places: list[int] = [node.at]
    for value in vars(node).values():
        inside = value if isinstance(value, tuple) else (value,)
        places.extend(_start(each) for each in inside if isinstance(each, s.Expr))
    return min(places)
