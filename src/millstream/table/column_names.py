"""Names of the columns that a Table API program selects without an alias.

Promises: the names are Flink's. A column keeps its name; an aggregate or a property of a window is `EXPR$0`, `EXPR$1`,
counted in the order in which they occur first; a field of a row is `row$field`; a cast of a named expression is
`name-TYPE`; other expressions are `_c` with their position.
Does not know: how expressions are computed. Names of SQL queries are given by the binder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from millstream.sql.errors import SqlValidationError
from millstream.sql.syntax import tree as s

Item = tuple[s.Expr, str | None]
IsAggregate = Callable[[s.Expr], bool]


def name_items(items: Sequence[Item], is_aggregate: IsAggregate | None = None, first_position: int = 0) -> list[Item]:
    """Return the items with the names of their columns: the alias, or Flink's name for an expression without one.

    Args:
        items: Expressions with their aliases.
        is_aggregate: Whether an expression is an aggregate or a property of a window; None if there are none.
        first_position: The position of the first item among the columns of the result.

    Raises:
        SqlValidationError: If two columns have the same name.

    """
    aggregates: list[s.Expr] = []
    if is_aggregate is not None:
        for expr, _ in items:
            for aggregate in _find_aggregates(expr, is_aggregate):
                if aggregate not in aggregates:
                    aggregates.append(aggregate)
    names = [alias or _name(expr, aggregates, i) for i, (expr, alias) in enumerate(items, first_position)]
    for i, name in enumerate(names):
        if name in names[:i]:
            message = f"two columns are named '{name}'"
            raise SqlValidationError(message, hint="rename one of them with alias()")
    return [(expr, name) for (expr, _), name in zip(items, names, strict=True)]


def _name(expr: s.Expr, aggregates: Sequence[s.Expr], position: int) -> str:
    name = _derive_name(expr, aggregates)
    if name is None and isinstance(expr, s.Cast) and not expr.safe:
        operand_name = _derive_name(expr.operand, aggregates)
        name = None if operand_name is None else f"{operand_name}-{expr.type}"
    return f"_c{position}" if name is None else name


def _derive_name(expr: s.Expr, aggregates: Sequence[s.Expr]) -> str | None:
    """Return the name of a column, an aggregate, or a field of a named row; None for other expressions."""
    if expr in aggregates:
        return f"EXPR${aggregates.index(expr)}"
    match expr:
        case s.Name(parts=parts):
            return "$".join(parts)
        case s.FieldAccess(operand=operand, name=field):
            row_name = _derive_name(operand, aggregates)
            return None if row_name is None else f"{row_name}${f'_{field}' if isinstance(field, int) else field}"
    return None


def _find_aggregates(value: Any, is_aggregate: IsAggregate) -> Iterator[s.Expr]:
    if isinstance(value, tuple):
        for item in value:
            yield from _find_aggregates(item, is_aggregate)
    elif isinstance(value, s.Expr):
        if is_aggregate(value):
            yield value
        else:
            for field in dataclasses.fields(value):
                yield from _find_aggregates(getattr(value, field.name), is_aggregate)
