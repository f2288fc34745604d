"""Binding of UPDATE and DELETE.

Promises: the plan of a rewrite returns the new content of the table; the plan of changes returns the rows that
are updated or deleted, with their primary key. A row for which the condition is NULL does not change. An assigned value
is converted as by INSERT.
Does not know: connectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Apply, Choose, Expression
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import Session
from millstream.sql.logical.bind.inserts import convert_assigned
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t

_MATCHES = "$matches"


def bind_delete(session: Session, name: tuple[str, ...], table: TableDefinition, node: s.Delete, method: str) -> l.Plan:
    """Bind DELETE; `method` is rewrite or changes."""
    columns = _find_persisted_columns(table)
    items = [(s.Name(node.at, (column,)), column) for column in columns]
    if method == "changes":
        deleted = _select(session, node, items, node.condition)
        return _find_sink(deleted, name, table, row_kind=DELETE)
    if node.condition is None:
        return bind_truncate(name, table)
    rows = _select_matches(session, node, items)
    is_kept = Apply(t.BOOLEAN.with_null(False), "IS NOT TRUE", (rows.refs()[-1],))
    kept = l.Filter(rows.schema, rows, is_kept)
    return _find_sink(l.project(kept, kept.refs()[:-1], columns), name, table, overwrite=True)


def bind_update(session: Session, name: tuple[str, ...], table: TableDefinition, node: s.Update, method: str) -> l.Plan:
    """Bind UPDATE; `method` is rewrite or changes."""
    columns = _find_persisted_columns(table)
    assigned = [column for column, _ in node.assignments]
    for index, (column, value) in enumerate(node.assignments):
        if column not in columns:
            message = f"'{'.'.join(name)}' has no column '{column}' that can be written to"
            raise SqlValidationError(message, at=value.at, hint=nearest(column, columns))
        if column in assigned[:index]:
            message = f"column '{column}' is assigned twice"
            raise SqlValidationError(message, at=value.at)
        if method == "changes" and column in table.primary_key:
            message = f"column '{column}' is part of the primary key, which identifies the row, and cannot be updated"
            raise SqlValidationError(message, at=value.at, hint="DELETE the row and INSERT it with the new key")
    items: list[tuple[s.Expr, str]] = [(s.Name(node.at, (column,)), column) for column in columns]
    items += [(value, f"${column}") for column, value in node.assignments]
    if method == "changes":
        updated = _select(session, node, items, node.condition)
        new_values = [_bind_value(updated, column, columns, name, table, node) for column in columns]
        return _find_sink(l.project(updated, new_values, columns), name, table, row_kind=UPDATE_AFTER)
    matches_name = s.Name(node.at, (_MATCHES,))
    values = items[len(columns) :]
    guarded = [(s.Case(value.at, None, ((matches_name, value),), None), alias) for value, alias in values]
    rows = _select_matches(session, node, [*items[: len(columns)], *guarded])
    matches = rows.refs()[-1]
    exprs = []
    for column, ref in zip(columns, rows.refs(), strict=False):
        new_value = _bind_value(rows, column, columns, name, table, node)
        if column in assigned:
            value_type = new_value.type.with_null(new_value.type.null or ref.type.null)
            new_value = Choose(value_type, (matches, new_value, ref))
        exprs.append(new_value)
    return _find_sink(l.project(rows, exprs, columns), name, table, overwrite=True)


def bind_truncate(name: tuple[str, ...], table: TableDefinition) -> l.Plan:
    """Bind TRUNCATE TABLE, and DELETE without a condition, as a rewrite of the table without rows."""
    columns = [column for column in table.columns if column.is_persisted]
    return _find_sink(
        l.create_empty_rows([c.name for c in columns], [c.type for c in columns]), name, table, overwrite=True
    )


def _find_persisted_columns(table: TableDefinition) -> list[str]:
    return [column.name for column in table.columns if column.is_persisted]


def _select(
    session: Session, node: s.Delete | s.Update, items: Sequence[tuple[s.Expr, str]], condition: s.Expr | None
) -> l.Plan:
    source = s.TableName(node.table_at, node.table, node.alias)
    select = s.Select(node.at, tuple(items), source, condition)
    return QueryBinder(session).query(s.Query(node.at, select))


def _select_matches(session: Session, node: s.Delete | s.Update, items: Sequence[tuple[s.Expr, str]]) -> l.Plan:
    """Select from all rows of the table; the last column is whether the row matches the condition.

    The condition is computed once, so that a row with a random condition is either changed or kept."""
    at = node.at
    condition = s.Literal(at, True) if node.condition is None else _accept_null(node.condition)
    matches: tuple[tuple[s.Expr, str | None], ...] = ((s.Star(at), None), (condition, _MATCHES))
    source = s.TableName(node.table_at, node.table, node.alias)
    inner = s.Query(at, s.Select(at, matches, source))
    named = s.DerivedTable(at, inner, node.alias or node.table[-1])
    outer_items = (*items, (s.Name(at, (_MATCHES,)), _MATCHES))
    plan = QueryBinder(session).query(s.Query(at, s.Select(at, outer_items, named)))
    condition_type = plan.schema.types[-1]
    if not isinstance(condition_type, t.BooleanType | t.NullType):
        message = f"a condition must be BOOLEAN, this is {condition_type}"
        raise SqlValidationError(message, at=condition.at)
    return plan


def _accept_null(condition: s.Expr) -> s.Expr:
    """Replace IN with a subquery by EXISTS: the result may be FALSE where it was NULL, and the row is kept in both."""
    match condition:
        case s.Call(name="AND" | "OR"):
            return replace(condition, args=tuple(_accept_null(part) for part in condition.args))
        case s.In(query=s.Query() as query, negated=False, operand=operand):
            at = condition.at
            operands = operand.args if isinstance(operand, s.Call) and operand.name == "ROW" else (operand,)
            names = [f"$value{index}" for index in range(len(operands))]
            pairs = [s.Call(at, "=", (s.Name(at, (name,)), value)) for name, value in zip(names, operands, strict=True)]
            equal: s.Expr = pairs[0] if len(pairs) == 1 else s.Call(at, "AND", tuple(pairs))
            values = s.DerivedTable(at, query, "$values", tuple(names))
            select = s.Select(at, ((s.Literal(at, 1), None),), values, equal)
            return s.Exists(at, s.Query(at, select))
    return condition


def _bind_value(
    plan: l.Plan, column: str, columns: list[str], name: tuple[str, ...], table: TableDefinition, node: s.Update
) -> Expression:
    """Return the new value of a column of a plan whose columns are those of the table, then the assigned values."""
    for index, (assigned, value) in enumerate(node.assignments):
        if assigned == column:
            (target,) = (definition for definition in table.columns if definition.name == column)
            ref = plan.refs()[len(columns) + index]
            return convert_assigned(ref, "the assigned value", target, name, value.at)
    return plan.refs()[columns.index(column)]


def _find_sink(
    plan: l.Plan, name: tuple[str, ...], table: TableDefinition, *, overwrite: bool = False, row_kind: int = INSERT
) -> l.Plan:
    return l.Sink(plan.schema, plan, table, name, overwrite=overwrite, row_level=True, row_kind=row_kind)
