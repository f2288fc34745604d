"""FROM: tables, views, queries, table functions and their joins.

Promises: each source brings its columns under its alias; a temporal join knows its time, a table function its row.
Does not know: how joins are computed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.sql.errors import SqlNotSupported, SqlValidationError, nearest
from millstream.sql.expressions.nodes import Apply, Expression, Ref, conjunction, conjuncts, references, shifted
from millstream.sql.functions.user_functions import TABLE, UserFunction
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind import tables
from millstream.sql.logical.bind.changelogs import CHANGELOG_FUNCTIONS, changelog_table
from millstream.sql.logical.bind.expressions import ExpressionBinder, coerced, user_arguments
from millstream.sql.logical.bind.match import bind_match
from millstream.sql.logical.bind.scope import Relation, Scope
from millstream.sql.logical.bind.subqueries import lateral_join
from millstream.sql.logical.bind.windows import WINDOW_FUNCTIONS, window_table
from millstream.sql.logical.nodes import Unnest
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import common_type
from millstream.sql.types.durations import duration_millis

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder


def bind_source(queries: QueryBinder, node: s.Source, hints: tuple[s.Hint, ...]) -> tuple[l.Plan, Scope]:
    """A source of FROM with the names it brings."""
    match node:
        case s.Join():
            return _join(queries, node, hints)
        case s.TableFunctionCall():
            if node.call.name in WINDOW_FUNCTIONS and not node.call.path:
                plan = window_table(queries, node.call, bind_source)
                return _alone(plan, node.alias, node.columns, node.at)
            if node.call.name in CHANGELOG_FUNCTIONS and not node.call.path:
                plan = changelog_table(queries, node.call, bind_source)
                return _alone(plan, node.alias, node.columns, node.at)
            single = l.Values(t.row_of([], [], null=False), ((),))
            return _correlated(queries, single, Scope(parent=queries.outer), node, outer=False)
        case s.MatchRecognize():
            plan = bind_match(queries, node, *bind_source(queries, node.input, ()))
            return _alone(plan, node.alias, node.columns, node.at)
        case s.PlanSource():
            return _alone(node.plan, node.alias, (), node.at)
        case s.TableName(as_of=s.Expr()):
            message = "FOR SYSTEM_TIME AS OF reads a table as it was, which is for the right side of a join"
            hint = "an older version of a Delta table is option 'versionAsOf', of an Iceberg table 'snapshot-id'"
            raise SqlNotSupported(message, at=node.at, hint=hint)
        case s.TableName():
            plan = bind_table(queries, node)
            full = tables.names_of(queries.session, node)
            return _alone(plan, node.alias, node.columns, node.at, full)
        case s.DerivedTable():
            inner = type(queries)(queries.session, queries.ctes, queries.outer)
            return _alone(inner.query(node.query), node.alias, node.columns, node.at)
    raise AssertionError(node)


def bind_table(queries: QueryBinder, node: s.TableName) -> l.Plan:
    """A table, a view or a name of WITH."""
    if len(node.parts) == 1 and node.parts[0] in queries.ctes:
        return queries.ctes[node.parts[0]]
    return tables.table_plan(queries, node.parts, node.hints, node.at)


def _alone(
    plan: l.Plan, alias: str | None, columns: tuple[str, ...], at: int, names: tuple[str, ...] = ()
) -> tuple[l.Plan, Scope]:
    shown = list(plan.schema.names)
    if columns:
        if len(columns) > len(shown):
            message = f"{len(columns)} names for {len(shown)} columns"
            raise SqlValidationError(message, at=at)
        shown[: len(columns)] = columns
    known = ((alias,),) if alias is not None else ((names,) if names else ())
    triples = tuple((name, kind, i) for i, (name, kind) in enumerate(zip(shown, plan.schema.types, strict=True)))
    return plan, Scope([Relation(known, triples)])


def _shifted_relations(scope: Scope, by: int, schema: t.RowType) -> list[Relation]:
    return [
        replace(r, columns=tuple((n, schema.types[i + by], i + by) for n, _, i in r.columns)) for r in scope.relations
    ]


_KINDS = {"INNER": "inner", "CROSS": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}


def _join(queries: QueryBinder, node: s.Join, hints: tuple[s.Hint, ...]) -> tuple[l.Plan, Scope]:
    left, left_scope = bind_source(queries, node.left, hints)
    left_scope.parent = queries.outer
    kind = _KINDS[node.kind]
    right_node = node.right
    if isinstance(right_node, s.TableFunctionCall) and right_node.call.name not in (
        *WINDOW_FUNCTIONS,
        *CHANGELOG_FUNCTIONS,
    ):
        if kind not in ("inner", "left"):
            message = f"{node.kind} JOIN of a table function is not possible"
            raise SqlNotSupported(message, at=node.at, hint="use CROSS JOIN or LEFT JOIN ... ON TRUE")
        return _correlated(queries, left, left_scope, right_node, outer=kind == "left", condition=node.condition)
    if isinstance(right_node, s.DerivedTable) and right_node.lateral:
        return _lateral(queries, left, left_scope, right_node, kind, node)
    as_of = right_node.as_of if isinstance(right_node, s.TableName) else None
    plain = replace(right_node, as_of=None) if isinstance(right_node, s.TableName) else right_node
    right, right_scope = bind_source(queries, plain, hints)
    schema = l.joined_schema(left.schema, right.schema, kind)
    width = len(left.schema)
    relations = [*_shifted_relations(left_scope, 0, schema), *_shifted_relations(right_scope, width, schema)]
    scope = Scope(relations, queries.outer)
    condition, merged = _condition(queries, node, scope, left_scope, right_scope, width)
    if as_of is not None:
        return _temporal(queries, node, left, left_scope, right, kind, as_of, condition, schema, hints), scope
    scope.merged = {**left_scope.merged, **merged}
    plan = l.Join(schema, left, right, kind, condition, ttl=_ttl(hints, node))
    return plan, scope


def _ttl(hints: tuple[s.Hint, ...], node: s.Join) -> tuple[int | None, int | None]:
    found: dict[str, int] = {}
    for hint in hints:
        if hint.name == "STATE_TTL":
            found.update({key: duration_millis(value, hint.at) for key, value in hint.options})
    if not found:
        return (None, None)

    def of(source: s.Source) -> int | None:
        names = (getattr(source, "alias", None), *(getattr(source, "parts", ())[-1:]))
        return next((found[name] for name in names if name in found), None)

    return of(node.left), of(node.right)


def _condition(
    queries: QueryBinder, node: s.Join, scope: Scope, left: Scope, right: Scope, width: int
) -> tuple[Expression | None, dict[str, Expression]]:
    if node.condition is not None:
        return ExpressionBinder(queries.session, scope, clause="in ON").condition(node.condition), {}
    names = node.using
    if node.natural:
        rights = {name for name, _, _ in right.columns()}
        names = tuple(name for name, _, _ in left.columns() if name in rights)
    merged: dict[str, Expression] = {}
    parts: list[Expression] = []
    for name in names:
        found = []
        for side, offset in ((left, 0), (right, width)):
            columns = [(kind, i) for n, kind, i in side.columns() if n == name]
            if len(columns) != 1:
                message = f"USING: column '{name}' must be on both sides once"
                raise SqlValidationError(message, at=node.at, hint=nearest(name, [n for n, _, _ in side.columns()]))
            kind, index = next((k, i) for n, k, i in scope.columns() if i == columns[0][1] + offset)
            found.append(Ref(kind, index))
        parts.append(_equal(found[0], found[1]))
        if node.kind == "FULL":
            binder = ExpressionBinder(queries.session, scope)
            merged[name] = binder.apply("COALESCE", [found[0], found[1]], node.at)
        else:
            merged[name] = found[1] if node.kind == "RIGHT" else found[0]
    return conjunction(parts), merged


def _equal(one: Expression, other: Expression) -> Expression:
    common = common_type([one.type, other.type])
    if common is None:
        message = f"{one.type} and {other.type} cannot be compared"
        raise SqlValidationError(message)
    null = one.type.null or other.type.null
    return Apply(t.BooleanType(null=null), "=", (coerced(one, common), coerced(other, common)))


# ---------------------------------------------------------------------------------------------------- temporal joins


def _temporal(
    queries: QueryBinder,
    node: s.Join,
    left: l.Plan,
    left_scope: Scope,
    right: l.Plan,
    kind: str,
    as_of: s.Expr,
    condition: Expression | None,
    schema: t.RowType,
    hints: tuple[s.Hint, ...],
) -> l.Plan:
    if kind not in ("inner", "left"):
        message = f"a temporal join cannot be {node.kind}"
        raise SqlNotSupported(message, at=node.at, hint="use JOIN or LEFT JOIN")
    time = ExpressionBinder(queries.session, left_scope, clause="in FOR SYSTEM_TIME AS OF").bind(as_of)
    if not isinstance(time, Ref) or t.attribute_of(time.type) is None:
        message = "FOR SYSTEM_TIME AS OF needs a time attribute of the left table"
        raise SqlValidationError(message, at=as_of.at)
    width = len(left.schema)
    lefts, rights, rest = equi_keys(condition, width)
    if not lefts:
        message = "a temporal join needs an equality of columns of both tables"
        raise SqlValidationError(message, at=node.at, hint="join on the primary key of the versioned table")
    left_plan, left_keys = as_columns(left, lefts)
    right_plan, right_keys = as_columns(right, rights)
    if len(right_plan.schema) > len(right.schema):
        message = "a temporal join must compare columns of the versioned table as they are"
        raise SqlNotSupported(message, at=node.at, hint="cast the other side to the column's type")
    added = len(left_plan.schema) - width
    rest = [shifted(part, lambda i: i if i < width else i + added) for part in rest]
    wide = l.joined_schema(left_plan.schema, right.schema, kind)
    hint = _lookup_hint(hints, node.right)
    made = l.TemporalJoin(
        wide, left_plan, right, kind, time.index, left_keys, right_keys, conjunction(rest), hint
    )  # fmt: skip
    if not added:
        return made
    refs = made.refs()
    return l.Project(schema, made, (*refs[:width], *refs[width + added :]))


def _lookup_hint(hints: tuple[s.Hint, ...], right: s.Source) -> tuple[tuple[str, str], ...]:
    """The options of the LOOKUP hint that names the table, by its alias or its own name."""
    names = {getattr(right, "alias", None), *getattr(right, "parts", ())[-1:]}
    for hint in hints:
        if hint.name == "LOOKUP" and dict(hint.options).get("table") in names:
            return hint.options
    return ()


def equi_keys(condition: Expression | None, width: int) -> tuple[list[Expression], list[Expression], list[Expression]]:
    """Equalities between both sides as expressions over each, and what is left of the condition."""
    lefts: list[Expression] = []
    rights: list[Expression] = []
    rest: list[Expression] = []
    for part in conjuncts(condition):
        if isinstance(part, Apply) and part.function == "=":
            one, other = part.args
            sides = [_side(one, width), _side(other, width)]
            if sides == [1, 0]:
                one, other, sides = other, one, [0, 1]
            if sides == [0, 1]:
                lefts.append(one)
                rights.append(shifted(other, lambda i: i - width))
                continue
        rest.append(part)
    return lefts, rights, rest


def _side(expression: Expression, width: int) -> int | None:
    used = references(expression)
    if not used:
        return None
    if max(used) < width:
        return 0
    return 1 if min(used) >= width else None


def as_columns(plan: l.Plan, exprs: list[Expression]) -> tuple[l.Plan, tuple[int, ...]]:
    """The plan with these expressions as columns, and their positions."""
    columns: list[Expression] = list(plan.refs())
    places: list[int] = []
    for expr in exprs:
        if isinstance(expr, Ref):
            places.append(expr.index)
            continue
        if expr not in columns:
            columns.append(expr)
        places.append(columns.index(expr))
    if len(columns) == len(plan.schema):
        return plan, tuple(places)
    names = [*plan.schema.names, *(f"$k{i}" for i in range(len(columns) - len(plan.schema)))]
    return l.project(plan, columns, names), tuple(places)


# ---------------------------------------------------------------------------------------------------- table functions


def _correlated(
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
        function, names, kinds = _unnest(args[0].type, node)
    else:
        function = call.user or queries.session.catalogs.function(call.path or (call.name,))
        if not isinstance(function, UserFunction) or function.kind != TABLE:
            message = f"there is no table function '{call.name}'"
            raise SqlValidationError(
                message, at=call.at, hint=nearest(call.name, queries.session.catalogs.function_names())
            )
        args = user_arguments(function, args, call.at)
        result = function.result_type
        assert isinstance(result, t.RowType)
        names, kinds = list(result.names), list(result.types)
    if node.columns:
        if len(node.columns) != len(names):
            message = f"{len(node.columns)} names for {len(names)} columns"
            raise SqlValidationError(message, at=node.at)
        names = list(node.columns)
    right = t.row_of(l.unique(names), [k.nullable() if outer else k for k in kinds], null=False)
    schema = l.joined_schema(left.schema, right, "inner")
    plan: l.Plan = l.Correlate(schema, left, function, tuple(args), outer)
    width = len(left.schema)
    triples = tuple((n, schema.types[width + i], width + i) for i, n in enumerate(names))
    known = ((node.alias,),) if node.alias else ((call.name,),)
    joined = Scope([*scope.relations, Relation(known, triples)], queries.outer)
    if condition is not None and not (isinstance(condition, s.Literal) and condition.value is True):
        if outer:
            message = "LEFT JOIN of a table function must be ON TRUE"
            raise SqlNotSupported(message, at=condition.at)
        found = ExpressionBinder(queries.session, joined, clause="in ON").condition(condition)
        plan = l.Filter(plan.schema, plan, found)
    return plan, joined


def _unnest(kind: t.DataType, node: s.TableFunctionCall) -> tuple[Unnest, list[str], list[t.DataType]]:
    names: list[str]
    kinds: list[t.DataType]
    match kind:
        case t.ArrayType(element=element) | t.MultisetType(element=element):
            if isinstance(element, t.RowType):
                names = list(element.names)
                kinds = [k.with_null(k.null or element.null) for k in element.types]
            else:
                names, kinds = ["EXPR$0"], [element]
        case t.MapType(key=key, value=value):
            names, kinds = ["KEY", "VALUE"], [key, value]
        case _:
            message = f"UNNEST needs an ARRAY, MAP or MULTISET, not {kind}"
            raise SqlValidationError(message, at=node.call.at)
    if node.ordinality:
        names, kinds = [*names, "ORDINALITY"], [*kinds, t.INT.not_null()]
    return Unnest(node.ordinality), names, kinds


def _lateral(
    queries: QueryBinder, left: l.Plan, scope: Scope, node: s.DerivedTable, kind: str, joined: s.Join
) -> tuple[l.Plan, Scope]:
    plan, names = lateral_join(queries, left, scope, node, kind)
    width = len(left.schema)
    triples = tuple((n, plan.schema.types[width + i], width + i) for i, n in enumerate(names))
    made = Scope([*scope.relations, Relation(((node.alias,),) if node.alias else (), triples)], queries.outer)
    if joined.condition is not None and not (
        isinstance(joined.condition, s.Literal) and joined.condition.value is True
    ):
        found = ExpressionBinder(queries.session, made, clause="in ON").condition(joined.condition)
        plan = l.Filter(plan.schema, plan, found)
    return plan, made
