"""Small programs for simulations, whose output depends on their input only.

Promises: the programs are bounded, have no late records and do not depend on how two streams are interleaved; each
uses another part of the system.
Does not know: engines, faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.event_time.watermarks import TimestampAssigner, WatermarkStrategy
from millstream.functions import (
    AggregateFunction,
    CheckpointedFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from millstream.functions.aggregations import Aggregations, Count, Max, Sum
from millstream.state_descriptors.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from millstream.state_descriptors.output_tag import OutputTag
from millstream.times import Duration, Time
from millstream.types.factory import TypeInformation, Types
from millstream.windows.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from millstream.windows.evictors import CountEvictor
from millstream.windows.sessions import EventTimeSessionWindows
from millstream_chaos.samples import entities, iterations, learning, sample_input
from millstream_chaos.samples.splits_source import EVENT, SplitsSource

Program = Callable[[StreamExecutionEnvironment], DataStream]
_times: ContextVar[int] = ContextVar("times", default=1)
NAMED_EVENT = Types.ROW_NAMED(["key", "at", "value"], [Types.STRING(), Types.LONG(), Types.LONG()])


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


@dataclass(frozen=True)
class Longer:
    """A program with `times` times as much input."""

    program: Program
    times: int

    def __call__(self, env: StreamExecutionEnvironment) -> DataStream:
        """Build the program."""
        before = _times.set(self.times)
        try:
            return self.program(env)
        finally:
            _times.reset(before)


def strategy(shake: int = 25) -> WatermarkStrategy:
    """Return a strategy for records that are out of order by at most `shake` ms."""
    return WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(shake)).with_timestamp_assigner(
        EventTime()
    )


def one_split(env: StreamExecutionEnvironment, count: int = sample_input.ONE_SPLIT) -> DataStream:
    """Return a stream in order: one split with one reader."""
    events = sample_input.events(count, times=_times.get())
    return env.from_source(SplitsSource((events,)), strategy(), "one").set_parallelism(1)


def many_splits(env: StreamExecutionEnvironment, data_type: TypeInformation = EVENT) -> DataStream:
    """Return a stream of splits that end at different times; the slow ones are far behind in event time."""
    return env.from_source(SplitsSource(sample_input.many_splits(_times.get()), data_type), strategy(), "many")


def by_key(value: Any) -> str:
    """Return the key of an event."""
    return str(value[0])


class Collect(ProcessWindowFunction[Any, Any, Any, Any]):
    """Emits the sorted values of a window, and the number of windows of the key so far."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        seen = context.global_state().get_state(ValueStateDescriptor("windows", Types.LONG()))
        seen.update((seen.value() or 0) + 1)
        window = context.window()
        yield key, window.start, window.end, sorted(value[2] for value in elements), seen.value()


class Average(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Pairs(KeyedCoProcessFunction):
    """Emits every pair of a left and a right value of one key."""

    def open(self, runtime_context: Any) -> None:
        self.left = runtime_context.get_list_state(ListStateDescriptor("left", Types.LONG()))
        self.right = runtime_context.get_list_state(ListStateDescriptor("right", Types.LONG()))

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.left.add(value[2])
        return [(ctx.get_current_key(), value[2], other) for other in self.right.get()]

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.right.add(value[2])
        return [(ctx.get_current_key(), other, value[2]) for other in self.left.get()]


RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class ApplyRules(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    """Keeps values until the end, and then emits the rules that match each of them."""

    def open(self, runtime_context: Any) -> None:
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.waiting.add(value[2])
        ctx.timer_service().register_event_time_timer(1 << 50)
        return ()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        rules = ctx.get_broadcast_state(RULES)
        if value[1] == 0:
            rules.remove(value[0])
        else:
            rules.put(value[0], value[1])
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        rules = ctx.get_broadcast_state(RULES)
        for value in sorted(self.waiting.get()):
            yield ctx.get_current_key(), value, sorted(name for name, by in rules.items() if value % by == 0)


ODD = OutputTag("odd", EVENT)


class Part(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield (ODD, value) if value[2] % 2 else value


class Running(KeyedProcessFunction):
    """Emits the running sum of a key, for records in order."""

    def open(self, runtime_context: Any) -> None:
        add = ReducingStateDescriptor("sum", lambda one, other: one + other, Types.LONG())
        self.sum = runtime_context.get_reducing_state(add)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.sum.add(value[2])
        yield ctx.get_current_key(), value[2], self.sum.get()


def keyed_timers(env: StreamExecutionEnvironment) -> DataStream:
    """Keyed state and event-time timers."""
    return many_splits(env).key_by(by_key, Types.STRING()).process(LateCount())


class LateCount(KeyedProcessFunction):
    """Registers a timer at the end of 50 ms for each record; a timer emits the number of records in its 50 ms."""

    def open(self, runtime_context: Any) -> None:
        self.at = runtime_context.get_map_state(MapStateDescriptor("at", Types.LONG(), Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        end = value[1] // 50 * 50 + 49
        self.at.put(end, (self.at.get(end) or 0) + 1)
        ctx.timer_service().register_event_time_timer(end)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), timestamp, self.at.get(timestamp)
        self.at.remove(timestamp)


def ordered_timers(env: StreamExecutionEnvironment) -> DataStream:
    """Running state of an ordered stream."""
    return one_split(env).key_by(by_key, Types.STRING()).process(Running())


def tumbling(env: StreamExecutionEnvironment) -> DataStream:
    """Tumbling windows with state of their own over the windows of a key."""
    return many_splits(env).key_by(by_key).window(TumblingEventTimeWindows.of(Time.milliseconds(60))).process(Collect())


def sliding(env: StreamExecutionEnvironment) -> DataStream:
    """Sliding windows with an aggregate."""
    windows = SlidingEventTimeWindows.of(Time.milliseconds(80), Time.milliseconds(40))
    return many_splits(env).key_by(by_key).window(windows).aggregate(Average(), WithStart())


class WithStart(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        return [(key, context.window().start, *elements)]


def session(env: StreamExecutionEnvironment) -> DataStream:
    """Sessions, which merge."""
    stream = many_splits(env).filter(lambda value: value[2] % 3 != 0)
    return stream.key_by(by_key).window(EventTimeSessionWindows.with_gap(Time.milliseconds(30))).process(Collect())


def columns(env: StreamExecutionEnvironment) -> DataStream:
    """Built-in aggregates on whole columns."""
    stream = many_splits(env, NAMED_EVENT).key_by("key")
    windows = TumblingEventTimeWindows.of(Time.milliseconds(60))
    return stream.window(windows).aggregate(Aggregations(total=Sum("value"), n=Count(), top=Max("value")))


def reduce(env: StreamExecutionEnvironment) -> DataStream:
    """A running reduce of an ordered stream."""
    return one_split(env).key_by(by_key).reduce(lambda one, other: (one[0], max(one[1], other[1]), one[2] + other[2]))


def connect(env: StreamExecutionEnvironment) -> DataStream:
    """Two connected keyed streams."""
    left, right = one_split(env, 20), many_splits(env).filter(lambda value: value[2] < 9)
    met: DataStream = left.connect(right).key_by(by_key, by_key, Types.STRING()).process(Pairs())
    return met


def union(env: StreamExecutionEnvironment) -> DataStream:
    """Two streams as one, rebalanced, then counted in windows."""
    both = one_split(env).union(many_splits(env)).rebalance().map(lambda value: (value[0], value[1], 1), EVENT)
    return both.key_by(by_key).window(TumblingEventTimeWindows.of(Time.milliseconds(100))).process(Collect())


def broadcast(env: StreamExecutionEnvironment) -> DataStream:
    """A keyed stream with a broadcast stream of rules."""
    rules = env.from_collection(list(sample_input.RULES), Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = many_splits(env).key_by(by_key, Types.STRING())
    ruled: DataStream = keyed.connect(rules.broadcast(RULES)).process(ApplyRules())
    return ruled


def side_output(env: StreamExecutionEnvironment) -> DataStream:
    """A stream that is split by a side output; one part is windowed, and both are united again."""
    parted = many_splits(env).process(Part(), EVENT)
    odd = parted.get_side_output(ODD)
    counted = odd.key_by(by_key).window(TumblingEventTimeWindows.of(Time.milliseconds(90))).process(Collect())
    return parted.map(str).union(counted.map(str))


def count_window(env: StreamExecutionEnvironment) -> DataStream:
    """Windows by count: the trigger has state."""
    return one_split(env).key_by(by_key).count_window(3).reduce(lambda one, other: (one[0], one[1], one[2] + other[2]))


def reminders(env: StreamExecutionEnvironment) -> DataStream:
    """Timers that are deleted and registered again, after another keyed operator."""
    counted = one_split(env).key_by(by_key, Types.STRING()).process(Running(), EVENT)
    return counted.map(lambda value: value, EVENT).key_by(lambda value: value[1] % 3).process(Total())


class Total(KeyedProcessFunction):
    """Emits all values of a key at the end of the input."""

    def open(self, runtime_context: Any) -> None:
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.all.add(value[2])
        ctx.timer_service().delete_event_time_timer(1 << 40)
        ctx.timer_service().register_event_time_timer(1 << 40)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), timestamp, sorted(self.all.get())
        self.all.clear()


class Near(ProcessJoinFunction):
    """Emits the values of a pair, with its timestamp."""

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterable[Any]:
        yield left[0], left[2], right[2], ctx.get_timestamp()


def interval_join(env: StreamExecutionEnvironment) -> DataStream:
    """An interval join of two keyed streams."""
    left, right = one_split(env, 20).key_by(by_key), many_splits(env).key_by(by_key)
    met: DataStream = left.interval_join(right).between(Time.milliseconds(-30), Time.milliseconds(10)).process(Near())
    return met


def co_group(env: StreamExecutionEnvironment) -> DataStream:
    """Sessions over two streams."""
    left, right = one_split(env, 20), many_splits(env).filter(lambda value: value[2] % 2 == 0)
    windowed = (
        left.co_group(right)
        .where(by_key)
        .equal_to(by_key)
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(30)))
    )
    return windowed.apply(lambda *groups: [tuple(sorted(value[2] for value in group) for group in groups)])


def evicted(env: StreamExecutionEnvironment) -> DataStream:
    """Windows with an evictor that keeps the last two records."""
    keyed = one_split(env).key_by(by_key).window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
    return keyed.evictor(CountEvictor.of(2)).process(Collect())


class Numbering(MapFunction, CheckpointedFunction):
    """Numbers records in order; the number is a field that is kept in operator state."""

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("number", Types.LONG()))
        self.number = next(iter(self.state.get()), 0)

    def map(self, value: Any) -> Any:
        self.number += 1
        return self.number, value[2]

    def snapshot_state(self, context: Any) -> None:
        self.state.update([self.number])


def operator_state(env: StreamExecutionEnvironment) -> DataStream:
    """A function with operator state."""
    return one_split(env).map(Numbering()).set_parallelism(1)


_PLAIN: dict[str, Program] = {
    program.__name__: program
    for program in (
        keyed_timers,
        ordered_timers,
        tumbling,
        sliding,
        session,
        columns,
        reduce,
        connect,
        union,
        broadcast,
        side_output,
        count_window,
        reminders,
        interval_join,
        co_group,
        evicted,
        operator_state,
    )
}
PROGRAMS: dict[str, Program] = {
    **_PLAIN,
    **iterations.PROGRAMS,
    **learning.PROGRAMS,
    "entities": entities.entities,
}

__all__: Sequence[str] = ("PROGRAMS", "Longer")
