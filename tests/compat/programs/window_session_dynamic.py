"""Session gap from the element, with an aggregate: merge() joins the accumulators of merged sessions."""

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows, SessionWindowTimeGapExtractor

ORDER = "key"
WATERMARKS = "any"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class GapField(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element[2]


class Collect(AggregateFunction):
    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return [*accumulator, value[1]]

    def get_result(self, accumulator):
        return sorted(accumulator)

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Bounds(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield key, context.window().start, context.window().end, list(elements)


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("gh"[i % 5 % 2], i * 97 % 800, 5 + i * i % 23) for i in range(44)]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(ByField())
    return (
        env.from_collection(data)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_dynamic_gap(GapField()))
        .aggregate(Collect(), window_function=Bounds(), accumulator_type=Types.PICKLED_BYTE_ARRAY())
    )
