"""BATCH mode: elements of a key come together in timestamp order; its timers fire after its last element."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ListStateDescriptor

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        self.seen.add(value[1])
        ctx.timer_service().register_event_time_timer(value[1] // 100 * 100)
        yield value[0], "element", value[1], ctx.timer_service().current_watermark()

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), "timer", timestamp, list(self.seen.get()), ctx.timer_service().current_watermark()


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    data = [("abc"[i % 3], i * 73 % 400) for i in range(24)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByField())
    return (
        env.from_collection(data)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .process(Show())
    )
