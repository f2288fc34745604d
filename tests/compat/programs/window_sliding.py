"""Sliding event-time windows: an element belongs to size/slide windows, those before the first element included."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import SlidingEventTimeWindows

ORDER = "key"
WATERMARKS = "any"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Bounds(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield key, context.window().start, context.window().end, sorted(e[1] for e in elements)


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("st"[i % 4 % 2], i * 43 % 500) for i in range(26)]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500)).with_timestamp_assigner(
        ByField()
    )
    return (
        env.from_collection(data)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(SlidingEventTimeWindows.of(Time.milliseconds(150), Time.milliseconds(50)))
        .process(Bounds())
    )
