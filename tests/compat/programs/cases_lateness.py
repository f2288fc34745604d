"""Windows x triggers x allowed lateness, a watermark after every element: what fires, fires again, and is late."""

import time

from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

ORDER = "key"
WATERMARKS = "each"
MODE = "thread"

ASSIGNERS = {
    "tumbling": lambda: TumblingEventTimeWindows.of(Time.milliseconds(10)),
    "sliding": lambda: SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10)),
    "session": lambda: EventTimeSessionWindows.with_gap(Time.milliseconds(5)),
}
TRIGGERS = {
    "default": lambda: EventTimeTrigger.create(),
    "purging": lambda: PurgingTrigger.of(EventTimeTrigger.create()),
    "count": lambda: CountTrigger.of(2),
    "continuous": lambda: ContinuousEventTimeTrigger.of(Time.milliseconds(4)),
}
CASES = [(a, t, late) for a in ASSIGNERS for t in TRIGGERS for late in (0, 5, 20)]


def element_type():
    return Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])


class SlowByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        time.sleep(0.05)
        return value[1]


class Bounds(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key}/{context.window().start}..{context.window().end} {sorted(e[2] for e in elements)}"


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.get_config().set_auto_watermark_interval(1)
    configuration = Configuration()
    configuration.set_integer("python.fn-execution.bundle.size", 1)
    env.configure(configuration)
    times = [1, 9, 10, 4, 14, 5, 25, 8, 15, 26, 40, 33, 29, 24, 55, 36, 39, 56, 45, 70, 49, 50]
    data = [("ab"[i % 4 % 2], t, i) for i, t in enumerate(times)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SlowByField())
    keyed = (
        env.from_collection(data, type_info=element_type())
        .rebalance()
        .assign_timestamps_and_watermarks(strategy)
        .set_parallelism(1)  # so that the order of a key's elements does not depend on the parallelism
        .key_by(lambda e: e[0], key_type=Types.STRING())
    )
    streams = []
    for assigner, trigger, lateness in CASES:
        name = f"{assigner}/{trigger}/{lateness}"
        late = OutputTag(f"late {name}", element_type())
        fired = (
            keyed.window(ASSIGNERS[assigner]())
            .trigger(TRIGGERS[trigger]())
            .allowed_lateness(lateness)
            .side_output_late_data(late)
            .process(Bounds(), output_type=Types.STRING())
        )
        streams.append(fired.map(lambda v, n=name: f"{n}/{v}", output_type=Types.STRING()))
        dropped = fired.get_side_output(late)
        streams.append(dropped.map(lambda v, n=name: f"{n}/late {v[0]} {v[2]}", output_type=Types.STRING()))
    return streams[0].union(*streams[1:])
