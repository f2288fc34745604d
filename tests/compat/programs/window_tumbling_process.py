"""ProcessWindowFunction: window bounds, elements in arrival order, per-window and global state."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import TumblingEventTimeWindows

ORDER = "key"
WATERMARKS = "final"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Report(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        window = context.window()
        in_window = context.window_state().get_state(ValueStateDescriptor("firings", Types.INT()))
        in_all = context.global_state().get_state(ValueStateDescriptor("windows", Types.INT()))
        in_window.update((in_window.value() or 0) + 1)
        in_all.update((in_all.value() or 0) + 1)
        yield (
            key,
            window.start,
            window.end,
            window.max_timestamp(),
            [e[1] for e in elements],
            in_window.value(),
            in_all.value(),
            context.current_watermark(),
        )

    def clear(self, context: "ProcessWindowFunction.Context"):
        context.window_state().get_state(ValueStateDescriptor("firings", Types.INT())).clear()


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("jkl"[i % 7 % 3], i * 53 % 400 - 100) for i in range(40)]
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(ByField())
    return (
        env.from_collection(data)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
        .process(Report())
    )
