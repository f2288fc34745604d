"""window_all: one window over all keys; results carry the window's last millisecond, so windows follow windows."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows

ORDER = "all"
WATERMARKS = "any"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Total(ProcessAllWindowFunction):
    def process(self, context: "ProcessAllWindowFunction.Context", elements):
        yield "total", context.window().start, sum(e[2] for e in elements)


class Join(AllWindowFunction):
    def apply(self, window, inputs):
        yield window.start, window.end, [(e[1], e[2]) for e in inputs]


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("ab"[i % 2], i * 61 % 900, i) for i in range(50)]
    kind = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(ByField())
    return (
        env.from_collection(data, type_info=kind)
        .assign_timestamps_and_watermarks(strategy)
        .window_all(TumblingEventTimeWindows.of(Time.milliseconds(100)))
        .process(Total(), output_type=kind)
        .window_all(TumblingEventTimeWindows.of(Time.milliseconds(300)))
        .apply(Join())
    )
