"""The program whose savepoints are kept: every kind of state, timers, windows, broadcast, operator lists, positions.

It must stay as it is: a savepoint of every release is restored into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.common import Types
from millstream.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.functions import (
    AggregateFunction,
    CheckpointedFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
)
from millstream.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from millstream.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from millstream.testing.feed import Feed
from millstream.times import Time

FIRST = [("ann", 1, 10), ("bob", 2, 20), ("ann", 3, 30), ("cid", 4, 40), ("bob", 5, 95)]
LATER = [("ann", 6, 120), ("cid", 7, 130), ("bob", 8, 400), ("ann", 9, 2000)]
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


@dataclass
class Account:
    owner: str
    balance: float
    events: list[int]


def expiring(descriptor: Any) -> Any:
    """With a time to live that no test outlives."""
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(365_000)).build())
    return descriptor


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, one, other):
        return one[0] + other[0], one[1] + other[1]


def add(one, other):
    return one + other


class Everything(KeyedProcessFunction):
    def open(self, runtime_context):
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        self.account = runtime_context.get_state(ValueStateDescriptor("account", Account))
        self.untyped = runtime_context.get_state(ValueStateDescriptor("untyped", None))
        self.listed = runtime_context.get_list_state(ListStateDescriptor("listed", Types.LONG()))
        self.mapped = runtime_context.get_map_state(MapStateDescriptor("mapped", Types.STRING(), Types.LONG()))
        self.reduced = runtime_context.get_reducing_state(ReducingStateDescriptor("reduced", add, Types.LONG()))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), pair))
        self.large = runtime_context.get_map_state(MapStateDescriptor("large", Types.LONG(), Types.LONG()))
        self.short = runtime_context.get_state(expiring(ValueStateDescriptor("short", Types.LONG())))
        self.shorts = runtime_context.get_list_state(expiring(ListStateDescriptor("shorts", Types.LONG())))
        self.entries = runtime_context.get_map_state(
            expiring(MapStateDescriptor("entries", Types.LONG(), Types.STRING()))
        )

    def process_element(self, value, ctx):
        key, number, time = value
        before = self.account.value() or Account(key, 0.0, [])
        self.account.update(Account(key, before.balance + number, [*before.events, number]))
        self.untyped.update({number, *(self.untyped.value() or ())})
        self.listed.add(number)
        self.mapped.put(f"n{number}", number)
        if self.large.is_empty():
            self.large.put_all({entry: entry for entry in range(100)})
        self.large.put(number, -number)  # of a large map only what changed is written
        self.large.remove(number + 50)
        self.reduced.add(number)
        self.mean.add(number)
        self.short.update(number)
        self.shorts.add(number)
        self.entries.put(number, key)
        ctx.timer_service().register_event_time_timer(time + 500)
        yield self.told("seen", ctx)

    def on_timer(self, timestamp, ctx):
        yield self.told(f"timer {timestamp}", ctx)

    def told(self, what, ctx):
        account = self.account.value()
        return (
            "all",
            what,
            ctx.get_current_key(),
            [
                [account.owner, account.balance, account.events],
                sorted(self.untyped.value()),
                list(self.listed.get()),
                sorted(self.mapped.items()),
                [len(self.large.keys()), sum(self.large.values())],
                self.reduced.get(),
                self.mean.get(),
                self.short.value(),
                list(self.shorts.get()),
                sorted(self.entries.items()),
            ],
        )


class Total(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield "window", key, [window.start, window.end], sorted(each[1] for each in elements)


class Listed(MapFunction, CheckpointedFunction):
    """Passes records on, and remembers their numbers as operator state."""

    def __init__(self, union):
        self.union = union

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        descriptor = ListStateDescriptor("numbers", Types.LONG())
        self.state = store.get_union_list_state(descriptor) if self.union else store.get_list_state(descriptor)
        self.numbers = list(self.state.get())

    def snapshot_state(self, context):
        self.state.update(self.numbers)

    def map(self, value):
        self.numbers.append(value[1])
        return ("union" if self.union else "list", "", value[0], sorted(set(self.numbers)))


class Apply(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield "rules", "", value[0], [ctx.get_broadcast_state(RULES).get(value[0]), value[1]]

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)
        yield from ()


class Times(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


def build(env: StreamExecutionEnvironment, feed: Feed, rules: Feed, sink: Any) -> None:
    """The pipeline, on an environment at parallelism 1 or 2."""
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times())
    records = env.from_source(feed, times, "feed").uid("feed")
    keyed = records.key_by(lambda value: value[0], Types.STRING())
    everything = keyed.process(Everything()).uid("everything")
    tumbling = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).process(Total()).uid("tumbling")
    sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(60))).process(Total()).uid("sessions")
    listed = records.map(Listed(False)).uid("list").set_parallelism(1)
    united = records.map(Listed(True)).uid("union").set_parallelism(1)
    broadcast = env.from_source(rules, WatermarkStrategy.no_watermarks(), "rules").uid("rules").broadcast(RULES)
    applied = keyed.connect(broadcast).process(Apply()).uid("apply")
    everything.union(tumbling, sessions, listed, united, applied).sink_to(sink).uid("out")
