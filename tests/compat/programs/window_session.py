"""Sessions merge out of order: a late bridge joins two; a pause exactly as long as the gap still merges."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows

ORDER = "key"
WATERMARKS = "any"

DATA = [
    ("a", 0), ("a", 100), ("a", 50), ("b", 30), ("b", 40), ("b", 51), ("c", 10), ("c", 20), ("c", 30),
    ("a", 30), ("a", 80), ("d", 0), ("d", 11), ("d", 22), ("d", 31), ("c", 200), ("c", 190), ("c", 180),
    ("e", 90), ("e", 70), ("e", 80), ("e", 60), ("e", 15), ("f", -7), ("f", 2), ("f", 500),
]  # fmt: skip


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Bounds(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield key, context.window().start, context.window().end, sorted(e[1] for e in elements)


def define(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(ByField())
    return (
        env.from_collection(DATA)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
        .process(Bounds())
    )
