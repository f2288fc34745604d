"""Binding of function calls with OVER, collected while a SELECT is bound.

Promises: equal calls are computed once; frames are Flink's: RANGE UNBOUNDED PRECEDING with ORDER BY, else the whole
partition up to the current row.
Does not know: how frames are computed."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace

from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import AggregateCall, Expression, Lit, Ref, rewrite
from millstream.sql.functions.aggregates import resolve_aggregate
from millstream.sql.functions.over_functions import OVER_FUNCTIONS
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session, find_user_arguments, find_user_options
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.times import MILLISECOND


@dataclass(frozen=True)
class OverRef(Expression):
    """Placeholder for the result of an OVER call, until the plan is built."""

    index: int


@dataclass
class _Pending:
    call: AggregateCall
    args: list[Expression]
    partition: list[Expression]
    order: list[tuple[Expression, bool, bool]]
    filter: Expression | None
    rows: bool
    lower: int | None
    upper: int | None


class OverCollector:
    """The OVER calls of one SELECT."""

    def __init__(self, session: Session, windows: dict[str, s.WindowSpec]) -> None:
        self._session = session
        self._windows = windows
        self.binder: ExpressionBinder | None = None
        self.calls: list[_Pending] = []

    def collect(self, node: s.Call) -> Expression:
        """Add a call and return a placeholder for its result."""
        assert self.binder is not None
        assert node.over is not None
        spec = self._create_spec(node.over)
        binder = self.binder
        args = [binder.bind(arg) for arg in node.args]
        partition = [binder.bind(expr) for expr in spec.partition]
        order = [
            (binder.bind(i.expr), i.ascending, i.ascending if i.nulls_first is None else i.nulls_first)
            for i in spec.order
        ]
        for (key, _, _), item in zip(order, spec.order, strict=True):
            check_orderable(key.type, item.at)
        condition = None if node.filter is None else binder.bind_condition(node.filter)
        call = self._call(node, args)
        lower, upper = self._read_frame(spec, node)
        pending = _Pending(call, args, partition, order, condition, spec.rows, lower, upper)
        self.calls.append(pending)
        return OverRef(call.type, len(self.calls) - 1)

    def _create_spec(self, spec: s.WindowSpec) -> s.WindowSpec:
        if spec.name is None:
            return spec
        if spec.name not in self._windows:
            message = f"there is no window '{spec.name}'"
            raise SqlValidationError(message, at=spec.at, hint="declare it in WINDOW ... AS (...)")
        base = self._windows[spec.name]
        return replace(
            base,
            partition=spec.partition or base.partition,
            order=spec.order or base.order,
            rows=spec.rows or base.rows,
            lower=spec.lower or base.lower,
            upper=spec.upper or base.upper,
        )

    def _call(self, node: s.Call, args: list[Expression]) -> AggregateCall:
        arg_types = tuple(arg.type for arg in args)
        options: tuple[object, ...] = () if node.nulls is None else (node.nulls,)
        user = node.user or self._session.catalogs.function(node.path or (node.name,))
        if isinstance(user, UserFunction):
            args[:] = find_user_arguments(user, args, node.at)
            arg_types = tuple(arg.type for arg in args)
            result_type, options = user.result_type or t.STRING, find_user_options(user, args, self._session.zone)
            return AggregateCall(user.name, (), result_type, arg_types, node.distinct, options=options, user=user)
        if node.name in ("LAG", "LEAD"):
            if not args:
                message = f"{node.name} needs a value"
                raise SqlValidationError(message, at=node.at)
            options = tuple(arg.value if isinstance(arg, Lit) else None for arg in args[1:])
        if node.name == "NTILE":
            options = (self._read_bucket_count(node, args),)
        if node.name in OVER_FUNCTIONS:
            result_type = OVER_FUNCTIONS[node.name].result_type(arg_types)
        else:
            result_type = resolve_aggregate(node.name, arg_types, node.at)
        if node.name == "LISTAGG" and len(args) > 1 and isinstance(args[1], Lit):
            options = (args[1].value,)
        return AggregateCall(node.name, (), result_type, arg_types, node.distinct, options=options)

    def _read_bucket_count(self, node: s.Call, args: list[Expression]) -> int:
        if len(args) != 1 or not isinstance(args[0], Lit) or not isinstance(args[0].value, int) or args[0].value < 1:
            message = "NTILE needs the number of buckets, as a literal above 0"
            raise SqlValidationError(message, at=node.at, hint=f"it is used as {OVER_FUNCTIONS['NTILE'].syntax}")
        return args[0].value

    def _read_frame(self, spec: s.WindowSpec, node: s.Call) -> tuple[int | None, int | None]:
        lower = None if spec.lower is None else self._read_bound(spec.lower, spec, node)
        return lower, 0 if spec.upper is None else self._read_bound(spec.upper, spec, node)

    def _read_bound(self, bound: s.FrameBound, spec: s.WindowSpec, node: s.Call) -> int | None:
        if bound.type == "CURRENT":
            return 0
        if bound.type == "UNBOUNDED":
            return None
        assert bound.offset is not None
        assert self.binder is not None
        offset = self.binder.bind(bound.offset)
        if not isinstance(offset, Lit):
            message = "the offset of a frame must be a constant"
            raise SqlValidationError(message, at=bound.at)
        if spec.rows:
            size = offset.value
            if not isinstance(size, int):
                message = "the offset of a ROWS frame must be an integer"
                raise SqlValidationError(message, at=bound.at)
        elif isinstance(offset.value, datetime.timedelta):
            size = offset.value // MILLISECOND
        else:
            message = "the offset of a RANGE frame must be an interval"
            raise SqlValidationError(message, at=bound.at)
        return -size if bound.side < 0 else size

    # ----------------------------------------------------------------------------------------------------- the plan

    def expressions(self) -> list[Expression]:
        """Return all expressions of the calls, in the order that `replace` expects."""
        exprs: list[Expression] = []
        for pending in self.calls:
            exprs += [*pending.args, *pending.partition, *(o[0] for o in pending.order)]
            exprs += [] if pending.filter is None else [pending.filter]
        return exprs

    def replace(self, lowered: list[Expression]) -> None:
        """Replace the expressions of the calls by others in the same order."""
        rest = iter(lowered)
        for pending in self.calls:
            pending.args = [next(rest) for _ in pending.args]
            pending.partition = [next(rest) for _ in pending.partition]
            pending.order = [(next(rest), a, n) for _, a, n in pending.order]
            pending.filter = None if pending.filter is None else next(rest)

    def build(
        self, plan: l.Plan, exprs: list[Expression], qualify: Expression | None
    ) -> tuple[l.Plan, list[Expression], Expression | None]:
        """Append the results of the calls to the plan, and rewrite expressions to refer to them."""
        columns: list[Expression] = list(plan.refs())

        def column_index(expression: Expression) -> int:
            if expression not in columns:
                columns.append(expression)
            return columns.index(expression)

        over_calls: list[l.OverCall] = []
        for pending in self.calls:
            args = pending.args[:1] if pending.call.function in ("LAG", "LEAD", "LISTAGG") else pending.args
            call = replace(
                pending.call,
                args=tuple(column_index(arg) for arg in args),
                arg_types=tuple(arg.type for arg in args),
                filter=None if pending.filter is None else column_index(pending.filter),
            )
            partition = tuple(column_index(p) for p in pending.partition)
            order = tuple((column_index(o), a, n) for o, a, n in pending.order)
            over_calls.append(l.OverCall(call, partition, order, pending.rows, pending.lower, pending.upper))
        base = plan
        if len(columns) > len(plan.schema):
            names = [*plan.schema.names, *(f"$x{i}" for i in range(len(columns) - len(plan.schema)))]
            base = l.project(plan, columns, names)
        results = [f"$w{i}" for i in range(len(over_calls))]
        schema = t.row_of(
            l.make_names_unique([*base.schema.names, *results]),
            [*base.schema.types, *(c.call.type for c in over_calls)],
            null=False,
        )
        over = l.Over(schema, base, tuple(over_calls))
        width = len(base.schema)

        def lower(expression: Expression) -> Expression:
            return rewrite(expression, lambda e: Ref(e.type, width + e.index) if isinstance(e, OverRef) else None)

        return over, [lower(e) for e in exprs], None if qualify is None else lower(qualify)


def check_orderable(data_type: t.DataType, at: int) -> None:
    """Refuse a type whose values have no order."""
    if not data_type.ordered:
        message = f"ORDER BY cannot be applied to {data_type.text()}: its values have no order"
        raise SqlValidationError(message, at=at)
