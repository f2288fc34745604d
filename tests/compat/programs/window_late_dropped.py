"""No allowed lateness, a watermark after every element: an element whose window has passed is dropped."""

import time

from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

ORDER = "key"
WATERMARKS = "each"


class SlowByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        time.sleep(0.03)
        return value[1]


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.get_config().set_auto_watermark_interval(1)
    configuration = Configuration()
    configuration.set_integer("python.fn-execution.bundle.size", 1)
    env.configure(configuration)
    times = [3, 9, 10, 8, 11, 10, 21, 19, 20, 12, 29, 30, 29, 31, 28, 44, 35, 39, 40, 41]
    data = [("mn"[i % 3 % 2], t, str(i)) for i, t in enumerate(times)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SlowByField())
    return (
        env.from_collection(data)
        .rebalance()
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda a, b: (a[0], a[1], a[2] + " " + b[2]))
    )
