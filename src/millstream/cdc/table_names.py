r"""Names of tables: the patterns that select tables, and the routes to other names.

Promises: the patterns of Flink CDC: a dot separates database and table, `\.` is the dot of a regular expression,
commas separate patterns.
Does not know: databases."""

from __future__ import annotations

import re
from collections.abc import Sequence

from millstream.cdc.definition import Route
from millstream.cdc.errors import InvalidPipeline

_ESCAPED_DOT = "\\."


def split_patterns(text: str) -> list[str]:
    """Return the patterns of a list, which are separated by commas outside of brackets and braces."""
    patterns, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            patterns.append("")
        else:
            patterns[-1] += character
    return [pattern.strip() for pattern in patterns if pattern.strip()]


def regular_expression(pattern: str) -> str:
    """Return the regular expression of full names that a pattern stands for."""
    parts = [part.replace("\0", ".") for part in pattern.replace(_ESCAPED_DOT, "\0").split(".")]
    if len(parts) < 2:
        message = f"the table pattern {pattern!r} has no dot between database and table"
        raise InvalidPipeline(message, hint="write database.table; inside of a regular expression, a dot is '\\.'")
    expression = _ESCAPED_DOT.join(f"(?:{part})" for part in parts)
    try:
        re.compile(expression)
    except re.error as problem:
        message = f"the table pattern {pattern!r} is no regular expression: {problem}"
        raise InvalidPipeline(message) from problem
    return expression


def matches(patterns: str, table: str) -> bool:
    """Return whether the full name of a table matches one of the patterns."""
    return any(re.fullmatch(regular_expression(pattern), table) for pattern in split_patterns(patterns))


def route(routes: Sequence[Route], table: str) -> list[str]:
    """Return the names of the sink tables of a source table: its own name if no route matches."""
    targets = [
        entry.sink_table.replace(entry.symbol, table.rpartition(".")[2]) if entry.symbol else entry.sink_table
        for entry in routes
        if matches(entry.source_table, table)
    ]
    return targets or [table]
