r"""Transforms as SQL: the query of a source table's rows.

Promises: `\*` and `*` are all columns; an expression replaces the column of its name; the columns `__schema_name__`,
`__table_name__`, `__namespace_name__` and `__data_event_type__` describe a row.
Does not know: expressions. The SQL planner reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from millstream.cdc.definition import Transform
from millstream.cdc.errors import InvalidPipeline

EVENT_TYPE = "__data_event_type__"
_ALIAS = re.compile(r"(?:^|\bAS\s+|\s)`?([A-Za-z_]\w*)`?$", re.IGNORECASE)
_STARS = ("*", "\\*")


def quote(name: str) -> str:
    """Return a quoted identifier."""
    return "`" + name.replace("`", "``") + "`"


def split_columns(projection: str) -> list[str]:
    """Return the expressions of a projection, which are separated by commas outside of texts and parentheses."""
    items, depth, quoted = [""], 0, ""
    for character in projection:
        if quoted:
            quoted = "" if character == quoted else quoted
        elif character in "'`\"":
            quoted = character
        else:
            depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0 and not quoted:
            items.append("")
        else:
            items[-1] += character
    return [item.strip() for item in items if item.strip()]


def output_columns(projection: str | None, columns: Sequence[str]) -> dict[str, str]:
    """Return the expression of each column of a query, by name and in order."""
    if projection is None:
        return {column: quote(column) for column in columns}
    output: dict[str, str] = {}
    for item in split_columns(projection):
        if item in _STARS:
            output.update({column: quote(column) for column in columns if column not in output})
            continue
        name = _ALIAS.search(item)
        if name is None:
            message = f"the expression {item!r} of a projection has no name"
            raise InvalidPipeline(message, hint="add one: expression AS name")
        bare = re.fullmatch(r"`?\w+`?", item)
        body = quote(name[1]) if bare else re.sub(r"\s+AS$", "", item[: name.start()].rstrip(), flags=re.IGNORECASE)
        output[name[1]] = body
    return output


def query(transform: Transform | None, table: str, columns: Sequence[str], view: str) -> tuple[str, list[str]]:
    """Return the query of a view of a source table, and the names of its columns."""
    output = output_columns(None if transform is None else transform.projection, columns)
    namespace, _, schema = table.rpartition(".")[0].rpartition(".")
    constants = {"__namespace_name__": namespace, "__schema_name__": schema, "__table_name__": table.rpartition(".")[2]}
    metadata = ", ".join(f"{_literal(value)} AS {quote(name)}" for name, value in constants.items())
    select = ", ".join(f"{expression} AS {quote(name)}" for name, expression in output.items())
    text = f"SELECT {select} FROM (SELECT *, {metadata} FROM {quote(view)})"
    if transform is not None and transform.filter:
        text += f" WHERE {transform.filter}"
    return text, list(output)


def uses_event_type(transform: Transform | None) -> bool:
    """Return whether a transform reads the row kind of a change."""
    return transform is not None and EVENT_TYPE in f"{transform.projection} {transform.filter}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
