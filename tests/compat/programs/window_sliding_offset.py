"""Sliding windows with an offset, and with a slide larger than the size: elements in between get lost."""

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
    def __init__(self, label):
        self.label = label

    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield f"{self.label}-{key}", context.window().start, context.window().end, sorted(e[1] for e in elements)


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("st"[i % 4 % 2], i * 37 % 400) for i in range(24)]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(400)).with_timestamp_assigner(
        ByField()
    )
    keyed = (
        env.from_collection(data)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
    )
    offset = keyed.window(
        SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(40), Time.milliseconds(15))
    ).process(Bounds("offset"))
    gaps = keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(30), Time.milliseconds(100))).process(
        Bounds("gaps")
    )
    return offset.union(gaps)
