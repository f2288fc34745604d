"""ContinuousEventTimeTrigger, a watermark after every element: fires at every interval and at the end."""

import time

from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import ContinuousEventTimeTrigger, TumblingEventTimeWindows

ORDER = "key"
WATERMARKS = "each"


class SlowByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        time.sleep(0.03)
        return value[1]


class Bounds(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield key, context.window().start, len(list(elements)), context.current_watermark()


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.get_config().set_auto_watermark_interval(1)
    configuration = Configuration()
    configuration.set_integer("python.fn-execution.bundle.size", 1)
    env.configure(configuration)
    data = [("yz"[i % 5 % 2], i * 7) for i in range(24)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SlowByField())
    return (
        env.from_collection(data)
        .rebalance()
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
        .trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(30)))
        .process(Bounds())
    )
