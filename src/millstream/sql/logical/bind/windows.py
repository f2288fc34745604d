"""Binding of windows: the table functions TUMBLE, HOP, CUMULATE and SESSION, and group windows of GROUP BY.

Promises: the time column is a time attribute; sizes are positive constants; a CUMULATE size is a multiple of its step.
Does not know: how rows are assigned to windows."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.options import RUNTIME_MODE
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.logical.bind.table_arguments import BindSource, bind_table_argument, read_arguments
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.times import MILLISECOND

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder

ROW_INTERVAL = "$ROWS"
"""The function of the Table API for sizes in rows."""

WINDOW_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
_PARAMETERS = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}


def bind_window_table(queries: QueryBinder, call: s.Call, bind: BindSource) -> l.Plan:
    """Bind TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL ...)) and the other window functions."""
    arguments = _read_arguments(call)
    plan, partition = bind_table_argument(queries, call, arguments.get("DATA"), bind, "TABLE t, DESCRIPTOR(ts), ...")
    column = arguments.get("TIMECOL")
    if not isinstance(column, s.Descriptor) or len(column.columns) != 1:
        message = f"the second argument of {call.name} must be DESCRIPTOR(time column)"
        raise SqlValidationError(message, at=call.at)
    name = column.columns[0]
    if name not in plan.schema.names:
        message = f"there is no column '{name}'"
        raise SqlValidationError(message, at=column.at, hint=nearest(name, plan.schema.names))
    time = plan.schema.names.index(name)
    _check_time(queries.session, plan.schema.types[time], name, call.name, column.at)
    binder = ExpressionBinder(queries.session, Scope(), clause="as the size of a window")
    sizes = {
        key: _read_millis(binder, arguments[key])
        for key in ("SIZE", "SLIDE", "STEP", "GAP", "OFFSET")
        if key in arguments
    }
    size = sizes.get("SIZE", sizes.get("GAP", 0))
    slide = sizes.get("SLIDE", sizes.get("STEP", size))
    _check_sizes(call, size, slide)
    processing = t.get_time_attribute(plan.schema.types[time]) == t.PROCTIME
    spec = l.WindowSpec(call.name, time, size, slide, sizes.get("OFFSET", 0), processing, partition)
    return add_window_columns(plan, spec)


def _read_arguments(call: s.Call) -> dict[str, s.Expr]:
    names = _PARAMETERS[call.name]
    arguments = read_arguments(call, names)
    required = [name for name in names if name != "OFFSET"]
    missing = [name for name in required if name not in arguments]
    if missing:
        message = f"{call.name} needs {', '.join(missing).lower()}"
        raise SqlValidationError(message, at=call.at, hint=f"its parameters are {', '.join(names)}")
    return arguments


def _can_be_window_time(session: Session, data_type: t.DataType) -> bool:
    """Return whether a column can assign rows to windows: a time attribute, or in batch mode every timestamp."""
    if t.get_time_attribute(data_type) is not None:
        return True
    is_batch = str(session.options(RUNTIME_MODE.key)).upper() == "BATCH"
    return is_batch and isinstance(data_type, t.TimestampType | t.LocalZonedTimestampType)


def _check_time(session: Session, data_type: t.DataType, name: str, window: str, at: int) -> None:
    if not _can_be_window_time(session, data_type):
        message = f"{window} needs a time attribute; '{name}' is {data_type}"
        hint = "declare WATERMARK FOR it in CREATE TABLE, or use a column AS PROCTIME()"
        raise SqlValidationError(message, at=at, hint=hint)


def _read_millis(binder: ExpressionBinder, node: s.Expr) -> int:
    size = binder.bind(node)
    if not isinstance(size, Lit) or not isinstance(size.value, datetime.timedelta):
        message = "the size of a window must be an interval of days or less"
        raise SqlValidationError(message, at=node.at, hint="write an interval such as INTERVAL '10' MINUTE")
    return int(size.value // MILLISECOND)


def _check_sizes(call: s.Call, size: int, slide: int) -> None:
    if size <= 0 or slide <= 0:
        message = "the size of a window must be positive"
        raise SqlValidationError(message, at=call.at)
    if call.name == "CUMULATE" and size % slide:
        message = f"the size of a CUMULATE window must be a multiple of its step: {size} ms and {slide} ms"
        raise SqlValidationError(message, at=call.at)


def add_window_columns(plan: l.Plan, spec: l.WindowSpec) -> l.Plan:
    """Append window_start, window_end and window_time to a plan."""
    column_type = plan.schema.types[spec.time]
    attribute = t.PROCTIME if spec.processing else t.ROWTIME
    if isinstance(column_type, t.LocalZonedTimestampType):
        time: t.DataType = t.LocalZonedTimestampType(3, attribute, null=False)
    else:
        time = t.TimestampType(3, attribute, null=False)
    edge = t.TimestampType(3, null=False)
    names = l.make_names_unique([*plan.schema.names, "window_start", "window_end", "window_time"])
    return l.WindowTable(t.row_of(names, [*plan.schema.types, edge, edge, time], null=False), plan, spec)


@dataclass
class GroupWindow:
    """TUMBLE, HOP or SESSION in GROUP BY."""

    spec: l.WindowSpec
    time_type: t.DataType

    def apply(self, plan: l.Plan, keys: list[Expression]) -> tuple[l.Plan, list[Expression]]:
        """Append the window columns to a plan and return them, as the first keys; sessions are per value of the other
        keys."""
        spec = self.spec
        if spec.kind == "SESSION" and keys:
            columns: list[Expression] = list(plan.refs())
            for key in keys:
                if key not in columns:
                    columns.append(key)
            names = [*plan.schema.names, *(f"$s{i}" for i in range(len(columns) - len(plan.schema)))]
            plan = l.project(plan, columns, names)
            spec = replace(spec, partition=tuple(columns.index(key) for key in keys))
        with_window = add_window_columns(plan, spec)
        return with_window, list(with_window.refs()[-3:])

    def part_type(self, part: str) -> t.DataType:
        """Return the type of START, END, ROWTIME or PROCTIME."""
        if part in ("START", "END"):
            return t.TimestampType(3, null=False)
        return self.time_type

    def part(self, part: str, schema: t.RowType) -> Expression:
        """Return START, END, ROWTIME or PROCTIME as a reference to the grouped plan."""
        column_index = {"START": 0, "END": 1}.get(part, 2)
        return Ref(schema.types[column_index], column_index)


@dataclass
class CountWindow:
    """A window of a number of rows, which only the Table API has."""

    size: int
    slide: int

    def apply(self, plan: l.Plan, keys: list[Expression]) -> tuple[l.Plan, list[Expression]]:
        """Return the plan as it is: rows are counted where they are aggregated."""
        return plan, []

    def part_type(self, part: str) -> t.DataType:
        """Refuse START and END: such a window has no time."""
        message = f"a window of rows has no {part.lower()}"
        raise SqlValidationError(message, hint="select keys and aggregates only")

    def part(self, part: str, schema: t.RowType) -> Expression:
        """Refuse START and END: such a window has no time."""
        raise AssertionError(part)


def group_window(binder: ExpressionBinder, plan: l.Plan, call: s.Call) -> GroupWindow | CountWindow:
    """Bind TUMBLE, HOP or SESSION of GROUP BY."""
    arg_count = 3 if call.name == "HOP" else 2
    if len(call.args) < arg_count:
        message = f"{call.name} in GROUP BY needs a time attribute and its sizes"
        raise SqlValidationError(message, at=call.at)
    column = binder.bind(call.args[0])
    if not isinstance(column, Ref) or not _can_be_window_time(binder.session, column.type):
        message = f"{call.name} needs a time attribute"
        raise SqlValidationError(message, at=call.args[0].at, hint="declare WATERMARK FOR it in CREATE TABLE")
    if isinstance(call.args[1], s.Call) and call.args[1].name == ROW_INTERVAL:
        return _count_window(call, column.type)
    sizes = [_read_millis(binder, arg) for arg in call.args[1:]]
    size = sizes[1] if call.name == "HOP" else sizes[0]
    slide = sizes[0]
    offset = sizes[arg_count - 1] if len(sizes) >= arg_count else 0
    _check_sizes(call, size, slide)
    processing = t.get_time_attribute(column.type) == t.PROCTIME
    spec = l.WindowSpec(call.name, column.index, size, slide, offset, processing)
    with_window = add_window_columns(plan, spec)
    return GroupWindow(spec, with_window.schema.types[-1])


def _count_window(call: s.Call, time_type: t.DataType) -> CountWindow:
    sizes = [
        arg.args[0].value
        for arg in call.args[1:]
        if isinstance(arg, s.Call) and arg.name == ROW_INTERVAL and isinstance(arg.args[0], s.Literal)
    ]
    if len(sizes) != len(call.args) - 1 or not all(isinstance(size, int) and size > 0 for size in sizes):
        message = "size and slide of a window of rows must both be numbers of rows above 0"
        raise SqlValidationError(message, at=call.at, hint="write row_interval(10) for both")
    if t.get_time_attribute(time_type) != t.PROCTIME:
        message = "a window of rows needs a processing-time attribute, because rows are counted as they arrive"
        raise SqlValidationError(message, at=call.at, hint="use a column AS PROCTIME(), or a window of time")
    return CountWindow(sizes[-1], sizes[0])
