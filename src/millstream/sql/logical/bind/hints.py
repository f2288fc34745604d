"""Checks of query and table hints.

Promises: an unknown hint, or a hint that names a table which is not in the query, is refused, as in Flink.
Does not know: what the hints do."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.syntax import tree as s

_JOINS = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP", "MULTI_JOIN")
_OF_QUERIES = (*_JOINS, "LOOKUP", "STATE_TTL")
_OF_TABLES = ("OPTIONS",)


def check_query_hints(node: s.Select) -> None:
    """Refuse unknown or misplaced hints of a SELECT."""
    for hint in node.hints:
        _check_known(hint, _OF_QUERIES, _OF_TABLES, "after a table")
        table_names = hint.words if hint.name in _JOINS else [key for key, _ in hint.options]
        names = sorted(set(_read_names(node.source)))
        for name in table_names if hint.name != "LOOKUP" else ():
            if name not in names:
                message = f"the hint {hint.name} names '{name}', which is not a table of this query"
                raise SqlValidationError(message, at=hint.at, hint=nearest(name, names))


def check_table_hints(hints: tuple[s.Hint, ...]) -> None:
    """Refuse unknown or misplaced hints of a table."""
    for hint in hints:
        _check_known(hint, _OF_TABLES, _OF_QUERIES, "after SELECT")


def _check_known(hint: s.Hint, allowed: tuple[str, ...], misplaced: tuple[str, ...], correct_clause: str) -> None:
    if hint.name in allowed:
        return
    if hint.name in misplaced:
        message = f"the hint {hint.name} cannot be used here"
        raise SqlValidationError(message, at=hint.at, hint=f"write it {correct_clause}")
    message = f"there is no hint '{hint.name}'"
    raise SqlValidationError(message, at=hint.at, hint=nearest(hint.name, allowed))


def _read_names(source: s.Source | None) -> Iterator[str]:
    """Iterate over the names by which a query can refer to the tables of its FROM."""
    if isinstance(source, s.Join):
        yield from _read_names(source.left)
        yield from _read_names(source.right)
        return
    alias = getattr(source, "alias", None)
    if alias is not None:
        yield alias
    if isinstance(source, s.TableName):
        yield source.parts[-1]
        yield ".".join(source.parts)
