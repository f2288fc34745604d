"""WindowFunction: none or many elements per window; an offset shifts the bounds; negative timestamps."""

from itertools import pairwise

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, StreamExecutionEnvironment, WindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows

ORDER = "key"
WATERMARKS = "any"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Pairs(WindowFunction):
    def apply(self, key, window, inputs):
        values = sorted(e[1] for e in inputs)
        for a, b in pairwise(values):
            yield key, window.start, window.end, a, b


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [(("x", "y")[i % 3 % 2], i * 71 % 600 - 300) for i in range(30)]
    kind = Types.TUPLE([Types.STRING(), Types.LONG()])
    out = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()])
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(600)).with_timestamp_assigner(
        ByField()
    )
    return (
        env.from_collection(data, type_info=kind)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(30)))
        .apply(Pairs(), output_type=out)
    )
