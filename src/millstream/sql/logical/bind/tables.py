"""Binding of tables and views by name.

Promises: computed columns, metadata columns and the watermark are added on top of the scan; a view is bound in the
catalog and database where it was created, and cannot contain itself.
Does not know: connectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.errors import UserError
from millstream.sql.catalog.catalog import StreamTable, TableDefinition, ViewDefinition
from millstream.sql.errors import SqlError, SqlValidationError
from millstream.sql.expressions.nodes import Expression, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session
from millstream.sql.logical.bind.hints import check_table_hints
from millstream.sql.logical.bind.scope import Relation, Scope
from millstream.sql.syntax import parse_expression, parse_query
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import parse_duration_millis
from millstream.sql_options import SOURCE_IDLE_TIMEOUT
from millstream.times import Duration

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder


def list_names(session: Session, node: s.TableName) -> tuple[str, ...]:
    """Return the full name by which columns of a table can be qualified."""
    if len(node.parts) == 1:
        return (*(session.catalogs.full_name(node.parts)[:2]), node.parts[0])
    return session.catalogs.full_name(node.parts) if len(node.parts) <= 3 else node.parts


def plan_table(queries: QueryBinder, path: tuple[str, ...], hints: tuple[s.Hint, ...], at: int | None) -> l.Plan:
    """Return the plan that reads a table or view."""
    session = queries.session
    check_table_hints(hints)
    full, table = session.catalogs.table(path, at)
    options = tuple(pair for hint in hints if hint.name == "OPTIONS" for pair in hint.options)
    match table:
        case ViewDefinition():
            if options:
                message = f"view '{'.'.join(full)}' cannot have an OPTIONS hint: it has no options"
                raise SqlValidationError(message, at=at, hint="write the hint after a table in the query of the view")
            return _bind_view(queries, full, table, at)
        case StreamTable():
            return l.Scan(table.schema, table, full, options)
        case TableDefinition():
            return _bind_table_name(session, full, table, options)
    raise AssertionError(table)


def _bind_view(queries: QueryBinder, full: tuple[str, str, str], view: ViewDefinition, at: int | None) -> l.Plan:
    if view.plan is not None:
        plan: l.Plan = view.plan
        return plan
    session = queries.session
    if full in session.views:
        message = f"view '{'.'.join(full)}' contains itself"
        raise SqlValidationError(message, at=at)
    inner = replace(session, catalogs=session.catalogs.at(view.home), views=(*session.views, full))
    try:
        plan_of_text = type(queries)(inner).query(parse_query(view.text))
    except SqlError as problem:
        message = f"view '{'.'.join(full)}' can no longer be used: {problem.problem}"
        raise SqlValidationError(message, at=at, hint=problem.hint) from None
    return l.rename_columns(plan_of_text, tuple(view.schema.names), 0)


def _bind_table_name(
    session: Session, full: tuple[str, str, str], table: TableDefinition, options: tuple[tuple[str, str], ...]
) -> l.Plan:
    stored_columns = [column for column in table.columns if column.expr is None]
    data_types = [
        column.type.not_null() if column.name in table.primary_key else column.type for column in stored_columns
    ]
    scan: l.Plan = l.Scan(
        t.row_of([column.name for column in stored_columns], data_types, null=False), table, full, options
    )
    if any(column.expr is not None for column in table.columns):
        scan = _add_computed_columns(session, scan, table)
    if table.watermark is not None:
        scan = add_watermark(session, scan, *table.watermark)
    return scan


def _add_computed_columns(session: Session, scan: l.Plan, table: TableDefinition) -> l.Plan:
    scope = create_scope(scan)
    binder = ExpressionBinder(session, scope, clause="in a computed column")
    exprs: list[Expression] = []
    for column in table.columns:
        if column.expr is None:
            index = scan.schema.names.index(column.name)
            exprs.append(Ref(scan.schema.types[index], index))
        else:
            exprs.append(binder.bind(parse_expression(column.expr)))
    return l.project(scan, exprs, [column.name for column in table.columns])


def create_scope(plan: l.Plan) -> Scope:
    """Return a scope with the columns of a plan, unqualified."""
    triples = tuple(
        (name, data_type, i)
        for i, (name, data_type) in enumerate(zip(plan.schema.names, plan.schema.types, strict=True))
    )
    return Scope([Relation((), triples)])


def add_watermark(session: Session, plan: l.Plan, column: str, text: str) -> l.Plan:
    """Add a watermark assigner with the expression `text`."""
    index = plan.schema.names.index(column)
    data_type = plan.schema.types[index]
    expr = ExpressionBinder(session, create_scope(plan), clause="in a watermark").bind(parse_expression(text))
    data_types = list(plan.schema.types)
    data_types[index] = replace(data_type, attribute=t.ROWTIME)  # type: ignore[call-arg]
    option = session.options(SOURCE_IDLE_TIMEOUT.key)
    idle_timeout = _parse_timeout(option)
    return l.WatermarkAssigner(t.row_of(plan.schema.names, data_types, null=False), plan, index, expr, idle_timeout)


def _parse_timeout(text: str | None) -> int | None:
    if not text:
        return None
    try:
        millis = parse_duration_millis(text)
    except UserError:
        millis = Duration.of_millis(0).to_milliseconds()
    return millis or None
