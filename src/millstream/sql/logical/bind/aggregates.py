"""Binding of GROUP BY: keys, aggregates, grouping sets and group windows.

Promises: after grouping, expressions may refer to keys and aggregates only.
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
from millstream.sql.logical.bind.expressions import (
    ExpressionBinder,
    Hooks,
    find_user_arguments,
    find_user_options,
    is_aggregate,
)
from millstream.sql.logical.bind.over import OverRef
from millstream.sql.logical.bind.scope import Outer, Scope
from millstream.sql.logical.window_columns import find_window_edges
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import parse_duration_millis

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder

_GROUP_WINDOWS = ("TUMBLE", "HOP", "SESSION")


@dataclass(frozen=True)
class AggregateRef(Expression):
    """Placeholder for the result of an aggregate, until the plan is built."""

    index: int


@dataclass(frozen=True)
class GroupingRef(Expression):
    """Placeholder for GROUPING of some keys, until the plan is built."""

    keys: tuple[Expression, ...]


@dataclass(frozen=True)
class WindowRef(Expression):
    """Placeholder for the start, end or time of a group window, until the plan is built."""

    part: str


class Grouping:
    """The grouping of one SELECT."""

    def __init__(self, queries: QueryBinder, node: s.Select, plan: l.Plan, scope: Scope) -> None:
        self._queries, self._node, self._plan, self._scope = queries, node, plan, scope
        self._session = queries.session
        self._binder = ExpressionBinder(self._session, scope, Hooks(), "in GROUP BY")
        self._inside = ExpressionBinder(self._session, scope, Hooks(), "inside an aggregate")
        self._calls: list[tuple[AggregateCall, tuple[Expression, ...], Expression | None, tuple[object, ...]]] = []
        self._window: windows.GroupWindow | windows.CountWindow | None = None
        self._keys: list[Expression] = []
        self._sets: list[tuple[int, ...]] = []
        self.key_columns: dict[int, int] = {}  # input column of a key -> column of the plan that `build` returns

    def is_needed(self, items: list[s.Expr], having: s.Expr | None, order: list[s.Expr]) -> bool:
        """Return whether the SELECT has GROUP BY, HAVING or aggregates."""
        if self._node.group is not None:
            self._group_by(self._node.group)
            return True
        has_aggregates = any(self._has_aggregate(expr) for expr in [*items, *([having] if having else []), *order])
        self._sets = [()]
        return has_aggregates or having is not None

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
                parts = [operand, otherwise, *(expr for pair in whens for expr in pair)]
                return any(map(self._has_aggregate, parts))
            case s.In(operand=operand, items=items):
                return any(map(self._has_aggregate, (operand, *items)))
        return False

    # ------------------------------------------------------------------------------------------------------ the keys

    def _group_by(self, items: tuple[s.GroupItem, ...]) -> None:
        choices: list[list[tuple[int, ...]]] = []
        for item in items:
            if item.type == "PLAIN":
                (expr,) = item.sets[0]
                if isinstance(expr, s.Call) and expr.name == "ROW" and not expr.path:
                    choices.append([tuple(self._bind_key(arg) for arg in expr.args)])
                    continue
                if isinstance(expr, s.Call) and expr.name in _GROUP_WINDOWS:
                    self._window = windows.group_window(self._binder, self._plan, expr)
                    continue
                choices.append([(self._bind_key(expr),)])
                continue
            indexes = [tuple(self._bind_key(key) for key in group) for group in item.sets]
            if item.type == "SETS":
                choices.append(indexes)
            elif item.type == "ROLLUP":
                choices.append([_flatten(indexes[:n]) for n in range(len(indexes), -1, -1)])
            else:
                subsets = [c for n in range(len(indexes), -1, -1) for c in combinations(indexes, n)]
                choices.append([_flatten(list(subset)) for subset in subsets])
        sets: list[tuple[int, ...]] = [()]
        for choice in choices:
            sets = [tuple(dict.fromkeys((*left, *right))) for left in sets for right in choice]
        self._sets = list(dict.fromkeys(sets))

    def _bind_key(self, node: s.Expr) -> int:
        expression = self._binder.bind(node)
        if isinstance(expression, Lit):
            expression = replace(expression)
        if expression not in self._keys:
            self._keys.append(expression)
        return self._keys.index(expression)

    # ----------------------------------------------------------------------------------------------- calls of SELECT

    def aggregate(self, node: s.Call) -> Expression:
        """Add an aggregate call and return a placeholder for its result."""
        args = [self._inside.bind(arg) for arg in node.args if not isinstance(arg, s.Symbol)]
        words = tuple(arg.word for arg in node.args if isinstance(arg, s.Symbol))
        condition = None if node.filter is None else self._inside.bind_condition(node.filter)
        if node.order and node.name not in ("LISTAGG", "ARRAY_AGG"):
            message = f"ORDER BY inside {node.name} is not supported"
            raise SqlNotSupported(message, at=node.at)
        user = node.user or self._session.catalogs.function(node.path or (node.name,))
        options: tuple[object, ...] = words if node.nulls is None else (node.nulls,)
        if isinstance(user, UserFunction):
            args = find_user_arguments(user, args, node.at)
            result_type = user.result_type or t.STRING
            if user.kind == TABLE_AGGREGATE:
                if node.user is None:
                    message = f"'{user.name}' is a table aggregate function, which returns several rows"
                    raise SqlValidationError(message, at=node.at, hint="use it in flat_aggregate of the Table API")
                result_type = t.ArrayType(result_type.not_null())
            options = find_user_options(user, args, self._session.zone)
            arg_types = tuple(a.type for a in args)
            call = AggregateCall(user.name, (), result_type, arg_types, node.distinct, options=options, user=user)
        else:
            if not args and not node.star and node.name != "COUNT":
                message = f"{node.name} needs a value"
                raise SqlValidationError(message, at=node.at)
            result_type = resolve_aggregate(node.name, [arg.type for arg in args], node.at)
            if node.name == "LISTAGG" and len(args) == 2:
                if not isinstance(args[1], Lit):
                    message = "the separator of LISTAGG must be a constant"
                    raise SqlNotSupported(message, at=node.at)
                options, args = (args[1].value,), args[:1]
            grouped_all = bool(self._keys) or self._window is not None
            if not grouped_all and node.name not in ("COUNT",):
                result_type = (
                    result_type.nullable()
                    if node.name not in ("COLLECT", "JSON_OBJECTAGG", "JSON_ARRAYAGG")
                    else result_type
                )
            call = AggregateCall(
                node.name, (), result_type, tuple(a.type for a in args), node.distinct, options=options
            )
            if node.name in ("SUM", "AVG", "MIN", "MAX") and grouped_all and condition is None and args:
                call = replace(call, type=result_type.with_null(args[0].type.null))
        entry = (call, tuple(args), condition, options)
        if entry in self._calls:
            return AggregateRef(call.type, self._calls.index(entry))
        self._calls.append(entry)
        return AggregateRef(call.type, len(self._calls) - 1)

    def grouping(self, node: s.Call) -> Expression:
        """Bind GROUPING, GROUPING_ID or GROUP_ID."""
        if node.name == "GROUP_ID":
            return Lit(t.BIGINT.not_null(), 0)
        return GroupingRef(t.BIGINT.not_null(), tuple(self._inside.bind(arg) for arg in node.args))

    def bind_window_property(self, node: s.Call) -> Expression:
        """Bind TUMBLE_START and the other functions of a group window."""
        if self._window is None:
            message = f"{node.name} needs its window in GROUP BY"
            raise SqlValidationError(message, at=node.at)
        part = node.name.rpartition("_")[2]
        data_type = self._window.part_type(part)
        return WindowRef(data_type, part)

    # -------------------------------------------------------------------------------------------------------- the plan

    def build(self, exprs: list[Expression]) -> tuple[l.Plan, list[Expression]]:
        """Return the grouped plan, and the expressions rewritten to refer to it."""
        plan = self._plan
        keys = list(self._keys)
        starts: list[Expression] = []
        if self._window is not None:
            plan, starts = self._window.apply(plan, keys)
        columns: list[Expression] = [*starts, *keys]
        offset = len(starts)
        self.key_columns = {key.index: offset + i for i, key in enumerate(keys) if isinstance(key, Ref)}

        def column_index(expression: Expression) -> int:
            for i in range(offset + len(keys), len(columns)):
                if columns[i] == expression:
                    return i
            columns.append(expression)
            return len(columns) - 1

        calls: list[AggregateCall] = []
        for call, args, condition, _ in self._calls:
            filter_column = None if condition is None else column_index(condition)
            calls.append(replace(call, args=tuple(column_index(arg) for arg in args), filter=filter_column))
        names = [self._name_key(i, e) for i, e in enumerate(columns)]
        base: l.Plan = l.project(plan, columns, names)
        count = offset + len(keys)
        has_sets = len(self._sets) > 1 or (len(self._sets) == 1 and len(self._sets[0]) < len(keys))
        key_indexes = tuple(range(count))
        expand_id: int | None = None
        if has_sets:
            sets = tuple(tuple(offset + i for i in grouping_set) for grouping_set in self._sets)
            always = set.intersection(*(set(grouping_set) for grouping_set in self._sets)) if self._sets else set()
            data_types = [
                data_type.nullable() if offset <= i < count and i - offset not in always else data_type
                for i, data_type in enumerate(base.schema.types)
            ]
            schema = t.row_of([*base.schema.names, "$e"], [*data_types, t.BIGINT.not_null()], null=False)
            expand_id = len(base.schema)
            base = l.Expand(schema, base, tuple(range(offset, count)), sets)
            key_indexes = (*key_indexes, expand_id)
        out_names = l.make_names_unique(
            [*(base.schema.names[i] for i in key_indexes), *(f"EXPR${i}" for i in range(len(calls)))]
        )
        data_types = [t.strip_time_attribute(base.schema.types[i]) for i in key_indexes]
        for i in range(len(starts)):
            data_types[i] = base.schema.types[i]
        edges = find_window_edges(base)
        if {"start", "end"} <= {edges[i][0] for i in key_indexes if i in edges}:
            data_types = [
                base.schema.types[index] if index in edges and edges[index][0] == "time" else data_type
                for index, data_type in zip(key_indexes, data_types, strict=True)
            ]
        schema = t.row_of(out_names, [*data_types, *(call.type for call in calls)], null=False)
        count_window = None
        if isinstance(self._window, windows.CountWindow):
            count_window = (self._window.size, self._window.slide)
        grouped: l.Plan = l.Aggregate(schema, base, key_indexes, tuple(calls), self._read_ttl(), count_window)
        return grouped, [self._lower(expr, starts, key_indexes, schema, expand_id) for expr in exprs]

    def _read_ttl(self) -> int | None:
        """Return the duration of a STATE_TTL hint that names the source."""
        names = {getattr(self._node.source, "alias", None), *getattr(self._node.source, "parts", ())[-1:]}
        for hint in self._node.hints:
            if hint.name == "STATE_TTL":
                for name, value in hint.options:
                    if name in names:
                        return parse_duration_millis(value, hint.at)
        return None

    def _name_key(self, index: int, expression: Expression) -> str:
        if isinstance(expression, Ref) and index >= 0:
            names = [name for name, _, i in self._scope.columns() if i == expression.index]
            if names:
                return names[0]
        return f"$f{index}"

    def _lower(
        self,
        expression: Expression,
        starts: list[Expression],
        key_indexes: tuple[int, ...],
        schema: t.RowType,
        expand_id: int | None,
    ) -> Expression:
        keys, offset, width = self._keys, len(starts), len(key_indexes)

        def change(node: Expression) -> Expression | None:
            if isinstance(node, AggregateRef):
                return Ref(schema.types[width + node.index], width + node.index)
            if isinstance(node, WindowRef):
                assert self._window is not None
                return self._window.part(node.part, schema)
            if isinstance(node, GroupingRef):
                return self._compute_grouping_value(node, schema, width - 1 if expand_id is not None else None)
            if node in keys:
                index = offset + keys.index(node)
                return Ref(schema.types[index], index)
            if isinstance(node, Ref):
                names = [name for name, _, i in self._scope.columns() if i == node.index]
                message = f"column '{names[0] if names else node}' is neither grouped by nor inside an aggregate"
                at = _find_column(self._node, names[0]) if names else None
                raise SqlValidationError(message, at=self._node.at if at is None else at, hint="add it to GROUP BY")
            return node if isinstance(node, OverRef | Outer) else None

        return rewrite(expression, change)

    def _compute_grouping_value(self, ref: GroupingRef, schema: t.RowType, set_column: int | None) -> Expression:
        if set_column is None:
            return Lit(t.BIGINT.not_null(), 0)
        args: list[Expression] = []
        for number, chosen in enumerate(self._sets):
            bits = 0
            for key in ref.keys:
                bits = bits * 2 + (0 if key in self._keys and self._keys.index(key) in chosen else 1)
            args += [_create_equals(set_column, number), Lit(t.BIGINT.not_null(), bits)]
        return Choose(t.BIGINT.not_null(), (*args, Lit(t.BIGINT.not_null(), 0)))


def _create_equals(column_index: int, number: int) -> Expression:
    bigint = t.BIGINT.not_null()
    return Apply(t.BOOLEAN.not_null(), "=", (Ref(bigint, column_index), Lit(bigint, number)))


def _flatten(groups: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(index for group in groups for index in group))


def _find_column(node: s.Select, column: str) -> int | None:
    """Return the position in the text of a column that is selected as it is."""
    return next((e.at for e, _ in node.items if isinstance(e, s.Name) and e.parts[-1] == column), None)
