"""BATCH mode: aggregations give their last value; of equal elements min_by and max_by keep the first in time."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    kind = Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()])
    data = [("hij"[i % 3], i * 7 % 10, i * 5 % 36) for i in range(36)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByField())
    timed = env.from_collection(data, type_info=kind).assign_timestamps_and_watermarks(strategy)
    keyed = timed.key_by(lambda e: e[0], key_type=Types.STRING())

    def told(name: str, stream: DataStream) -> DataStream:
        return stream.map(lambda e: (f"{name}-{e[0]}", e[1], e[2]), output_type=kind)

    return told("min_by", keyed.min_by(1)).union(
        told("max_by", keyed.max_by(1)), told("min", keyed.min(1)), told("max", keyed.max(2)), told("sum", keyed.sum(1))
    )
