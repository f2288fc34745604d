"""Windows over all elements, count windows and process functions: assigners x functions, no element late."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, DataStream, StreamExecutionEnvironment
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from pyflink.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

ORDER = "none"
WATERMARKS = "any"
MODE = "thread"

ASSIGNERS = {
    "tumbling": lambda: TumblingEventTimeWindows.of(Time.milliseconds(100)),
    "offset": lambda: TumblingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(30)),
    "sliding": lambda: SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(40)),
    "session": lambda: EventTimeSessionWindows.with_gap(Time.milliseconds(30)),
    "global": lambda: GlobalWindows.create(),
}


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Summary(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return (accumulator[0] + value[2], max(accumulator[1], value[2]))

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return (acc_a[0] + acc_b[0], max(acc_a[1], acc_b[1]))


def bounds(window):
    return f"{window.start}..{window.end}" if hasattr(window, "start") else "all"


class Apply(AllWindowFunction):
    def apply(self, window, inputs):
        yield f"{bounds(window)} {sorted(e[-1] for e in inputs)}"


class Process(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield f"{bounds(context.window())} {sorted(e[-1] for e in elements)}"


def add(a, b):
    return (a[0], max(a[1], b[1]), a[2] + b[2])


ELEMENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
FUNCTIONS = {
    "reduce": lambda w: w.reduce(add),
    "aggregate": lambda w: w.aggregate(Summary(), accumulator_type=Types.PICKLED_BYTE_ARRAY()),
    "apply": lambda w: w.apply(Apply(), output_type=Types.STRING()),
    "process": lambda w: w.process(Process(), output_type=Types.STRING()),
    "reduce-apply": lambda w: w.reduce(add, Apply()),
    "aggregate-process": lambda w: w.aggregate(Summary(), Process(), accumulator_type=Types.PICKLED_BYTE_ARRAY()),
}


def define(env: StreamExecutionEnvironment) -> DataStream:
    times = [3, 17, 55, 99, 100, 131, 260, 181, 300, 305, 420, 431, 470, 620, 702, 799]
    data = [("ab"[i % 3 % 2], t, i) for i, t in enumerate(times)]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1000))
    timed = (
        env.from_collection(data, type_info=ELEMENT)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(ByField()))
        .set_parallelism(1)  # so that the order of elements does not depend on the parallelism
    )
    keyed = timed.key_by(lambda e: e[0], key_type=Types.STRING())
    streams = []
    for function, apply in FUNCTIONS.items():
        for assigner, make in ASSIGNERS.items():
            windowed = timed.window_all(make())
            if assigner == "global":
                windowed = windowed.trigger(PurgingTrigger.of(CountTrigger.of(5)))
            name = f"{assigner}/{function}"
            streams.append(apply(windowed).map(lambda v, n=name: f"{n} {v}", output_type=Types.STRING()))
    for size, slide in ((3, None), (4, 2)):
        counted = keyed.count_window(size) if slide is None else keyed.count_window(size, slide)
        name = f"keyed-{size}-{slide}/reduce"
        streams.append(counted.reduce(add).map(lambda v, n=name: f"{n} {v}", output_type=Types.STRING()))
    return streams[0].union(*streams[1:])
