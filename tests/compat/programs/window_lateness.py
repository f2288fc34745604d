"""Allowed lateness, a watermark after every element: a late one fires again, a later one is a side output."""

import time

from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

ORDER = "key"
WATERMARKS = "each"

LATE = OutputTag("late", Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))


class SlowByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        time.sleep(0.03)
        return value[1]


class Bounds(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield f"{key} {context.window().start} {[e[2] for e in elements]} at {context.current_watermark()}"


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.get_config().set_auto_watermark_interval(1)
    configuration = Configuration()
    configuration.set_integer("python.fn-execution.bundle.size", 1)
    env.configure(configuration)
    times = [1, 9, 10, 11, 4, 14, 5, 25, 8, 15, 16, 26, 40, 33, 29, 24, 55, 36, 39, 34, 56, 45, 70, 49, 50]
    data = [("ab"[i % 4 % 2], t, i) for i, t in enumerate(times)]
    kind = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SlowByField())
    windows = (
        env.from_collection(data, type_info=kind)
        .rebalance()
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .allowed_lateness(5)
        .side_output_late_data(LATE)
        .process(Bounds(), output_type=Types.STRING())
    )
    late = windows.get_side_output(LATE).map(lambda e: f"late-{e[0]} {e[1]} {e[2]}", output_type=Types.STRING())
    return windows.union(late)
