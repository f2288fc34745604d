"""The operators that transcripts can name, such as `window(tumbling=10, reduce=sum)`.

Promises: each name is a function of this module; a record is a pair (key, value), and a result is [key, timestamp or
window, value] for every operator.
Does not know: steps, YAML, harnesses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.errors import UserError
from millstream.event_time.timers import TimeDomain
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.functions import (
    AggregateFunction,
    CoGroupFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from millstream.functions.aggregations import Aggregate, Aggregations, Avg, Count, Max, Min, Sum
from millstream.state_descriptors.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from millstream.state_descriptors.output_tag import OutputTag
from millstream.times import Duration, Time
from millstream.types.factory import TypeInformation, Types
from millstream.windows.assigners import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    GlobalWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from millstream.windows.continuous_triggers import ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger
from millstream.windows.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from millstream.windows.sessions import EventTimeSessionWindows, ProcessingTimeSessionWindows
from millstream.windows.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger, Trigger, TriggerResult
from millstream.windows.window import CountWindow, TimeWindow

LATE = OutputTag("late")
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
NAMED_PAIR = Types.ROW_NAMED(["key", "value"], [Types.STRING(), Types.LONG()])


class UnknownWord(UserError):
    """A transcript names something that does not exist."""

    def __init__(self, word: object, known: Iterable[str]) -> None:
        super().__init__(f"transcripts have no '{word}'", hint=f"use one of {', '.join(sorted(known))}")


@dataclass(frozen=True)
class Word:
    """A call in a transcript: name, arguments, named arguments.

    Example:
        >>> from millstream.testing.transcript import parse
        >>> parse("window(tumbling=10)")
        Word(name='window', arguments=(), named=(('tumbling', 10),))

    """

    name: str
    arguments: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class UnderTest:
    """A pipeline under test, and how its results are written in a transcript.

    Example:
        >>> operator(Word("window", named=(("tumbling", 10), ("reduce", "sum")))).inputs
        1

    """

    define: Callable[..., DataStream]
    inputs: int = 1
    input_type: TypeInformation | None = None
    side_outputs: tuple[OutputTag, ...] = ()
    result: Callable[[Any, int | None], list[Any]] = lambda value, time: [value[0], time, value[1]]

    @property
    def input_types(self) -> tuple[TypeInformation | None, ...]:
        """The types of all inputs."""
        return (self.input_type,) * self.inputs


def operator(word: Word) -> UnderTest:
    """Return the operator that a call names.

    Args:
        word: The call, as `parse` of `millstream.testing.transcript` returns it.

    Raises:
        UnknownWord: There is no such operator.

    """
    create = OPERATORS.get(word.name)
    if create is None:
        raise UnknownWord(word.name, OPERATORS)
    return create(*word.arguments, **dict(word.named))


def _get_key(record: Any) -> Any:
    return record[0]


def _choose_one(words: dict[str, Any], word: Any) -> Any:
    if word not in words:
        raise UnknownWord(word, words)
    return words[word]


# -------------------------------------------------------------------------------------------------- record by record

_MAPS: dict[str, Callable[[Any], Any]] = {"double": lambda record: (record[0], record[1] * 2)}
_FILTERS: dict[str, Callable[[Any], bool]] = {"even": lambda record: record[1] % 2 == 0}
_FLAT_MAPS: dict[str, Callable[[Any], Any]] = {"repeat": lambda record: [record] * record[1]}
_REDUCES: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda one, other: (one[0], one[1] + other[1]),
    "max": lambda one, other: (one[0], max(one[1], other[1])),
    "join": lambda one, other: (one[0], f"{one[1]}{other[1]}"),
}


def elementwise(*steps: Word, keyed: bool = False) -> UnderTest:
    """Chain map, filter and flat_map, on a keyed stream or not."""

    def define(stream: Any) -> DataStream:
        for step in steps:
            words = {"map": _MAPS, "filter": _FILTERS, "flat_map": _FLAT_MAPS}
            stream = stream.key_by(_get_key) if keyed else stream
            stream = getattr(stream, step.name)(_choose_one(words[step.name], *step.arguments))
        return stream  # type: ignore[no-any-return]

    return UnderTest(define)


def reduce(function: str) -> UnderTest:
    """A running reduce by key."""
    return UnderTest(lambda stream: stream.key_by(_get_key).reduce(_choose_one(_REDUCES, function)))


def timestamps(bound: int, idle: int | None = None) -> UnderTest:
    """Take the values as timestamps, with watermarks for bounded out-of-orderness."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    strategy = strategy.with_timestamp_assigner(lambda record, _: record[1])
    if idle is not None:
        strategy = strategy.with_idleness(Duration.of_millis(idle))
    return UnderTest(lambda stream: stream.assign_timestamps_and_watermarks(strategy))


# ----------------------------------------------------------------------------------------------------------- windows


def window(
    *,
    time: str = "event",
    offset: int = 0,
    trigger: Any = None,
    evictor: Word | None = None,
    allowed_lateness: int = 0,
    reduce: str | None = None,
    aggregate: str | None = None,
    process: str = "values",
    **assigner: Any,
) -> UnderTest:
    """Windows by key: tumbling=, sliding=[size, slide], session= (or by_value), count= (or [size, slide]), everything=.

    They use event or processing time, with a reduce, an aggregate or a process function."""

    def define(stream: Any) -> DataStream:
        windowed = stream.key_by(_get_key).window(_create_assigner(time, offset, **assigner))
        if trigger is not None:
            windowed = windowed.trigger(_trigger(trigger))
        if evictor is not None:
            windowed = windowed.evictor(_choose_one(EVICTORS, evictor.name)(*evictor.arguments))
        windowed = windowed.allowed_lateness(allowed_lateness).side_output_late_data(LATE)
        if reduce is not None:
            return windowed.reduce(_choose_one(_REDUCES, reduce), Single())  # type: ignore[no-any-return]
        if aggregate is not None:
            return windowed.aggregate(_choose_one({"average": Average}, aggregate)(), Single())  # type: ignore[no-any-return]
        return windowed.process(_choose_one({"values": Values, "visits": Visits}, process)())  # type: ignore[no-any-return]

    return UnderTest(define, side_outputs=(LATE,), result=lambda value, _: list(value))


def aggregates(*, columns: bool, by: str = "value", offset: int = 0, **words: Any) -> UnderTest:
    """Built-in aggregates over fixed windows, on columns or with the general operator; the results are the same."""
    functions: dict[str, Any] = {
        "sum": Sum,
        "min": Min,
        "max": Max,
        "avg": Avg,
        "count": Count,
        "rows": lambda _: Count(),
    }
    shapes = {name: words.pop(name) for name in ("tumbling", "sliding") if name in words}
    chosen: dict[str, Aggregate] = {name: _choose_one(functions, word)(by) for name, word in words.items()}

    def define(stream: Any) -> DataStream:
        keyed = stream.key_by("key") if columns else stream.key_by(lambda row: row["key"], Types.STRING())
        windowed = keyed.window(_create_assigner("event", offset, **shapes)).side_output_late_data(LATE)
        return windowed.aggregate(Aggregations(**chosen))  # type: ignore[no-any-return]

    def result(row: Any, _: int | None) -> list[Any]:
        values = list(row)
        return [values[0], f"{values[1]}..{values[2]}", values[3:] if len(values) > 4 else values[3]]

    return UnderTest(define, input_type=NAMED_PAIR, side_outputs=(LATE,), result=result)


def _create_assigner(time: str, offset: int, **shape: Any) -> WindowAssigner[Any, Any]:
    ((name, size),) = shape.items()
    event = _choose_one({"event": True, "processing": False}, time)
    shift = Time.milliseconds(offset)
    if name == "tumbling":
        assigner: Any = TumblingEventTimeWindows if event else TumblingProcessingTimeWindows
        return assigner.of(Time.milliseconds(size), shift)  # type: ignore[no-any-return]
    if name == "sliding":
        assigner = SlidingEventTimeWindows if event else SlidingProcessingTimeWindows
        return assigner.of(*map(Time.milliseconds, size), shift)  # type: ignore[no-any-return]
    if name == "session":
        assigner = EventTimeSessionWindows if event else ProcessingTimeSessionWindows
        if size == "by_value":
            return assigner.with_dynamic_gap(lambda record: record[1])  # type: ignore[no-any-return]
        return assigner.with_gap(Time.milliseconds(size))  # type: ignore[no-any-return]
    if name == "count":
        return CountTumblingWindowAssigner.of(size) if isinstance(size, int) else CountSlidingWindowAssigner.of(*size)
    everything = {
        "never": GlobalWindows.create,
        "end_of_stream": GlobalWindows.create_with_end_of_stream_trigger,
    }
    return _choose_one({"everything": lambda: _choose_one(everything, size)()}, name)()  # type: ignore[no-any-return]


def _trigger(word: Any) -> Trigger[Any, Any]:
    named = word if isinstance(word, Word) else Word(word)
    return _choose_one(TRIGGERS, named.name)(*named.arguments)  # type: ignore[no-any-return]


TRIGGERS: dict[str, Callable[..., Trigger[Any, Any]]] = {
    "event_time": EventTimeTrigger,
    "count": CountTrigger.of,
    "purging": lambda inner: PurgingTrigger.of(_trigger(inner)),
    "continuous": lambda interval: ContinuousEventTimeTrigger.of(Time.milliseconds(interval)),
    "continuous_processing": lambda interval: ContinuousProcessingTimeTrigger.of(Time.milliseconds(interval)),
    "threshold": lambda limit: Threshold(limit),
}
EVICTORS: dict[str, Callable[..., Evictor[Any, Any]]] = {
    "count": CountEvictor.of,
    "time": lambda size, after=False: TimeEvictor.of(Time.milliseconds(size), after),
    "delta": lambda limit, after=False: DeltaEvictor.of(limit, lambda one, last: abs(one[1] - last[1]), after),
}


@dataclass(frozen=True)
class Threshold(Trigger[Any, Any]):
    """A user-defined trigger: fires and purges when the sum of the values of a window reaches `limit`."""

    limit: int

    def _sum(self, ctx: Any) -> Any:
        add = ReducingStateDescriptor("sum", lambda one, other: one + other, Types.LONG())
        return ctx.get_partitioned_state(add)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        total = self._sum(ctx)
        total.add(element[1])
        ctx.register_event_time_timer(window.max_timestamp())
        if total.get() < self.limit:
            return TriggerResult.CONTINUE
        total.clear()
        return TriggerResult.FIRE_AND_PURGE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        ctx.merge_partitioned_state(ReducingStateDescriptor("sum", lambda one, other: one + other, Types.LONG()))
        ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Any) -> None:
        self._sum(ctx).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


def _format_window(window: Any) -> str:
    if isinstance(window, TimeWindow):
        return f"{window.start}..{window.end}"
    return f"#{window.id}" if isinstance(window, CountWindow) else "all"


class Values(ProcessWindowFunction[Any, Any, Any, Any]):
    """All values of the window."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, _format_window(context.window()), [value for _, value in elements]


class Single(ProcessWindowFunction[Any, Any, Any, Any]):
    """The single value of a window with a reduce or an aggregate."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        for value in elements:
            yield key, _format_window(context.window()), value[1] if isinstance(value, tuple) else value


class Visits(ProcessWindowFunction[Any, Any, Any, Any]):
    """How often this window fired, in window state, and how often windows of this key fired, in global state."""

    _firings = ValueStateDescriptor("firings", Types.LONG())

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        counts = []
        for store in (context.window_state(), context.global_state()):
            firings = store.get_state(self._firings)
            firings.update((firings.value() or 0) + 1)
            counts.append(firings.value())
        yield key, _format_window(context.window()), counts

    def clear(self, context: Any) -> None:
        context.window_state().get_state(self._firings).clear()


class Average(AggregateFunction):
    """The mean of the values; its accumulator is (sum, count)."""

    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


# -------------------------------------------------------------------------------------------------- state and timers


_METHODS = {"replace": "update"}


class Commands:
    """Executes the commands in a record: `event 10` registers a timer, `delete event 10` deletes it, `put 3` and `get`
    use state.

    A semicolon separates several commands."""

    state: Any

    def run(self, text: str, ctx: Any) -> Iterable[Any]:
        """Yield the results of the commands of one record."""
        for command in text.split(";"):
            name, *arguments = command.split()
            key, timers = ctx.get_current_key(), ctx.timer_service()
            if name == "delete":
                getattr(timers, f"delete_{arguments[0]}_time_timer")(int(arguments[1]))
            elif name in ("event", "processing"):
                getattr(timers, f"register_{name}_time_timer")(int(arguments[0]))
            elif name == "watermark":
                yield key, timers.current_watermark()
            elif name == "say":
                yield key, " ".join(arguments)
            else:
                yield from ((key, result) for result in self.use(name, [_number(argument) for argument in arguments]))

    def use(self, name: str, arguments: list[Any]) -> Iterable[Any]:
        """Yield the result of a method of the state, if it has one."""
        method, arguments = _METHODS.get(name, name), [arguments] if name == "replace" else arguments
        result = getattr(self.state, method)(*arguments)
        if name in ("get", "value", "contains", "is_empty"):
            yield list(result) if hasattr(result, "__next__") else result
        elif name in ("items", "keys", "values"):
            yield sorted(list(item) if isinstance(item, tuple) else item for item in result)

    def fired(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        """Yield the results of a timer: its key, time domain and time."""
        name = "event" if ctx.time_domain() is TimeDomain.EVENT_TIME else "processing"
        yield ctx.get_current_key(), f"{name} {timestamp}"


def _number(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text


class KeyedCommands(Commands, KeyedProcessFunction):
    """Commands on one keyed stream, on one state."""

    def __init__(self, descriptor: StateDescriptor) -> None:
        self._descriptor = descriptor

    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(self._descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield from self.run(value[1], ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield from self.fired(timestamp, ctx)


class ConnectedCommands(Commands, KeyedCoProcessFunction):
    """Commands on two keyed streams that share one state."""

    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("shared", Types.PICKLED_BYTE_ARRAY()))

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield from self.run(value[1], ctx)

    process_element2 = process_element1

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield from self.fired(timestamp, ctx)


RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
MINE = ValueStateDescriptor("mine", Types.LONG())


class BroadcastCommands(Commands, KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    """Commands on a keyed stream that reads rules; the broadcast stream changes rules or the state of every key."""

    def open(self, runtime_context: Any) -> None:
        self.mine = runtime_context.get_state(MINE)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        command, key = value[1], ctx.get_current_key()
        rules = ctx.get_broadcast_state(RULES)
        if command == "rules":
            yield key, sorted(list(rule) for rule in rules.items())
        elif command == "mine":
            yield key, self.mine.value()
        elif command.startswith("rule "):
            yield key, rules.get(command.split()[1])
        elif command.startswith("put "):
            self.mine.update(int(command.split()[1]))
        else:
            yield from self.run(command, ctx)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        command, *arguments = value[1].split()
        rules = ctx.get_broadcast_state(RULES)
        if command == "put":
            rules.put(arguments[0], int(arguments[1]))
        elif command == "remove":
            rules.remove(arguments[0])
        elif command == "clear":
            rules.clear()
        elif command == "add":
            ctx.apply_to_keyed_state(MINE, lambda _, state: state.update(state.value() + int(arguments[0])))
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), sorted(list(rule) for rule in ctx.get_broadcast_state(RULES).items())
        yield from self.fired(timestamp, ctx)


def state(
    state_type: str = "value", *, ttl: int | None = None, update: str = "write", show: str = "living"
) -> UnderTest:
    """A keyed process function that executes the commands in records, with timers and one state with or without TTL."""
    descriptor: Any = _choose_one(_STATES, state_type)()
    if ttl is not None:
        config = StateTtlConfig.new_builder(Time.milliseconds(ttl))
        update_types, visible = StateTtlConfig.UpdateType, StateTtlConfig.StateVisibility
        config.set_update_type(
            _choose_one({"write": update_types.OnCreateAndWrite, "read": update_types.OnReadAndWrite}, update)
        )
        shown = {"living": visible.NeverReturnExpired, "expired": visible.ReturnExpiredIfNotCleanedUp}
        config.set_state_visibility(_choose_one(shown, show))
        descriptor.enable_time_to_live(config.build())
    return UnderTest(lambda stream: stream.key_by(_get_key).process(KeyedCommands(descriptor)))


_STATES: dict[str, Callable[[], StateDescriptor]] = {
    "value": lambda: ValueStateDescriptor("it", Types.LONG()),
    "untyped": lambda: ValueStateDescriptor("it", Types.PICKLED_BYTE_ARRAY()),
    "list": lambda: ListStateDescriptor("it", Types.LONG()),
    "map": lambda: MapStateDescriptor("it", Types.STRING(), Types.LONG()),
    "reducing": lambda: ReducingStateDescriptor("it", lambda one, other: one + other, Types.LONG()),
    "aggregating": lambda: AggregatingStateDescriptor("it", PlainAverage(), Types.PICKLED_BYTE_ARRAY()),
}


class PlainAverage(Average):
    """The mean of plain numbers."""

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1


def connected() -> UnderTest:
    """Two keyed streams with one function."""

    def define(first: Any, second: Any) -> DataStream:
        return first.connect(second).key_by(_get_key, _get_key).process(ConnectedCommands())  # type: ignore[no-any-return]

    return UnderTest(define, inputs=2)


def broadcast() -> UnderTest:
    """A keyed stream and a broadcast stream."""

    def define(first: Any, second: Any) -> DataStream:
        return first.key_by(_get_key).connect(second.broadcast(RULES)).process(BroadcastCommands())  # type: ignore[no-any-return]

    return UnderTest(define, inputs=2)


# ------------------------------------------------------------------------------------------------------------- joins


class JoinedValues(ProcessJoinFunction):
    """The values of a pair."""

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterable[Any]:
        yield left[0], [left[1], right[1]]


def interval_join(*, between: list[int]) -> UnderTest:
    """An interval join of two keyed streams."""

    def define(first: Any, second: Any) -> DataStream:
        join = first.key_by(_get_key).interval_join(second.key_by(_get_key)).between(*between)
        join = join.side_output_left_late_data(LATE).side_output_right_late_data(LATE)
        return join.process(JoinedValues())  # type: ignore[no-any-return]

    return UnderTest(define, inputs=2, side_outputs=(LATE,))


class GroupedValues(CoGroupFunction):
    """The values of both groups."""

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any]:
        groups = [[*first], [*second]]
        yield (groups[0] or groups[1])[0][0], [[value for _, value in group] for group in groups]


def co_group(*, time: str = "event", allowed_lateness: int = 0, **assigner: Any) -> UnderTest:
    """A co-group of two keyed streams in windows."""

    def define(first: Any, second: Any) -> DataStream:
        grouped = (
            first.co_group(second).where(_get_key).equal_to(_get_key).window(_create_assigner(time, 0, **assigner))
        )
        return grouped.allowed_lateness(allowed_lateness).apply(GroupedValues())  # type: ignore[no-any-return]

    return UnderTest(define, inputs=2)


OPERATORS: dict[str, Callable[..., UnderTest]] = {
    create.__name__: create
    for create in (
        elementwise,
        reduce,
        timestamps,
        window,
        aggregates,
        state,
        connected,
        broadcast,
        interval_join,
        co_group,
    )
}

__all__: Sequence[str] = ("OPERATORS", "UnderTest", "UnknownWord", "Word", "operator")
