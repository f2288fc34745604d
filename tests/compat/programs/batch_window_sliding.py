"""BATCH mode: an element is in each of its sliding windows; an aggregate gives one result for each."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.window import SlidingEventTimeWindows

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Span(AggregateFunction):
    def create_accumulator(self):
        return None

    def add(self, value, accumulator):
        if accumulator is None:
            return value[0], 1, value[1], value[1]
        key, count, low, _ = accumulator
        return key, count + 1, low, value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a[0], acc_a[1] + acc_b[1], min(acc_a[2], acc_b[2]), max(acc_a[3], acc_b[3])


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    data = [("vw"[i % 2], i * 157 % 300) for i in range(30)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByField())
    kind = Types.PICKLED_BYTE_ARRAY()
    return (
        env.from_collection(data)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(SlidingEventTimeWindows.of(Time.milliseconds(120), Time.milliseconds(50)))
        .aggregate(Span(), accumulator_type=kind, output_type=kind)
    )
