"""GROUP BY: groups, aggregates, grouping sets and legacy group windows.

Promises: after grouping, expressions may use what was grouped by and aggregates, nothing else.
Does not know: how groups are computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.expressions.nodes import AggregateCall, Apply, Choose, Expression, Lit, Ref, rewrite
from millstream.sql.functions.aggregates import resolve_aggregate
from millstream.sql.functions.user_functions import TABLE_AGGREGATE, UserFunction
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind import windows
from millstream.sql.logical.bind.expressions import ExpressionBinder, Hooks, is_aggregate, user_arguments
from millstream.sql.logical.bind.over import OverRef
from millstream.sql.logical.bind.scope import Outer, Scope
from millstream.sql.logical.window_columns import window_edges
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import duration_millis

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder

_GROUP_WINDOWS = ("TUMBLE", "HOP", "SESSION")


@dataclass(frozen=True)
class AggregateRef(Expression):
    """The result of an aggregate, until the plan is built."""

    index: int


@dataclass(frozen=True)
class GroupingRef(Expression):
    """GROUPING of some keys, until the plan is built."""

    keys: tuple[Expression, ...]


@dataclass(frozen=True)
class WindowRef(Expression):
    """A part of a legacy group window, until the plan is built."""

    part: str


class Grouping:
    """The grouping of one SELECT."""

    def __init__(self, queries: QueryBinder, node: s.Select, plan: l.Plan, scope: Scope) -> None:
        self._queries, self._node, self._plan, self._scope = queries, node, plan, scope
        self._session = queries.session
        self._binder = ExpressionBinder(self._session, scope, Hooks(), "in GROUP BY")
        self._inside = ExpressionBinder(self._session, scope, Hooks(), "inside an aggregate")
        self._calls: list[tuple[AggregateCall, tuple[Expression, ...], Expression | None, tuple[object, ...]]] = []
        self._window: windows.GroupWindow | None = None
        self._keys: list[Expression] = []
        self._sets: list[tuple[int, ...]] = []
        self.places: dict[int, int] = {}  # of columns that are keys, in the plan that `build` makes

    def is_needed(self, items: list[s.Expr], having: s.Expr | None, order: list[s.Expr]) -> bool:
        """Whether there is anything to group."""
        if self._node.group is not None:
            self._group_by(self._node.group)
            return True
        wanted = any(self._has_aggregate(each) for each in [*items, *([having] if having else []), *order])
        self._sets = [()]
        return wanted or having is not None

    def _has_aggregate(self, node: object) -> bool:
        if isinstance(node, s.Call):
            if node.over is None and is_aggregate(node, self._session.catalogs):
                return True
            parts: list[object] = [*node.args]
            if node.over is not None:
                parts += [*node.over.partition, *(o.expr for o in node.over.order)]
            return any(map(self._has_aggregate, parts))
        match node:
            case s.Cast(operand=operand) | s.FieldAccess(operand=operand):
                return self._has_aggregate(operand)
            case s.ElementAccess(operand=operand, index=index):
                return self._has_aggregate(operand) or self._has_aggregate(index)
            case s.Case(operand=operand, whens=whens, otherwise=otherwise):
                parts = [operand, otherwise, *(each for pair in whens for each in pair)]
                return any(map(self._has_aggregate, parts))
            case s.In(operand=operand, items=items):
                return any(map(self._has_aggregate, (operand, *items)))
        return False

    # ------------------------------------------------------------------------------------------------------ the keys

    def _group_by(self, items: tuple[s.GroupItem, ...]) -> None:
        choices: list[list[tuple[int, ...]]] = []
        for item in items:
            if item.kind == "PLAIN":
                (expr,) = item.sets[0]
                if isinstance(expr, s.Call) and expr.name == "ROW" and not expr.path:
                    choices.append([tuple(self._key(each) for each in expr.args)])
                    continue
                if isinstance(expr, s.Call) and expr.name in _GROUP_WINDOWS:
                    self._window = windows.group_window(self._binder, self._plan, expr)
                    continue
                choices.append([(self._key(expr),)])
                continue
            indexes = [tuple(self._key(each) for each in group) for group in item.sets]
            if item.kind == "SETS":
                choices.append(indexes)
            elif item.kind == "ROLLUP":
                choices.append([_flat(indexes[:n]) for n in range(len(indexes), -1, -1)])
            else:
                every = [c for n in range(len(indexes), -1, -1) for c in combinations(indexes, n)]
                choices.append([_flat(list(each)) for each in every])
        sets: list[tuple[int, ...]] = [()]
        for choice in choices:
            sets = [tuple(dict.fromkeys((*one, *other))) for one in sets for other in choice]
        self._sets = list(dict.fromkeys(sets))

    def _key(self, node: s.Expr) -> int:
        expression = self._binder.bind(node)
        if isinstance(expression, Lit):
            expression = replace(expression)
        if expression not in self._keys:
            self._keys.append(expression)
        return self._keys.index(expression)

    # ------------------------------------------------------------------------------------------------ what is gathered

    def aggregate(self, node: s.Call) -> Expression:
        """Take an aggregate call in."""
        args = [self._inside.bind(arg) for arg in node.args if not isinstance(arg, s.Symbol)]
        words = tuple(arg.word for arg in node.args if isinstance(arg, s.Symbol))
        condition = None if node.filter is None else self._inside.condition(node.filter)
        if node.order and node.name not in ("LISTAGG", "ARRAY_AGG"):
            message = f"ORDER BY inside {node.name} is not supported"
            raise SqlNotSupported(message, at=node.at)
        user = node.user or self._session.catalogs.function(node.path or (node.name,))
        options: tuple[object, ...] = words if node.nulls is None else (node.nulls,)
        if isinstance(user, UserFunction):
            args = user_arguments(user, args, node.at)
            kind = user.result_type or t.STRING
            if user.kind == TABLE_AGGREGATE:
                if node.user is None:
                    message = f"'{user.name}' is a table aggregate function, which makes several rows"
                    raise SqlValidationError(message, at=node.at, hint="use it in flat_aggregate of the Table API")
                kind = t.ArrayType(kind.not_null())
            call = AggregateCall(user.name, (), kind, tuple(a.type for a in args), node.distinct, user=user)
        else:
            if not args and not node.star and node.name != "COUNT":
                message = f"{node.name} needs a value"
                raise SqlValidationError(message, at=node.at)
            kind = resolve_aggregate(node.name, [arg.type for arg in args], node.at)
            if node.name == "LISTAGG" and len(args) == 2:
                if not isinstance(args[1], Lit):
                    message = "the separator of LISTAGG must be a constant"
                    raise SqlNotSupported(message, at=node.at)
                options, args = (args[1].value,), args[:1]
            grouped_all = bool(self._keys) or self._window is not None
            if not grouped_all and node.name not in ("COUNT",):
                kind = kind.nullable() if node.name not in ("COLLECT", "JSON_OBJECTAGG", "JSON_ARRAYAGG") else kind
            call = AggregateCall(node.name, (), kind, tuple(a.type for a in args), node.distinct, options=options)
            if node.name in ("SUM", "AVG", "MIN", "MAX") and grouped_all and condition is None and args:
                call = replace(call, type=kind.with_null(args[0].type.null))
        entry = (call, tuple(args), condition, options)
        if entry in self._calls:
            return AggregateRef(call.type, self._calls.index(entry))
        self._calls.append(entry)
        return AggregateRef(call.type, len(self._calls) - 1)

    def grouping(self, node: s.Call) -> Expression:
        """GROUPING, GROUPING_ID, GROUP_ID."""
        if node.name == "GROUP_ID":
            return Lit(t.BIGINT.not_null(), 0)
        return GroupingRef(t.BIGINT.not_null(), tuple(self._inside.bind(arg) for arg in node.args))

    def window_part(self, node: s.Call) -> Expression:
        """TUMBLE_START and its kin."""
        if self._window is None:
            message = f"{node.name} needs its window in GROUP BY"
            raise SqlValidationError(message, at=node.at)
        part = node.name.rpartition("_")[2]
        kind = self._window.part_type(part)
        return WindowRef(kind, part)

    # -------------------------------------------------------------------------------------------------------- the plan

    def build(self, exprs: list[Expression]) -> tuple[l.Plan, list[Expression]]:
        """The grouped plan, and the expressions over it."""
        plan = self._plan
        keys = list(self._keys)
        starts: list[Expression] = []
        if self._window is not None:
            plan, starts = self._window.applied(plan, keys)
        columns: list[Expression] = [*starts, *keys]
        offset = len(starts)
        self.places = {key.index: offset + i for i, key in enumerate(keys) if isinstance(key, Ref)}

        def place(expression: Expression) -> int:
            for i in range(offset + len(keys), len(columns)):
                if columns[i] == expression:
                    return i
            columns.append(expression)
            return len(columns) - 1

        calls: list[AggregateCall] = []
        for call, args, condition, _ in self._calls:
            where = None if condition is None else place(condition)
            calls.append(replace(call, args=tuple(place(arg) for arg in args), filter=where))
        names = [self._key_name(i, e) for i, e in enumerate(columns)]
        base: l.Plan = l.project(plan, columns, names)
        count = offset + len(keys)
        several = len(self._sets) > 1 or (len(self._sets) == 1 and len(self._sets[0]) < len(keys))
        key_places = tuple(range(count))
        expand_id: int | None = None
        if several:
            sets = tuple(tuple(offset + i for i in each) for each in self._sets)
            always = set.intersection(*(set(each) for each in self._sets)) if self._sets else set()
            kinds = [
                k.nullable() if offset <= i < count and i - offset not in always else k
                for i, k in enumerate(base.schema.types)
            ]
            schema = t.row_of([*base.schema.names, "$e"], [*kinds, t.BIGINT.not_null()], null=False)
            expand_id = len(base.schema)
            base = l.Expand(schema, base, tuple(range(offset, count)), sets)
            key_places = (*key_places, expand_id)
        out_names = l.unique([*(base.schema.names[i] for i in key_places), *(f"EXPR${i}" for i in range(len(calls)))])
        kinds = [t.plain(base.schema.types[i]) for i in key_places]
        for i in range(len(starts)):
            kinds[i] = base.schema.types[i]
        edges = window_edges(base)
        if {"start", "end"} <= {edges[i][0] for i in key_places if i in edges}:
            kinds = [
                base.schema.types[place] if place in edges and edges[place][0] == "time" else kind
                for place, kind in zip(key_places, kinds, strict=True)
            ]
        schema = t.row_of(out_names, [*kinds, *(call.type for call in calls)], null=False)
        grouped: l.Plan = l.Aggregate(schema, base, key_places, tuple(calls), self._ttl())
        return grouped, [self._lowered(each, starts, key_places, schema, expand_id) for each in exprs]

    def _ttl(self) -> int | None:
        """How long a STATE_TTL hint that names the source has groups live without a change."""
        names = {getattr(self._node.source, "alias", None), *getattr(self._node.source, "parts", ())[-1:]}
        for hint in self._node.hints:
            if hint.name == "STATE_TTL":
                for name, value in hint.options:
                    if name in names:
                        return duration_millis(value, hint.at)
        return None

    def _key_name(self, index: int, expression: Expression) -> str:
        if isinstance(expression, Ref) and index >= 0:
            names = [name for name, _, i in self._scope.columns() if i == expression.index]
            if names:
                return names[0]
        return f"$f{index}"

    def _lowered(
        self,
        expression: Expression,
        starts: list[Expression],
        places: tuple[int, ...],
        schema: t.RowType,
        expand_id: int | None,
    ) -> Expression:
        keys, offset, width = self._keys, len(starts), len(places)

        def change(each: Expression) -> Expression | None:
            if isinstance(each, AggregateRef):
                return Ref(schema.types[width + each.index], width + each.index)
            if isinstance(each, WindowRef):
                assert self._window is not None
                return self._window.part(each.part, schema)
            if isinstance(each, GroupingRef):
                return self._grouping_value(each, schema, width - 1 if expand_id is not None else None)
            if each in keys:
                index = offset + keys.index(each)
                return Ref(schema.types[index], index)
            if isinstance(each, Ref):
                known = [name for name, _, i in self._scope.columns() if i == each.index]
                message = f"column '{known[0] if known else each}' is neither grouped by nor inside an aggregate"
                at = _place(self._node, known[0]) if known else None
                raise SqlValidationError(message, at=self._node.at if at is None else at, hint="add it to GROUP BY")
            return each if isinstance(each, OverRef | Outer) else None

        return rewrite(expression, change)

    def _grouping_value(self, ref: GroupingRef, schema: t.RowType, place: int | None) -> Expression:
        if place is None:
            return Lit(t.BIGINT.not_null(), 0)
        args: list[Expression] = []
        for number, chosen in enumerate(self._sets):
            bits = 0
            for key in ref.keys:
                bits = bits * 2 + (0 if key in self._keys and self._keys.index(key) in chosen else 1)
            args += [_is(place, number), Lit(t.BIGINT.not_null(), bits)]
        return Choose(t.BIGINT.not_null(), (*args, Lit(t.BIGINT.not_null(), 0)))


def _is(place: int, number: int) -> Expression:
    kind = t.BIGINT.not_null()
    return Apply(t.BOOLEAN.not_null(), "=", (Ref(kind, place), Lit(kind, number)))


def _flat(groups: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(index for group in groups for index in group))


def _place(node: s.Select, column: str) -> int | None:
    """Where a column stands by itself among what is selected."""
    return next((e.at for e, _ in node.items if isinstance(e, s.Name) and e.parts[-1] == column), None)
