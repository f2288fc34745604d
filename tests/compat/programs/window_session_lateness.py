"""Sessions with lateness, a watermark after every element: a late one merges with a fired session."""

import time

from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows

ORDER = "key"
WATERMARKS = "each"

LATE = OutputTag("late", Types.TUPLE([Types.STRING(), Types.LONG()]))


class SlowByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        time.sleep(0.03)
        return value[1]


class Bounds(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield f"{key} {context.window().start} {context.window().end} {sorted(e[1] for e in elements)}"


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.get_config().set_auto_watermark_interval(1)
    configuration = Configuration()
    configuration.set_integer("python.fn-execution.bundle.size", 1)
    env.configure(configuration)
    times = [0, 5, 20, 12, 21, 40, 26, 35, 17, 8, 60, 50, 45, 75, 65, 40, 100, 82, 90, 95, 70, 120]
    kind = Types.TUPLE([Types.STRING(), Types.LONG()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SlowByField())
    sessions = (
        env.from_collection([("s", t) for t in times], type_info=kind)
        .rebalance()
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
        .allowed_lateness(15)
        .side_output_late_data(LATE)
        .process(Bounds(), output_type=Types.STRING())
    )
    return sessions.union(sessions.get_side_output(LATE).map(lambda e: f"late {e[1]}", output_type=Types.STRING()))
