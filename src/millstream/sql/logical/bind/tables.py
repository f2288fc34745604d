"""Tables and views by name: what their columns are made of.

Promises: computed columns, metadata and the watermark stand between the connector and the query; a view is bound in a
scope of its own and cannot contain itself.
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
from millstream.sql.types.durations import duration_millis
from millstream.sql_options import SOURCE_IDLE_TIMEOUT
from millstream.times import Duration

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder


def names_of(session: Session, node: s.TableName) -> tuple[str, ...]:
    """The full name under which the columns of a table can be called."""
    if len(node.parts) == 1:
        return (*(session.catalogs.full_name(node.parts)[:2]), node.parts[0])
    return session.catalogs.full_name(node.parts) if len(node.parts) <= 3 else node.parts


def table_plan(queries: QueryBinder, path: tuple[str, ...], hints: tuple[s.Hint, ...], at: int | None) -> l.Plan:
    """The plan that reads a table or view."""
    session = queries.session
    check_table_hints(hints)
    full, found = session.catalogs.table(path, at)
    options = tuple(pair for hint in hints if hint.name == "OPTIONS" for pair in hint.options)
    match found:
        case ViewDefinition():
            return _view(queries, full, found, at)
        case StreamTable():
            return l.Scan(found.schema, found, full, options)
        case TableDefinition():
            return _table(session, full, found, options)
    raise AssertionError(found)


def _view(queries: QueryBinder, full: tuple[str, str, str], view: ViewDefinition, at: int | None) -> l.Plan:
    if view.plan is not None:
        plan: l.Plan = view.plan
        return plan
    session = queries.session
    if full in session.views:
        message = f"view '{'.'.join(full)}' contains itself"
        raise SqlValidationError(message, at=at)
    inner = replace(session, catalogs=session.catalogs.at(view.home), views=(*session.views, full))
    try:
        made = type(queries)(inner).query(parse_query(view.text))
    except SqlError as problem:
        message = f"view '{'.'.join(full)}' can no longer be used: {problem.problem}"
        raise SqlValidationError(message, at=at, hint=problem.hint) from None
    return l.renamed(made, tuple(view.schema.names), 0)


def _table(
    session: Session, full: tuple[str, str, str], table: TableDefinition, options: tuple[tuple[str, str], ...]
) -> l.Plan:
    read = [each for each in table.columns if each.expr is None]
    kinds = [each.type.not_null() if each.name in table.primary_key else each.type for each in read]
    scan: l.Plan = l.Scan(t.row_of([each.name for each in read], kinds, null=False), table, full, options)
    if any(each.expr is not None for each in table.columns):
        scan = _computed(session, scan, table)
    if table.watermark is not None:
        scan = watermarked(session, scan, *table.watermark)
    return scan


def _computed(session: Session, scan: l.Plan, table: TableDefinition) -> l.Plan:
    scope = scope_of(scan)
    binder = ExpressionBinder(session, scope, clause="in a computed column")
    exprs: list[Expression] = []
    for each in table.columns:
        if each.expr is None:
            index = scan.schema.names.index(each.name)
            exprs.append(Ref(scan.schema.types[index], index))
        else:
            exprs.append(binder.bind(parse_expression(each.expr)))
    return l.project(scan, exprs, [each.name for each in table.columns])


def scope_of(plan: l.Plan) -> Scope:
    """The columns of a plan, unqualified."""
    triples = tuple((n, k, i) for i, (n, k) in enumerate(zip(plan.schema.names, plan.schema.types, strict=True)))
    return Scope([Relation((), triples)])


def watermarked(session: Session, plan: l.Plan, column: str, text: str) -> l.Plan:
    """The plan with a watermark that follows an expression."""
    index = plan.schema.names.index(column)
    kind = plan.schema.types[index]
    expr = ExpressionBinder(session, scope_of(plan), clause="in a watermark").bind(parse_expression(text))
    kinds = list(plan.schema.types)
    kinds[index] = replace(kind, attribute=t.ROWTIME)  # type: ignore[call-arg]
    timeout = session.options(SOURCE_IDLE_TIMEOUT.key)
    idle = _timeout(timeout)
    return l.WatermarkAssigner(t.row_of(plan.schema.names, kinds, null=False), plan, index, expr, idle)


def _timeout(text: str | None) -> int | None:
    if not text:
        return None
    try:
        millis = duration_millis(text)
    except UserError:
        millis = Duration.of_millis(0).to_milliseconds()
    return millis or None
