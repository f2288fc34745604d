"""Process table functions: user-defined operators with state and timers.

Promises: state and timers belong to the values of PARTITION BY; a named timer replaces the one of the same name; rows
of timers have the time of the timer as their `rowtime`. State entries are stored field by field, so that fields can be
added to a class.
Does not know: how calls are bound, or how inputs are partitioned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from millstream.errors import UserError
from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.context import KeyedStates
from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.timers import Timers
from millstream.sql.columns import INSERT, accept_none, create_external_converter, create_internal_converter
from millstream.sql.evaluation.evaluate import evaluate_constant
from millstream.sql.expressions.nodes import Expression
from millstream.sql.expressions.stable_text import format_columns, format_expression
from millstream.sql.functions import process_functions as p
from millstream.sql.functions.user_functions import UserFunction, WrongResult
from millstream.sql.operators.base import TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.operators.timestamps import to_millis, to_timestamp_type
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.state_descriptors.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from millstream.times import Time
from millstream.types.copies import copy_value
from millstream.types.factory import Types
from millstream.types.row import Row, RowKind

_UNNAMED = ""
_LAST_MILLIS = 253_402_300_799_999  # the end of the year 9999: the last watermark is beyond what a datetime holds


class TimersNotSupported(UserError):
    """A process table function registers a timer that can never fire."""

    def __init__(self, function: str) -> None:
        super().__init__(
            f"function '{function}' registers a timer, which needs a table with set semantics, on_timer and on_time",
            hint="define on_timer(), and call the function with on_time => DESCRIPTOR(column)",
        )


@dataclass(frozen=True)
class ProcessTableSpec(SqlOperatorSpec):
    """A call of a process table function.

    `partitions` has the columns of PARTITION BY of each input, `times` the column of `on_time`. With `passes_columns`,
    results follow all columns of the input, else those of PARTITION BY of all inputs."""

    inputs: tuple[t.RowType, ...]
    output: t.RowType
    function: UserFunction
    args: tuple[Expression, ...]
    partitions: tuple[tuple[int, ...], ...]
    times: tuple[int | None, ...]
    passes_columns: bool
    uid: str | None = None
    zone: str = "UTC"
    ttl: int | None = None

    @property
    def has_time(self) -> bool:
        """Whether the output has the column `rowtime`."""
        return any(time is not None for time in self.times)

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on: the uid of the call, or its function, and the keys."""
        keys = [
            format_columns(columns, texts, schema)
            for columns, texts, schema in zip(self.partitions, plan.inputs, plan.schemas, strict=True)
        ]
        fixed = {"function": self.uid or self.function.name, "key": " & ".join(keys)}
        return StateTraits(fixed, {"arguments": ", ".join(format_expression(arg, ()) for arg in self.args)})

    def column_texts(self, plan: PlanContext) -> list[str]:
        """Return the names of the output columns."""
        return [f"{self.uid or self.function.name}.{name}" for name in plan.output.names]

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return ProcessTableOperator(context, self)


class TimeContext:
    """The time of a row or timer, and the timers of its partition. Times are datetimes, as in rows.

    Example:
        >>> from datetime import timedelta
        >>> from typing import Annotated
        >>> from millstream.common import Row
        >>> from millstream.table.udf import ArgumentTrait, ProcessTableFunction
        >>> class Reminder(ProcessTableFunction):
        ...     def eval(self, ctx: ProcessContext, input: Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE]):
        ...         time = ctx.time_context()
        ...         time.register_on_time("reminder", time.time() + timedelta(hours=1))
        ...     def on_timer(self, ctx: ProcessContext):
        ...         yield ctx.current_timer()

    """

    def __init__(self, operator: ProcessTableOperator) -> None:
        self._operator = operator

    def time(self) -> datetime | None:
        """Return the time of the row or the timer; None if the table of the row has no `on_time`."""
        return self._operator.to_time(self._operator.millis)

    def current_watermark(self) -> datetime | None:
        """Return the watermark of the subtask; None before the first one."""
        watermark = self._operator.watermark
        return None if watermark == MIN_WATERMARK else self._operator.to_time(watermark)

    def register_on_time(self, *name_and_time: Any) -> None:
        """Register a timer: `register_on_time(time)`, or `register_on_time(name, time)` to replace the one so named.

        Args:
            *name_and_time: The time, or a name and the time.

        """
        *names, time = name_and_time
        self._operator.register(names[0] if names else _UNNAMED, time)

    def clear_timer(self, name_or_time: Any) -> None:
        """Delete the timer of a name, or the unnamed timer of a time.

        Args:
            name_or_time: The name, or the time of an unnamed timer.

        """
        self._operator.delete(name_or_time)

    def clear_all_timers(self) -> None:
        """Delete all timers of the partition."""
        self._operator.clear_timers()


class ProcessContext:
    """What `eval` and `on_timer` get as `ctx`: time, timers, state and the tables of the call.

    Example:
        >>> from typing import Annotated
        >>> from millstream.common import Row
        >>> from millstream.table.udf import ArgumentTrait, ProcessTableFunction
        >>> class Keys(ProcessTableFunction):
        ...     def eval(self, ctx: ProcessContext, input: Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE]):
        ...         yield str(ctx.partition_by_columns("input"))

    """

    def __init__(self, operator: ProcessTableOperator) -> None:
        self._operator = operator

    def time_context(self) -> TimeContext:
        """Return the time context of the current row or timer."""
        return TimeContext(self._operator)

    def partition_by_columns(self, table: str) -> list[str]:
        """Return the names of the columns by which a table argument is partitioned.

        Args:
            table: The name of the table argument.

        """
        return self._operator.partition_names(table)

    def current_timer(self) -> str | None:
        """Return the name of the timer that fires; None for an unnamed timer, and in `eval`."""
        return self._operator.timer or None

    def clear_state(self, name: str) -> None:
        """Delete a state entry of the partition.

        Args:
            name: The name of the entry: that of its parameter of `eval`.

        """
        self._operator.clear_state([name])

    def clear_all_state(self) -> None:
        """Delete all state entries of the partition."""
        self._operator.clear_state(self._operator.state_names)

    def clear_all_timers(self) -> None:
        """Delete all timers of the partition."""
        self._operator.clear_timers()

    def clear_all(self) -> None:
        """Delete all state entries and timers of the partition."""
        self.clear_all_state()
        self.clear_all_timers()


class ProcessTableOperator(TableOperator):
    """Calls `eval` for each row, and `on_timer` for each timer that is due."""

    def __init__(self, context: OperatorContext, spec: ProcessTableSpec) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        self._function = spec.function.function
        assert spec.function.signature is not None
        self._signature = spec.function.signature
        states = KeyedStates(context, context.scope)
        self._views = {
            entry.name: states._view(_create_descriptor(entry, spec.ttl)) for entry in self._signature.states
        }
        is_set = any(table.is_set for table in self._signature.tables)
        self._timers = Timers(context.state, "event") if is_set else None
        self._timer_names = context.state.table("timers/names", Types.PICKLED_BYTE_ARRAY())
        self._rows_of = [_create_row_constructor(schema) for schema in spec.inputs]
        prefix = self._count_prefix_columns()
        result_types = spec.output.types[prefix : len(spec.output) - spec.has_time]
        self._converters = [accept_none(create_internal_converter(data_type)) for data_type in result_types]
        self._call = ProcessContext(self)
        self._arguments: list[Any] = []
        self._cleared: set[str] = set()
        self.millis: int | None = None
        self.timer = _UNNAMED

    @property
    def state_names(self) -> list[str]:
        """The names of the state entries."""
        return list(self._views)

    def _count_prefix_columns(self) -> int:
        spec = self._spec
        return len(spec.inputs[0]) if spec.passes_columns else sum(map(len, spec.partitions))

    def open(self) -> None:
        """Open the function, and compute the scalar arguments."""
        super().open()
        self._arguments = []
        for arg in self._spec.args:
            value, convert = (
                evaluate_constant(arg, now=self.context.now, zone=self.zone),
                create_external_converter(arg.type),
            )
            self._arguments.append(value if convert is None or value is None else convert(value))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Call `eval` for each row of an input."""
        spec, scope = self._spec, self.context.scope
        rows, row_kinds = read_rows_with_kinds(batch, spec.inputs[side])
        time, partition, create_row = spec.times[side], spec.partitions[side], self._rows_of[side]
        for row, row_kind in zip(rows, row_kinds, strict=True):
            key = scope.key = get_key(row, partition)
            self.millis = (
                None if time is None or row[time] is None else to_millis(row[time], spec.inputs[side].types[time])
            )
            self.timer = _UNNAMED
            value = create_row(row)
            value.set_row_kind(RowKind(row_kind))
            prefix = row if spec.passes_columns else self._partition_values(key)
            self._collect(self._evaluate(side, value), prefix, None if time is None else row[time], value)
        self.flush()

    def _partition_values(self, key: Any) -> tuple[Any, ...]:
        width = len(self._spec.partitions[0])
        values = () if width == 0 else (key,) if width == 1 else tuple(key)
        return values * len(self._spec.partitions)

    def _evaluate(self, side: int, value: Row) -> Any:
        scalars, tables = iter(self._arguments), 0
        arguments: list[Any] = []
        for argument in self._signature.arguments:
            if argument.is_table:
                arguments.append(value if tables == side else None)
                tables += 1
            else:
                arguments.append(next(scalars))
        context = [self._call] if self._signature.takes_context else []
        return self._call_with_state(lambda states: self._function.eval(*context, *states, *arguments), value)

    def _call_with_state(self, call: Any, record: Any) -> list[Any]:
        """Call the function with the state of the partition, and write the state back."""
        self._cleared.clear()
        states = [
            self._views[entry.name]
            if entry.form in (p.ListState, p.MapState)
            else p.load_state(entry, self._views[entry.name].value())
            for entry in self._signature.states
        ]
        try:
            results = _to_list(call(states))
        except (Exception, SystemExit) as problem:
            raise rowwise.failure(self._spec.function.name, problem, self.context.scope.key, record) from problem
        for entry, state in zip(self._signature.states, states, strict=True):
            if entry.form not in (p.ListState, p.MapState) and entry.name not in self._cleared:
                self._views[entry.name].update(p.store_state(state))
        return results

    def _collect(self, results: list[Any], prefix: tuple[Any, ...], time: Any, record: Any) -> None:
        name, suffix = self._spec.function.name, (time,) if self._spec.has_time else ()
        for result in results:
            row = tuple(result) if isinstance(result, tuple | list | Row) else (result,)
            if len(row) != len(self._converters):
                problem = f"it returned {row!r}, which has {len(row)} columns, not {len(self._converters)}"
                raise WrongResult(name, problem)
            try:
                values = tuple(convert(v) for convert, v in zip(self._converters, row, strict=True))
            except (TypeError, ValueError):
                problem = f"it returned {row!r} for {record!r}, which does not match its declared result type"
                raise WrongResult(name, problem) from None
            row_kind = result.get_row_kind().value if isinstance(result, Row) else INSERT
            self.put(row_kind, (*prefix, *values, *suffix))

    # ------------------------------------------------------------------------------------------------ state and timers

    def clear_state(self, names: Iterable[str]) -> None:
        """Delete state entries of the partition; changes of the current call are not written."""
        for name in names:
            self._views[name].clear()
            self._cleared.add(name)

    def partition_names(self, table: str) -> list[str]:
        """Return the names of the columns by which a table argument is partitioned."""
        side = [argument.name for argument in self._signature.tables].index(table)
        return [self._spec.inputs[side].names[i] for i in self._spec.partitions[side]]

    def to_time(self, millis: int | None) -> datetime | None:
        """Convert milliseconds to the type of the time attribute."""
        return None if millis is None else to_timestamp_type(min(millis, _LAST_MILLIS), self.output.types[-1])

    def register(self, name: str, time: datetime) -> None:
        """Register a timer of the partition."""
        if self._timers is None or not self._spec.has_time or not self._signature.has_timers:
            raise TimersNotSupported(self._spec.function.name)
        key = self.context.scope.key
        if name != _UNNAMED:
            self.delete(name)
        names = self._list_names()
        if name not in names:
            self._timer_names.put(None, key, [*names, name])
        self._timers.register(name, key, to_millis(time, self.output.types[-1]))

    def delete(self, name_or_time: str | datetime) -> None:
        """Delete the timer of a name, or the unnamed timer of a time."""
        if self._timers is None:
            return
        key = self.context.scope.key
        if isinstance(name_or_time, datetime):
            self._timers.delete(_UNNAMED, key, to_millis(name_or_time, self.output.types[-1]))
            return
        times = self._timers.table.get(name_or_time, key)
        for time in [] if times is ABSENT else list(times):
            self._timers.delete(name_or_time, key, time)

    def clear_timers(self) -> None:
        """Delete all timers of the partition."""
        for name in self._list_names():
            self.delete(name)
        self._timer_names.put(None, self.context.scope.key, ABSENT)

    def _list_names(self) -> list[str]:
        names = self._timer_names.get(None, self.context.scope.key)
        return [] if names is ABSENT else names

    def on_watermark(self, watermark: int) -> None:
        """Call `on_timer` for each timer that is due, then pass the watermark on."""
        self.context.memory.watermark = watermark
        if self._timers is not None:
            for time, name, key in self._timers.due(watermark):
                self.context.scope.key, self.millis, self.timer = key, time, name
                self._fire(time, name, key)
            self.flush()
        super().on_watermark(watermark)

    def _fire(self, time: int, name: str, key: Any) -> None:
        context = [self._call] if self._signature.timer_takes_context else []
        names = [registered for registered in self._list_names() if registered != name or self._has_timer(name, key)]
        self._timer_names.put(None, key, names or ABSENT)
        results = self._call_with_state(
            lambda states: self._function.on_timer(*context, *states), f"timer {name or time}"
        )
        self._collect(results, self._partition_values(key), self.to_time(time), f"timer {name or time}")

    def _has_timer(self, name: str, key: Any) -> bool:
        return self._timers is not None and self._timers.table.get(name, key) is not ABSENT


def _create_descriptor(entry: p.StateEntry, ttl: int | None) -> StateDescriptor:
    descriptor: StateDescriptor
    if entry.form is p.ListState:
        descriptor = ListStateDescriptor(entry.name, Types.PICKLED_BYTE_ARRAY())
    elif entry.form is p.MapState:
        descriptor = MapStateDescriptor(entry.name, Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY())
    else:
        descriptor = ValueStateDescriptor(entry.name, Types.PICKLED_BYTE_ARRAY())
    millis = ttl if entry.ttl is None else entry.ttl
    if millis:
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(millis)).build())
    return descriptor


def _create_row_constructor(schema: t.RowType) -> Callable[[tuple[Any, ...]], Row]:
    """Return the conversion of a row of a table to a named Row."""
    converters, names = [create_external_converter(data_type) for data_type in schema.types], schema.names

    def create(row: tuple[Any, ...]) -> Row:
        values = [v if convert is None or v is None else convert(v) for convert, v in zip(converters, row, strict=True)]
        created = Row(*values)
        created.set_field_names(names)
        return created

    return create


def _to_list(results: Any) -> list[Any]:
    """Return what `eval` or `on_timer` returned as a list: None, rows in a list or generator, or one row."""
    if results is None:
        return []
    many = hasattr(results, "__iter__") and not isinstance(results, str | tuple | Row)
    return list(map(copy_value, results)) if many else [results]  # a generator may change a row after it yielded it
