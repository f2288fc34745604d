"""A watermark after every element: timers fire between elements, one set in the past at the next advance."""

import time

from pyflink.common import Configuration, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "each"


class SlowByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        time.sleep(0.03)
        return value[1]


class Alarm(KeyedProcessFunction):
    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        timers = ctx.timer_service()
        timers.register_event_time_timer(value[1] + value[2])
        yield value[0], "element", value, ctx.timestamp(), timers.current_watermark()

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), "timer", timestamp, ctx.timestamp(), ctx.timer_service().current_watermark()


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.get_config().set_auto_watermark_interval(1)
    configuration = Configuration()
    configuration.set_integer("python.fn-execution.bundle.size", 1)
    env.configure(configuration)
    data = [("ab"[i % 2], i * 10 + (25 if i % 5 == 3 else 0), (5, 16, -30, 41)[i % 4]) for i in range(20)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SlowByField())
    return (
        env.from_collection(data)
        .rebalance()
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0])
        .process(Alarm())
    )
