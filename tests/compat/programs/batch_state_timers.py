"""BATCH mode: event timers fire after a key's elements, then those of processing time; ones set then are dropped."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        total = (self.total.value() or 0) + value[1]
        self.total.update(total)
        self.seen.put(value[1], total)
        timers = ctx.timer_service()
        timers.register_event_time_timer(value[1] + 50)
        timers.delete_event_time_timer(value[1] + 10)
        if value[1] % 3 == 0:
            timers.register_processing_time_timer(value[1])
        yield value[0], "element", value[1], total, ctx.timestamp()

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        if timestamp == 60:
            ctx.timer_service().register_event_time_timer(77)
            ctx.timer_service().register_processing_time_timer(78)
            self.total.clear()
        yield ctx.get_current_key(), ctx.time_domain().name, timestamp, self.total.value(), len(list(self.seen.keys()))


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    data = [("xyz"[i % 3], i * 40 % 110) for i in range(18)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByField())
    return (
        env.from_collection(data)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .process(Show())
    )
