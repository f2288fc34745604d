"""BATCH mode: count windows see a key's elements in the order of time; what does not fill a window is dropped."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    kind = Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()])
    data = [("klm"[i % 3], i * 31 % 100, str(i * 31 % 100)) for i in range(33)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByField())
    return (
        env.from_collection(data, type_info=kind)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .count_window(4)
        .reduce(lambda a, b: (a[0], b[1], f"{a[2]}-{b[2]}"))
    )
