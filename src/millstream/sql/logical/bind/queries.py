"""Binding of queries to logical plans.

Promises: FROM, WHERE, GROUP BY, HAVING, OVER, SELECT, DISTINCT, ORDER BY and LIMIT apply in the order of the SQL
standard; columns without a name are named as in Flink.
Does not know: how plans are run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.evaluation.repeated import is_random
from millstream.sql.expressions.nodes import Apply, Choose, Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind import aggregates, sources, subqueries
from millstream.sql.logical.bind.expressions import ExpressionBinder, Hooks, Session, coerce
from millstream.sql.logical.bind.hints import check_query_hints
from millstream.sql.logical.bind.over import OverCollector, check_orderable
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import find_common_type


class QueryBinder:
    """Binds queries in a session; `ctes` are the plans of WITH, by name."""

    def __init__(self, session: Session, ctes: dict[str, l.Plan] | None = None, outer: Scope | None = None) -> None:
        self.session = session
        self.ctes = dict(ctes or {})
        self.outer = outer

    # --------------------------------------------------------------------------------------------------------- whole

    def query(self, node: s.Query) -> l.Plan:
        """Bind a query with its WITH, ORDER BY and LIMIT."""
        if node.ctes:
            inner = QueryBinder(self.session, self.ctes, self.outer)
            for name, columns, cte in node.ctes:
                inner.ctes[name] = l.rename_columns(inner.query(cte), columns, cte.at)
            return inner.query(replace(node, ctes=()))
        if isinstance(node.body, s.Select):
            plan = self._bind_select(node.body, node.order)
        else:
            plan = self._bind_body(node.body)
            if node.order:
                plan = self._bind_sort(plan, node.order)
        if node.limit is not None or node.offset is not None:
            order: tuple[tuple[int, bool, bool], ...] = ()
            if isinstance(plan, l.Sort):
                order, plan = plan.order, plan.input
            elif isinstance(plan, l.Project) and isinstance(plan.input, l.Sort):
                sort = plan.input
                limited = l.Sort(sort.schema, sort.input, sort.order, node.limit, node.offset or 0)
                return replace(plan, input=limited)
            plan = l.Sort(plan.schema, plan, order, node.limit, node.offset or 0)
        return plan

    def _bind_body(self, body: s.QueryBody) -> l.Plan:
        match body:
            case s.Select():
                return self._bind_select(body, ())
            case s.Values():
                return self._bind_values(body)
            case s.SetOperation():
                return self._bind_set_operation(body)
        raise AssertionError(body)

    def _bind_values(self, node: s.Values) -> l.Plan:
        binder = ExpressionBinder(self.session, Scope(parent=self.outer), clause="in VALUES")
        rows = [[binder.bind(expr) for expr in row] for row in node.rows]
        width = len(rows[0])
        for row, row_node in zip(rows, node.rows, strict=True):
            if len(row) != width:
                message = f"the rows of VALUES have {width} and {len(row)} columns"
                raise SqlValidationError(message, at=row_node[0].at)
        data_types: list[t.DataType] = []
        for i in range(width):
            common = find_common_type([row[i].type for row in rows])
            if common is None:
                message = f"column {i + 1} of VALUES has no common type"
                raise SqlValidationError(message, at=node.rows[0][i].at)
            data_types.append(common)
        schema = t.row_of([f"EXPR${i}" for i in range(width)], data_types, null=False)
        values = tuple(
            tuple(coerce(expr, data_type) for expr, data_type in zip(row, data_types, strict=True)) for row in rows
        )
        return (
            l.Values(schema, values)
            if not any(is_random(e) for row in values for e in row)
            else _find_computed_values(schema, values)
        )

    def _bind_set_operation(self, node: s.SetOperation) -> l.Plan:
        left, right = self.query(node.left), self.query(node.right)
        if len(left.schema) != len(right.schema):
            message = f"{node.operator} of {len(left.schema)} and {len(right.schema)} columns"
            raise SqlValidationError(message, at=node.at)
        data_types: list[t.DataType] = []
        for i, (left_type, right_type) in enumerate(zip(left.schema.types, right.schema.types, strict=True)):
            same_attribute = t.get_time_attribute(left_type) is not None and t.get_time_attribute(
                left_type
            ) == t.get_time_attribute(right_type)
            common = (
                left_type
                if same_attribute and left_type.same(right_type)
                else find_common_type([left_type, right_type])
            )
            if common is None:
                message = f"column {i + 1} of {node.operator} is {left_type} on one side and {right_type} on the other"
                raise SqlValidationError(message, at=node.at)
            data_types.append(common)
        schema = t.row_of(left.schema.names, data_types, null=False)
        parts = tuple(self._coerce_columns(plan, schema) for plan in (left, right))
        if node.operator == "UNION":
            whole = l.SetOperation(schema, "UNION", True, parts)
            return whole if node.all else distinct(whole)
        plain = t.row_of(schema.names, [t.strip_time_attribute(data_type) for data_type in data_types], null=False)
        return l.SetOperation(plain, node.operator, node.all, parts)

    @staticmethod
    def _coerce_columns(plan: l.Plan, schema: t.RowType) -> l.Plan:
        exprs = [coerce(ref, data_type) for ref, data_type in zip(plan.refs(), schema.types, strict=True)]
        return l.project(plan, exprs, schema.names) if tuple(exprs) != plan.refs() else plan

    # -------------------------------------------------------------------------------------------------------- SELECT

    def _bind_select(self, node: s.Select, order: tuple[s.OrderItem, ...]) -> l.Plan:
        check_query_hints(node)
        plan, scope = self._bind_from(node)
        if node.where is not None:
            plan = self._bind_where(plan, scope, node.where)
        builder = _Selection(self, node, plan, scope)
        return builder.build(order)

    def _bind_from(self, node: s.Select) -> tuple[l.Plan, Scope]:
        if node.source is None:
            empty = l.Values(t.row_of([], [], null=False), ((),))
            return empty, Scope(parent=self.outer)
        plan, scope = sources.bind_source(self, node.source, node.hints)
        scope.parent = self.outer
        return plan, scope

    def _bind_where(self, plan: l.Plan, scope: Scope, where: s.Expr) -> l.Plan:
        width = len(plan.schema)
        for part in _split_conjuncts(where):
            joined = subqueries.bind_semi_join(self, plan, scope, part)
            if joined is not None:
                plan = joined
                continue
            holder = subqueries.Scalars(self, plan, scope)
            binder = ExpressionBinder(self.session, scope, Hooks(subquery=holder.bind), "in WHERE")
            condition = binder.bind_condition(part)
            plan = l.Filter(holder.plan.schema, holder.plan, condition)
        if len(plan.schema) > width:
            refs = plan.refs()[:width]
            plan = l.project(plan, refs, plan.schema.names[:width])
        return plan

    @staticmethod
    def _bind_sort(plan: l.Plan, order: Sequence[s.OrderItem]) -> l.Plan:
        names = plan.schema.names
        keys = tuple(_create_order_key(plan, _find_output_position(item, names), item) for item in order)
        return l.Sort(plan.schema, plan, keys)


class _Selection:
    """Builds the plan of one SELECT."""

    def __init__(self, queries: QueryBinder, node: s.Select, plan: l.Plan, scope: Scope) -> None:
        self.queries, self.node, self.plan, self.scope = queries, node, plan, scope
        self.session = queries.session

    def build(self, order: tuple[s.OrderItem, ...]) -> l.Plan:
        node = self.node
        grouping = aggregates.Grouping(self.queries, node, self.plan, self.scope)
        grouped = grouping.is_needed([item for item, _ in node.items], node.having, [o.expr for o in order])
        over = OverCollector(self.session, dict(node.windows))
        holder = subqueries.Scalars(self.queries, self.plan, self.scope)
        deferred = subqueries.Deferred(self.queries, self.scope)
        hooks = Hooks(
            aggregate=grouping.aggregate if grouped else None,
            over=over.collect,
            subquery=deferred.collect if grouped else holder.bind,
            grouping=grouping.grouping if grouped else None,
            window_property=grouping.bind_window_property if grouped else None,
        )
        binder = ExpressionBinder(self.session, self.scope, hooks, "in SELECT")
        over.binder = binder
        items = self._bind_items(binder)
        having = None if node.having is None else binder.bind_condition(node.having)
        qualify = None if node.qualify is None else binder.bind_condition(node.qualify)
        names = [name for name, _ in items]
        exprs = [expr for _, expr in items]
        order_columns, hidden = self._order_columns(binder, order, names, len(exprs))
        exprs = [*exprs, *hidden]
        if grouped:
            plan, lowered = grouping.build([*exprs, *([having] if having is not None else []), *over.expressions()])
            plan, lowered = deferred.join(plan, grouping.key_columns, lowered)
            exprs, rest = lowered[: len(exprs)], lowered[len(exprs) :]
            if having is not None:
                plan = l.Filter(plan.schema, plan, rest[0])
                rest = rest[1:]
            over.replace(rest)
            if qualify is not None:
                message = "QUALIFY cannot be used together with GROUP BY"
                raise SqlNotSupported(message, at=node.at, hint="put the grouped query into FROM")
        else:
            plan = holder.plan
        if over.calls:
            plan, exprs, qualified = over.build(plan, exprs, qualify)
            if qualified is not None:
                plan = l.Filter(plan.schema, plan, qualified)
        width = len(names)
        hidden_names = [f"$order{i}" for i in range(len(exprs) - width)]
        plan = l.project(plan, exprs, [*names, *hidden_names])
        if node.distinct:
            if hidden:
                message = "ORDER BY of SELECT DISTINCT must name columns that are selected"
                raise SqlValidationError(message, at=node.at)
            plan = distinct(plan)
        if order:
            keys = tuple(
                _create_order_key(plan, column_index, item)
                for column_index, item in zip(order_columns, order, strict=True)
            )
            plan = l.Sort(plan.schema, plan, keys)
            if hidden:
                kept = plan.refs()[:width]
                plan = l.Project(t.row_of(plan.schema.names[:width], [e.type for e in kept], null=False), plan, kept)
        return plan

    def _bind_items(self, binder: ExpressionBinder) -> list[tuple[str, Expression]]:
        items: list[tuple[str, Expression]] = []
        for item, alias in self.node.items:
            if isinstance(item, s.Star):
                items.extend(self.scope.star(item.qualifier, item.at))
                continue
            expression = binder.bind(item)
            items.append((alias or _find_name(item) or f"EXPR${len(items)}", expression))
        return items

    def _order_columns(
        self, binder: ExpressionBinder, order: Sequence[s.OrderItem], names: list[str], width: int
    ) -> tuple[list[int], list[Expression]]:
        order_columns: list[int] = []
        hidden: list[Expression] = []
        for item in order:
            match item.expr:
                case s.Literal(value=int(number)) if not isinstance(number, bool):
                    if not 1 <= number <= width:
                        message = f"ORDER BY {number}: there are {width} columns"
                        raise SqlValidationError(message, at=item.at)
                    order_columns.append(number - 1)
                case s.Name(parts=(name,)) if name in names:
                    order_columns.append(names.index(name))
                case _:
                    order_columns.append(width + len(hidden))
                    hidden.append(binder.bind(item.expr))
        return order_columns, hidden


def _find_output_position(item: s.OrderItem, names: list[str]) -> int:
    match item.expr:
        case s.Literal(value=int(number)) if 1 <= number <= len(names):
            return number - 1
        case s.Name(parts=(name,)) if name in names:
            return names.index(name)
    message = "ORDER BY of a set operation must name one of its columns"
    raise SqlValidationError(message, at=item.at)


def _create_order_key(plan: l.Plan, column_index: int, item: s.OrderItem) -> tuple[int, bool, bool]:
    check_orderable(plan.schema.types[column_index], item.at)
    nulls_first = item.ascending if item.nulls_first is None else item.nulls_first
    return column_index, item.ascending, nulls_first


def _find_name(node: s.Expr) -> str | None:
    match node:
        case s.Name(parts=parts):
            return parts[-1]
        case s.FieldAccess(name=str(name)):
            return name
    return None


def _split_conjuncts(node: s.Expr) -> list[s.Expr]:
    if isinstance(node, s.Call) and node.name == "AND":
        return [part for arg in node.args for part in _split_conjuncts(arg)]
    return [node]


def _find_computed_values(schema: t.RowType, rows: Sequence[Sequence[Expression]]) -> l.Plan:
    """Return the rows of VALUES as a projection, so that random values are computed while the job runs."""
    number = t.BIGINT.not_null()
    numbered = l.Values(t.row_of(["$row"], [number], null=False), tuple((Lit(number, i),) for i in range(len(rows))))
    exprs = []
    for data_type, column in zip(schema.types, zip(*rows, strict=True), strict=True):
        cases: list[Expression] = []
        for i, expr in enumerate(column[:-1]):
            cases += [Apply(t.BOOLEAN.not_null(), "=", (Ref(number, 0), Lit(number, i))), expr]
        exprs.append(column[0] if len(set(column)) == 1 else Choose(data_type, (*cases, column[-1])))
    return l.Project(schema, numbered, tuple(exprs))


def distinct(plan: l.Plan) -> l.Plan:
    """Remove duplicate rows."""
    data_types = [t.strip_time_attribute(data_type) for data_type in plan.schema.types]
    schema = t.row_of(plan.schema.names, data_types, null=False)
    return l.Aggregate(schema, plan, tuple(range(len(plan.schema))), ())
