"""Windows: the table functions TUMBLE, HOP, CUMULATE, SESSION, and the legacy ones of GROUP BY.

Promises: the time column is a time attribute, sizes are positive constants, a window of days or less fits its slide.
Does not know: how rows are put into windows."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.logical.bind.table_arguments import BindSource, arguments_of, table_of
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder

WINDOW_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
_PARAMETERS = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
_MS = datetime.timedelta(milliseconds=1)


def window_table(queries: QueryBinder, call: s.Call, bind: BindSource) -> l.Plan:
    """TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL ...)) and its kin."""
    given = _arguments(call)
    plan, partition = table_of(queries, call, given.get("DATA"), bind, "TABLE t, DESCRIPTOR(ts), ...")
    column = given.get("TIMECOL")
    if not isinstance(column, s.Descriptor) or len(column.columns) != 1:
        message = f"the second argument of {call.name} must be DESCRIPTOR(time column)"
        raise SqlValidationError(message, at=call.at)
    name = column.columns[0]
    if name not in plan.schema.names:
        message = f"there is no column '{name}'"
        raise SqlValidationError(message, at=column.at, hint=nearest(name, plan.schema.names))
    time = plan.schema.names.index(name)
    _check_time(plan.schema.types[time], name, call.name, column.at)
    binder = ExpressionBinder(queries.session, Scope(), clause="as the size of a window")
    sizes = {key: _millis(binder, given[key]) for key in ("SIZE", "SLIDE", "STEP", "GAP", "OFFSET") if key in given}
    size = sizes.get("SIZE", sizes.get("GAP", 0))
    slide = sizes.get("SLIDE", sizes.get("STEP", size))
    _check_sizes(call, size, slide)
    processing = t.attribute_of(plan.schema.types[time]) == t.PROCTIME
    spec = l.WindowSpec(call.name, time, size, slide, sizes.get("OFFSET", 0), processing, partition)
    return windowed(plan, spec)


def _arguments(call: s.Call) -> dict[str, s.Expr]:
    names = _PARAMETERS[call.name]
    found = arguments_of(call, names)
    required = [name for name in names if name != "OFFSET"]
    missing = [name for name in required if name not in found]
    if missing:
        message = f"{call.name} needs {', '.join(missing).lower()}"
        raise SqlValidationError(message, at=call.at, hint=f"its parameters are {', '.join(names)}")
    return found


def _check_time(kind: t.DataType, name: str, window: str, at: int) -> None:
    if t.attribute_of(kind) is None:
        message = f"{window} needs a time attribute; '{name}' is {kind}"
        hint = "declare WATERMARK FOR it in CREATE TABLE, or use a column AS PROCTIME()"
        raise SqlValidationError(message, at=at, hint=hint)


def _millis(binder: ExpressionBinder, node: s.Expr) -> int:
    found = binder.bind(node)
    if not isinstance(found, Lit) or not isinstance(found.value, datetime.timedelta):
        message = "the size of a window must be an interval of days or less"
        raise SqlValidationError(message, at=node.at, hint="as in INTERVAL '10' MINUTE")
    return int(found.value // _MS)


def _check_sizes(call: s.Call, size: int, slide: int) -> None:
    if size <= 0 or slide <= 0:
        message = "the size of a window must be positive"
        raise SqlValidationError(message, at=call.at)
    if call.name == "CUMULATE" and size % slide:
        message = f"the size of a CUMULATE window must be a multiple of its step: {size} ms and {slide} ms"
        raise SqlValidationError(message, at=call.at)


def windowed(plan: l.Plan, spec: l.WindowSpec) -> l.Plan:
    """The plan with the three columns of a window behind it."""
    kind = plan.schema.types[spec.time]
    attribute = t.PROCTIME if spec.processing else t.ROWTIME
    if isinstance(kind, t.LocalZonedTimestampType):
        time: t.DataType = t.LocalZonedTimestampType(3, attribute, null=False)
    else:
        time = t.TimestampType(3, attribute, null=False)
    edge = t.TimestampType(3, null=False)
    names = l.unique([*plan.schema.names, "window_start", "window_end", "window_time"])
    return l.WindowTable(t.row_of(names, [*plan.schema.types, edge, edge, time], null=False), plan, spec)


@dataclass
class GroupWindow:
    """TUMBLE, HOP or SESSION in GROUP BY."""

    spec: l.WindowSpec
    time_type: t.DataType

    def applied(self, plan: l.Plan, keys: list[Expression]) -> tuple[l.Plan, list[Expression]]:
        """The plan with the window's columns, which become the first keys; sessions are those of the other keys."""
        spec = self.spec
        if spec.kind == "SESSION" and keys:
            columns: list[Expression] = list(plan.refs())
            for key in keys:
                if key not in columns:
                    columns.append(key)
            names = [*plan.schema.names, *(f"$s{i}" for i in range(len(columns) - len(plan.schema)))]
            plan = l.project(plan, columns, names)
            spec = replace(spec, partition=tuple(columns.index(key) for key in keys))
        made = windowed(plan, spec)
        return made, list(made.refs()[-3:])

    def part_type(self, part: str) -> t.DataType:
        """The type of START, END, ROWTIME or PROCTIME."""
        if part in ("START", "END"):
            return t.TimestampType(3, null=False)
        return self.time_type

    def part(self, part: str, schema: t.RowType) -> Expression:
        """START, END, ROWTIME or PROCTIME over the grouped plan."""
        place = {"START": 0, "END": 1}.get(part, 2)
        return Ref(schema.types[place], place)


def group_window(binder: ExpressionBinder, plan: l.Plan, call: s.Call) -> GroupWindow:
    """A window of GROUP BY."""
    wanted = 3 if call.name == "HOP" else 2
    if len(call.args) < wanted:
        message = f"{call.name} in GROUP BY needs a time attribute and its sizes"
        raise SqlValidationError(message, at=call.at)
    column = binder.bind(call.args[0])
    if not isinstance(column, Ref) or t.attribute_of(column.type) is None:
        message = f"{call.name} needs a time attribute"
        raise SqlValidationError(message, at=call.args[0].at, hint="declare WATERMARK FOR it in CREATE TABLE")
    sizes = [_millis(binder, arg) for arg in call.args[1:]]
    size = sizes[1] if call.name == "HOP" else sizes[0]
    slide = sizes[0]
    offset = sizes[wanted - 1] if len(sizes) >= wanted else 0
    _check_sizes(call, size, slide)
    processing = t.attribute_of(column.type) == t.PROCTIME
    spec = l.WindowSpec(call.name, column.index, size, slide, offset, processing)
    made = windowed(plan, spec)
    return GroupWindow(spec, made.schema.types[-1])
