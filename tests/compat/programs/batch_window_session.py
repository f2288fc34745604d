"""BATCH mode: sessions over unsorted input, reduced in the order of time and handed to a window function."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, ProcessWindowFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Bounds(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        for text in elements:
            yield key, context.window().start, context.window().end, text[2]


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    data = [("stu"[i % 3], i * 271 % 1000, str(i)) for i in range(48)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByField())
    kind = Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()])
    return (
        env.from_collection(data, type_info=kind)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(62)))
        .reduce(lambda a, b: (a[0], b[1], f"{a[2]}-{b[2]}"), window_function=Bounds())
    )
