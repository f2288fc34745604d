"""Tumbling event-time windows with reduce: one result per key and window, empty windows silent."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

ORDER = "key"
WATERMARKS = "any"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("abc"[i * i % 5 % 3], i * 137 % 1000 + (3000 if i > 30 else 0), i) for i in range(60)]
    kind = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(ByField())
    return (
        env.from_collection(data, type_info=kind)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(200)))
        .reduce(lambda a, b: (a[0], min(a[1], b[1]), a[2] + b[2]))
    )
