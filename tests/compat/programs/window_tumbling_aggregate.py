"""Tumbling windows with an AggregateFunction: accumulator and result may differ in type."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, DataStream, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

ORDER = "key"
WATERMARKS = "any"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Summary(AggregateFunction):
    def create_accumulator(self):
        return {"key": None, "values": []}

    def add(self, value, accumulator):
        return {"key": value[0], "values": sorted([*accumulator["values"], value[1]])}

    def get_result(self, accumulator):
        values = accumulator["values"]
        return accumulator["key"], values[0], values[-1], sum(values) / len(values)

    def merge(self, acc_a, acc_b):
        return {"key": acc_a["key"], "values": sorted(acc_a["values"] + acc_b["values"])}


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [(i % 3, i * 331 % 5000) for i in range(80)]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(6)).with_timestamp_assigner(ByField())
    return (
        env.from_collection(data)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .aggregate(
            Summary(),
            accumulator_type=Types.PICKLED_BYTE_ARRAY(),
            output_type=Types.TUPLE([Types.INT(), Types.LONG(), Types.LONG(), Types.DOUBLE()]),
        )
    )
