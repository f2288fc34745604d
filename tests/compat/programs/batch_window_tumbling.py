"""BATCH mode: nothing is late, however out of order; each window fires once, a key's windows in order."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, ProcessWindowFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        window = context.window()
        yield key, window.start, window.end, [e[1] for e in elements], context.current_watermark()


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    data = [("pqr"[i % 3], i * 389 % 500 - 60) for i in range(45)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByField())
    return (
        env.from_collection(data)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(30)))
        .process(Show())
    )
