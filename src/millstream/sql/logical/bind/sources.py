"""Binding of FROM: tables, views, queries, table functions and their joins.

Promises: the columns of each source can be qualified by its alias; time attributes of temporal joins are checked.
Does not know: how joins are computed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.sql.errors import SqlNotSupported, SqlValidationError, nearest
from millstream.sql.expressions.nodes import (
    Apply,
    Expression,
    Ref,
    combine_conjuncts,
    find_references,
    shift_references,
    split_conjuncts,
)
from millstream.sql.functions.user_functions import TABLE, UserFunction
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind import tables
from millstream.sql.logical.bind.changelogs import CHANGELOG_FUNCTIONS, bind_changelog_table
from millstream.sql.logical.bind.expressions import ExpressionBinder, coerce, find_user_arguments
from millstream.sql.logical.bind.match import bind_match
from millstream.sql.logical.bind.model_calls import MODEL_FUNCTIONS, bind_model_table
from millstream.sql.logical.bind.process_tables import bind_process_table, find_process_function
from millstream.sql.logical.bind.scope import Relation, Scope
from millstream.sql.logical.bind.subqueries import bind_lateral_join
from millstream.sql.logical.bind.windows import WINDOW_FUNCTIONS, bind_window_table
from millstream.sql.logical.nodes import Unnest
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import find_common_type
from millstream.sql.types.durations import parse_duration_millis

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder


def bind_source(queries: QueryBinder, node: s.Source, hints: tuple[s.Hint, ...]) -> tuple[l.Plan, Scope]:
    """Bind a source of FROM, and return its plan and the scope of its columns."""
    match node:
        case s.Join():
            return _join(queries, node, hints)
        case s.TableFunctionCall():
            if node.call.name in WINDOW_FUNCTIONS and not node.call.path:
                plan = bind_window_table(queries, node.call, bind_source)
                return _bind_alone(plan, node.alias, node.columns, node.at)
            if node.call.name in CHANGELOG_FUNCTIONS and not node.call.path:
                plan = bind_changelog_table(queries, node.call, bind_source)
                return _bind_alone(plan, node.alias, node.columns, node.at)
            if node.call.name in MODEL_FUNCTIONS and not node.call.path:
                plan = bind_model_table(queries, node.call, bind_source)
                return _bind_alone(plan, node.alias, node.columns, node.at)
            process = find_process_function(queries, node.call)
            if process is not None:
                plan = bind_process_table(queries, process, node.call, bind_source)
                return _bind_alone(plan, node.alias, node.columns, node.at)
            single = l.Values(t.row_of([], [], null=False), ((),))
            return _bind_correlated(queries, single, Scope(parent=queries.outer), node, outer=False)
        case s.MatchRecognize():
            plan = bind_match(queries, node, *bind_source(queries, node.input, ()))
            return _bind_alone(plan, node.alias, node.columns, node.at)
        case s.PlanSource():
            return _bind_alone(node.plan, node.alias, (), node.at)
        case s.TableName(as_of=s.Expr()):
            message = "FOR SYSTEM_TIME AS OF can be used for the right side of a join only"
            hint = "for an older version, Delta tables have the option 'versionAsOf', Iceberg tables 'snapshot-id'"
            raise SqlNotSupported(message, at=node.at, hint=hint)
        case s.TableName():
            plan = bind_table(queries, node)
            full = tables.list_names(queries.session, node)
            return _bind_alone(plan, node.alias, node.columns, node.at, full)
        case s.DerivedTable():
            inner = type(queries)(queries.session, queries.ctes, queries.outer)
            return _bind_alone(inner.query(node.query), node.alias, node.columns, node.at)
    raise AssertionError(node)


def bind_table(queries: QueryBinder, node: s.TableName) -> l.Plan:
    """Bind a table, a view or a name of WITH."""
    if len(node.parts) == 1 and node.parts[0] in queries.ctes:
        return queries.ctes[node.parts[0]]
    return tables.plan_table(queries, node.parts, node.hints, node.at)


def _bind_alone(
    plan: l.Plan, alias: str | None, columns: tuple[str, ...], at: int, names: tuple[str, ...] = ()
) -> tuple[l.Plan, Scope]:
    column_names = list(plan.schema.names)
    if columns:
        if len(columns) > len(column_names):
            message = f"there are {len(columns)} names for {len(column_names)} columns"
            raise SqlValidationError(message, at=at)
        column_names[: len(columns)] = columns
    qualifiers = ((alias,),) if alias is not None else ((names,) if names else ())
    triples = tuple(
        (name, data_type, i) for i, (name, data_type) in enumerate(zip(column_names, plan.schema.types, strict=True))
    )
    return plan, Scope([Relation(qualifiers, triples)])


def _shift_relations(scope: Scope, by: int, schema: t.RowType) -> list[Relation]:
    return [
        replace(r, columns=tuple((n, schema.types[i + by], i + by) for n, _, i in r.columns)) for r in scope.relations
    ]


_JOIN_TYPES = {"INNER": "inner", "CROSS": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}


def _join(queries: QueryBinder, node: s.Join, hints: tuple[s.Hint, ...]) -> tuple[l.Plan, Scope]:
    left, left_scope = bind_source(queries, node.left, hints)
    left_scope.parent = queries.outer
    join_type = _JOIN_TYPES[node.join_type]
    right_node = node.right
    if (
        isinstance(right_node, s.TableFunctionCall)
        and right_node.call.name not in (*WINDOW_FUNCTIONS, *CHANGELOG_FUNCTIONS, *MODEL_FUNCTIONS)
        and find_process_function(queries, right_node.call) is None
    ):
        if join_type not in ("inner", "left"):
            message = f"{node.join_type} JOIN of a table function is not possible"
            raise SqlNotSupported(message, at=node.at, hint="use CROSS JOIN or LEFT JOIN ... ON TRUE")
        return _bind_correlated(
            queries, left, left_scope, right_node, outer=join_type == "left", condition=node.condition
        )
    if isinstance(right_node, s.DerivedTable) and right_node.lateral:
        return _bind_lateral(queries, left, left_scope, right_node, join_type, node)
    as_of = right_node.as_of if isinstance(right_node, s.TableName) else None
    plain = replace(right_node, as_of=None) if isinstance(right_node, s.TableName) else right_node
    right, right_scope = bind_source(queries, plain, hints)
    schema = l.join_schemas(left.schema, right.schema, join_type)
    width = len(left.schema)
    relations = [*_shift_relations(left_scope, 0, schema), *_shift_relations(right_scope, width, schema)]
    scope = Scope(relations, queries.outer)
    condition, merged = _bind_join_condition(queries, node, scope, left_scope, right_scope, width)
    if as_of is not None:
        return _bind_temporal(queries, node, left, left_scope, right, join_type, as_of, condition, schema, hints), scope
    scope.merged = {**left_scope.merged, **merged}
    plan = l.Join(schema, left, right, join_type, condition, ttl=_read_ttl(hints, node))
    return plan, scope


def _read_ttl(hints: tuple[s.Hint, ...], node: s.Join) -> tuple[int | None, int | None]:
    ttls: dict[str, int] = {}
    for hint in hints:
        if hint.name == "STATE_TTL":
            ttls.update({key: parse_duration_millis(value, hint.at) for key, value in hint.options})
    if not ttls:
        return (None, None)

    def ttl_of(source: s.Source) -> int | None:
        names = (getattr(source, "alias", None), *(getattr(source, "parts", ())[-1:]))
        return next((ttls[name] for name in names if name in ttls), None)

    return ttl_of(node.left), ttl_of(node.right)


def _bind_join_condition(
    queries: QueryBinder, node: s.Join, scope: Scope, left: Scope, right: Scope, width: int
) -> tuple[Expression | None, dict[str, Expression]]:
    if node.condition is not None:
        return ExpressionBinder(queries.session, scope, clause="in ON").bind_condition(node.condition), {}
    names = node.using
    if node.natural:
        rights = {name for name, _, _ in right.columns()}
        names = tuple(name for name, _, _ in left.columns() if name in rights)
    merged: dict[str, Expression] = {}
    parts: list[Expression] = []
    for name in names:
        sides = []
        for side, offset in ((left, 0), (right, width)):
            columns = [(data_type, i) for n, data_type, i in side.columns() if n == name]
            if len(columns) != 1:
                message = f"USING: column '{name}' must be on both sides once"
                raise SqlValidationError(message, at=node.at, hint=nearest(name, [n for n, _, _ in side.columns()]))
            data_type, index = next((k, i) for n, k, i in scope.columns() if i == columns[0][1] + offset)
            sides.append(Ref(data_type, index))
        parts.append(_compare_for_equality(sides[0], sides[1]))
        if node.join_type == "FULL":
            binder = ExpressionBinder(queries.session, scope)
            merged[name] = binder.apply("COALESCE", [sides[0], sides[1]], node.at)
        else:
            merged[name] = sides[1] if node.join_type == "RIGHT" else sides[0]
    return combine_conjuncts(parts), merged


def _compare_for_equality(left: Expression, right: Expression) -> Expression:
    common = find_common_type([left.type, right.type])
    if common is None:
        message = f"{left.type} and {right.type} cannot be compared"
        raise SqlValidationError(message)
    null = left.type.null or right.type.null
    return Apply(t.BooleanType(null=null), "=", (coerce(left, common), coerce(right, common)))


# ---------------------------------------------------------------------------------------------------- temporal joins


def _bind_temporal(
    queries: QueryBinder,
    node: s.Join,
    left: l.Plan,
    left_scope: Scope,
    right: l.Plan,
    join_type: str,
    as_of: s.Expr,
    condition: Expression | None,
    schema: t.RowType,
    hints: tuple[s.Hint, ...],
) -> l.Plan:
    if join_type not in ("inner", "left"):
        message = f"a temporal join cannot be {node.join_type}"
        raise SqlNotSupported(message, at=node.at, hint="use JOIN or LEFT JOIN")
    time = ExpressionBinder(queries.session, left_scope, clause="in FOR SYSTEM_TIME AS OF").bind(as_of)
    if not isinstance(time, Ref) or t.get_time_attribute(time.type) is None:
        message = "FOR SYSTEM_TIME AS OF needs a time attribute of the left table"
        raise SqlValidationError(message, at=as_of.at)
    width = len(left.schema)
    lefts, rights, rest = find_equi_keys(condition, width)
    if not lefts:
        message = "a temporal join needs an equality between columns of both tables"
        raise SqlValidationError(message, at=node.at, hint="join on the primary key of the versioned table")
    left_plan, left_keys = as_columns(left, lefts)
    right_plan, right_keys = as_columns(right, rights)
    if len(right_plan.schema) > len(right.schema):
        message = "a temporal join cannot apply expressions to the key columns of the versioned table"
        raise SqlNotSupported(message, at=node.at, hint="cast the other side to the column's type")
    added = len(left_plan.schema) - width
    rest = [shift_references(part, lambda i: i if i < width else i + added) for part in rest]
    wide = l.join_schemas(left_plan.schema, right.schema, join_type)
    hint = _read_lookup_hint(hints, node.right)
    join = l.TemporalJoin(
        wide, left_plan, right, join_type, time.index, left_keys, right_keys, combine_conjuncts(rest), hint
    )  # fmt: skip
    if not added:
        return join
    refs = join.refs()
    return l.Project(schema, join, (*refs[:width], *refs[width + added :]))


def _read_lookup_hint(hints: tuple[s.Hint, ...], right: s.Source) -> tuple[tuple[str, str], ...]:
    """Return the options of the LOOKUP hint that names the table by its alias or its name."""
    names = {getattr(right, "alias", None), *getattr(right, "parts", ())[-1:]}
    for hint in hints:
        if hint.name == "LOOKUP" and dict(hint.options).get("table") in names:
            return hint.options
    return ()


def find_equi_keys(
    condition: Expression | None, width: int
) -> tuple[list[Expression], list[Expression], list[Expression]]:
    """Split a condition into equalities, as expressions over each side, and the remaining conjuncts."""
    lefts: list[Expression] = []
    rights: list[Expression] = []
    rest: list[Expression] = []
    for part in split_conjuncts(condition):
        if isinstance(part, Apply) and part.function == "=":
            left, right = part.args
            sides = [_find_side(left, width), _find_side(right, width)]
            if sides == [1, 0]:
                left, right, sides = right, left, [0, 1]
            if sides == [0, 1]:
                lefts.append(left)
                rights.append(shift_references(right, lambda i: i - width))
                continue
        rest.append(part)
    return lefts, rights, rest


def _find_side(expression: Expression, width: int) -> int | None:
    used = find_references(expression)
    if not used:
        return None
    if max(used) < width:
        return 0
    return 1 if min(used) >= width else None


def as_columns(plan: l.Plan, exprs: list[Expression]) -> tuple[l.Plan, tuple[int, ...]]:
    """Append expressions to a plan as columns, and return their column indexes."""
    columns: list[Expression] = list(plan.refs())
    indexes: list[int] = []
    for expr in exprs:
        if isinstance(expr, Ref):
            indexes.append(expr.index)
            continue
        if expr not in columns:
            columns.append(expr)
        indexes.append(columns.index(expr))
    if len(columns) == len(plan.schema):
        return plan, tuple(indexes)
    names = [*plan.schema.names, *(f"$k{i}" for i in range(len(columns) - len(plan.schema)))]
    return l.project(plan, columns, names), tuple(indexes)


# ---------------------------------------------------------------------------------------------------- table functions


def _bind_correlated(
    queries: QueryBinder,
    left: l.Plan,
    scope: Scope,
    node: s.TableFunctionCall,
    *,
    outer: bool,
    condition: s.Expr | None = None,
) -> tuple[l.Plan, Scope]:
    call = node.call
    binder = ExpressionBinder(queries.session, scope, clause="as an argument of a table function")
    args = [binder.bind(arg) for arg in call.args]
    function: Any
    if call.name == "UNNEST" and not call.path:
        function, names, data_types = _unnest(args[0].type, node)
    else:
        function = call.user or queries.session.catalogs.function(call.path or (call.name,))
        if not isinstance(function, UserFunction) or function.kind != TABLE:
            message = f"there is no table function '{call.name}'"
            raise SqlValidationError(
                message, at=call.at, hint=nearest(call.name, queries.session.catalogs.function_names())
            )
        args = find_user_arguments(function, args, call.at)
        result = function.result_type
        assert isinstance(result, t.RowType)
        names, data_types = list(result.names), list(result.types)
    if node.columns:
        if len(node.columns) != len(names):
            message = f"there are {len(node.columns)} names for {len(names)} columns"
            raise SqlValidationError(message, at=node.at)
        names = list(node.columns)
    right = t.row_of(
        l.make_names_unique(names),
        [data_type.nullable() if outer else data_type for data_type in data_types],
        null=False,
    )
    schema = l.join_schemas(left.schema, right, "inner")
    plan: l.Plan = l.Correlate(schema, left, function, tuple(args), outer)
    width = len(left.schema)
    triples = tuple((name, schema.types[width + i], width + i) for i, name in enumerate(names))
    qualifiers = ((node.alias,),) if node.alias else ((call.name,),)
    joined = Scope([*scope.relations, Relation(qualifiers, triples)], queries.outer)
    if condition is not None and not (isinstance(condition, s.Literal) and condition.value is True):
        if outer:
            message = "LEFT JOIN of a table function must be ON TRUE"
            raise SqlNotSupported(message, at=condition.at)
        bound_condition = ExpressionBinder(queries.session, joined, clause="in ON").bind_condition(condition)
        plan = l.Filter(plan.schema, plan, bound_condition)
    return plan, joined


def _unnest(data_type: t.DataType, node: s.TableFunctionCall) -> tuple[Unnest, list[str], list[t.DataType]]:
    names: list[str]
    data_types: list[t.DataType]
    match data_type:
        case t.ArrayType(element=element) | t.MultisetType(element=element):
            if isinstance(element, t.RowType):
                names = list(element.names)
                data_types = [field_type.with_null(field_type.null or element.null) for field_type in element.types]
            else:
                names, data_types = ["EXPR$0"], [element]
        case t.MapType(key=key, value=value):
            names, data_types = ["KEY", "VALUE"], [key, value]
        case _:
            message = f"UNNEST needs an ARRAY, MAP or MULTISET, not {data_type}"
            raise SqlValidationError(message, at=node.call.at)
    if node.ordinality:
        names, data_types = [*names, "ORDINALITY"], [*data_types, t.INT.not_null()]
    return Unnest(node.ordinality), names, data_types


def _bind_lateral(
    queries: QueryBinder, left: l.Plan, scope: Scope, node: s.DerivedTable, join_type: str, joined: s.Join
) -> tuple[l.Plan, Scope]:
    plan, names = bind_lateral_join(queries, left, scope, node, join_type)
    width = len(left.schema)
    triples = tuple((name, plan.schema.types[width + i], width + i) for i, name in enumerate(names))
    joined_scope = Scope([*scope.relations, Relation(((node.alias,),) if node.alias else (), triples)], queries.outer)
    if joined.condition is not None and not (
        isinstance(joined.condition, s.Literal) and joined.condition.value is True
    ):
        bound_condition = ExpressionBinder(queries.session, joined_scope, clause="in ON").bind_condition(
            joined.condition
        )
        plan = l.Filter(plan.schema, plan, bound_condition)
    return plan, joined_scope
