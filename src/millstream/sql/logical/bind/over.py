"""Calls with OVER, gathered while a SELECT is bound.

Promises: equal calls are computed once; frames are Flink's: RANGE UNBOUNDED PRECEDING with ORDER BY, else the whole
partition up to the current row.
Does not know: how frames are computed."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace

from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.expressions.nodes import AggregateCall, Expression, Lit, Ref, rewrite
from millstream.sql.functions.aggregates import resolve_aggregate
from millstream.sql.functions.over_functions import OVER_FUNCTIONS
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session, user_arguments
from millstream.sql.logical.bind.ordering import check_orderable
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class OverRef(Expression):
    """The result of a call with OVER, until the plan is built."""

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
    """The calls with OVER of one SELECT."""

    def __init__(self, session: Session, windows: dict[str, s.WindowSpec]) -> None:
        self._session = session
        self._windows = windows
        self.binder: ExpressionBinder | None = None
        self.calls: list[_Pending] = []

    def collect(self, node: s.Call) -> Expression:
        """Take a call in."""
        assert self.binder is not None
        assert node.over is not None
        spec = self._spec(node.over)
        binder = self.binder
        args = [binder.bind(arg) for arg in node.args]
        partition = [binder.bind(each) for each in spec.partition]
        order = [
            (binder.bind(i.expr), i.ascending, i.ascending if i.nulls_first is None else i.nulls_first)
            for i in spec.order
        ]
        for (each, _, _), item in zip(order, spec.order, strict=True):
            check_orderable(each.type, item.at)
        condition = None if node.filter is None else binder.condition(node.filter)
        call = self._call(node, args)
        lower, upper = self._frame(spec, node)
        pending = _Pending(call, args, partition, order, condition, spec.rows, lower, upper)
        self.calls.append(pending)
        return OverRef(call.type, len(self.calls) - 1)

    def _spec(self, spec: s.WindowSpec) -> s.WindowSpec:
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
        kinds = tuple(arg.type for arg in args)
        options: tuple[object, ...] = () if node.nulls is None else (node.nulls,)
        user = node.user or self._session.catalogs.function(node.path or (node.name,))
        if isinstance(user, UserFunction):
            args[:] = user_arguments(user, args, node.at)
            kinds = tuple(arg.type for arg in args)
            return AggregateCall(user.name, (), user.result_type or t.STRING, kinds, node.distinct, user=user)
        if node.name in ("LAG", "LEAD"):
            if not args:
                message = f"{node.name} needs a value"
                raise SqlValidationError(message, at=node.at)
            options = tuple(arg.value if isinstance(arg, Lit) else None for arg in args[1:])
        if node.name == "NTILE":
            options = (self._bucket_count(node, args),)
        if node.name in OVER_FUNCTIONS:
            kind = OVER_FUNCTIONS[node.name].result_type(kinds)
        else:
            kind = resolve_aggregate(node.name, kinds, node.at)
        if node.name == "LISTAGG" and len(args) > 1 and isinstance(args[1], Lit):
            options = (args[1].value,)
        return AggregateCall(node.name, (), kind, kinds, node.distinct, options=options)

    def _bucket_count(self, node: s.Call, args: list[Expression]) -> int:
        if len(args) != 1 or not isinstance(args[0], Lit) or not isinstance(args[0].value, int) or args[0].value < 1:
            message = "NTILE needs the number of buckets, as a literal above 0"
            raise SqlValidationError(message, at=node.at, hint=f"it is used as {OVER_FUNCTIONS['NTILE'].syntax}")
        return args[0].value

    def _frame(self, spec: s.WindowSpec, node: s.Call) -> tuple[int | None, int | None]:
        lower = None if spec.lower is None else self._bound(spec.lower, spec, node)
        upper = 0 if spec.upper is None else self._bound(spec.upper, spec, node)
        if upper is None or upper > 0:
            message = "a frame on a stream cannot reach beyond the current row"
            raise SqlNotSupported(message, at=node.at, hint="end it with CURRENT ROW")
        return lower, upper

    def _bound(self, bound: s.FrameBound, spec: s.WindowSpec, node: s.Call) -> int | None:
        if bound.kind == "CURRENT":
            return 0
        if bound.kind == "UNBOUNDED":
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
                message = "ROWS counts rows: give a whole number"
                raise SqlValidationError(message, at=bound.at)
        elif isinstance(offset.value, datetime.timedelta):
            size = offset.value // datetime.timedelta(milliseconds=1)
        else:
            message = "RANGE reaches over time: give an interval"
            raise SqlValidationError(message, at=bound.at)
        return -size if bound.side < 0 else size

    # ----------------------------------------------------------------------------------------------------- the plan

    def expressions(self) -> list[Expression]:
        """Everything the calls compute with, in order."""
        found: list[Expression] = []
        for each in self.calls:
            found += [*each.args, *each.partition, *(o[0] for o in each.order)]
            found += [] if each.filter is None else [each.filter]
        return found

    def replace(self, lowered: list[Expression]) -> None:
        """Other expressions in place of those of `expressions`."""
        rest = iter(lowered)
        for each in self.calls:
            each.args = [next(rest) for _ in each.args]
            each.partition = [next(rest) for _ in each.partition]
            each.order = [(next(rest), a, n) for _, a, n in each.order]
            each.filter = None if each.filter is None else next(rest)

    def build(
        self, plan: l.Plan, exprs: list[Expression], qualify: Expression | None
    ) -> tuple[l.Plan, list[Expression], Expression | None]:
        """The plan with the calls' results behind it, and the expressions over it."""
        columns: list[Expression] = list(plan.refs())

        def place(expression: Expression) -> int:
            if expression not in columns:
                columns.append(expression)
            return columns.index(expression)

        made: list[l.OverCall] = []
        for each in self.calls:
            args = each.args[:1] if each.call.function in ("LAG", "LEAD", "LISTAGG") else each.args
            call = replace(
                each.call,
                args=tuple(place(arg) for arg in args),
                arg_types=tuple(arg.type for arg in args),
                filter=None if each.filter is None else place(each.filter),
            )
            partition = tuple(place(p) for p in each.partition)
            order = tuple((place(o), a, n) for o, a, n in each.order)
            made.append(l.OverCall(call, partition, order, each.rows, each.lower, each.upper))
        base = plan
        if len(columns) > len(plan.schema):
            names = [*plan.schema.names, *(f"$x{i}" for i in range(len(columns) - len(plan.schema)))]
            base = l.project(plan, columns, names)
        results = [f"$w{i}" for i in range(len(made))]
        schema = t.row_of(
            l.unique([*base.schema.names, *results]), [*base.schema.types, *(c.call.type for c in made)], null=False
        )
        over = l.Over(schema, base, tuple(made))
        width = len(base.schema)

        def lower(expression: Expression) -> Expression:
            return rewrite(expression, lambda e: Ref(e.type, width + e.index) if isinstance(e, OverRef) else None)

        return over, [lower(e) for e in exprs], None if qualify is None else lower(qualify)
