"""aggregate and reduce with a window function: the window function sees exactly one element, the aggregated one."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

ORDER = "key"
WATERMARKS = "any"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithWindow(ProcessWindowFunction):
    def __init__(self, label):
        self.label = label

    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield f"{self.label}-{key}", context.window().start, str(list(elements))


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("pqr"[i * i % 3], i * 89 % 1000, i) for i in range(50)]
    kind = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
    out = Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()])
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(ByField())
    windowed = (
        env.from_collection(data, type_info=kind)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(250)))
    )
    mean = windowed.aggregate(
        Mean(),
        window_function=WithWindow("mean"),
        accumulator_type=Types.TUPLE([Types.INT(), Types.INT()]),
        output_type=out,
    )
    largest = windowed.reduce(
        lambda a, b: a if a[2] >= b[2] else b,
        window_function=WithWindow("largest"),
        output_type=out,
    )
    return mean.union(largest)
