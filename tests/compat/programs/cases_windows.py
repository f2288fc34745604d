"""Window assigners x triggers x window functions, no element late: each case is a branch, named in its lines."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    DataStream,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from pyflink.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

ORDER = "none"
WATERMARKS = "any"
MODE = "thread"



class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return 20 + element[2] % 3 * 30


ASSIGNERS = {
    "tumbling": lambda: TumblingEventTimeWindows.of(Time.milliseconds(100)),
    "offset": lambda: TumblingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(30)),
    "before": lambda: TumblingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(-30)),
    "sliding": lambda: SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(40)),
    "hopping": lambda: SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(100)),
    "session": lambda: EventTimeSessionWindows.with_gap(Time.milliseconds(45)),
    "dynamic": lambda: EventTimeSessionWindows.with_dynamic_gap(Gap()),
    "global": lambda: GlobalWindows.create(),
    "count": lambda: CountTumblingWindowAssigner.of(3),
    "count-slide": lambda: CountSlidingWindowAssigner.of(4, 2),
}
TRIGGERS = {
    "default": lambda: None,
    "count": lambda: CountTrigger.of(2),
    "purging": lambda: PurgingTrigger.of(CountTrigger.of(3)),
    "purged-time": lambda: PurgingTrigger.of(EventTimeTrigger.create()),
}
UNTIMED = ("global", "count", "count-slide")
BY_COUNT = ("count", "count-slide")


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Summary(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return (accumulator[0] + value[2], max(accumulator[1], value[2]))

    def get_result(self, accumulator):
        return accumulator  # in thread mode PyFlink merges the results of windows, not their accumulators

    def merge(self, acc_a, acc_b):
        return (acc_a[0] + acc_b[0], max(acc_a[1], acc_b[1]))


def bounds(window):
    return f"{window.start}..{window.end}" if hasattr(window, "start") else "all"


class Apply(WindowFunction):
    def apply(self, key, window, inputs):
        yield f"{key} {bounds(window)} {sorted(e[-1] for e in inputs)}"


class Process(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key} {bounds(context.window())} {sorted(e[-1] for e in elements)}"


def add(a, b):
    return (a[0], max(a[1], b[1]), a[2] + b[2])


ELEMENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
FUNCTIONS = {
    "reduce": lambda w: w.reduce(add, output_type=ELEMENT),
    "aggregate": lambda w: w.aggregate(
        Summary(), accumulator_type=Types.PICKLED_BYTE_ARRAY(), output_type=Types.TUPLE([Types.INT(), Types.INT()])
    ),
    "apply": lambda w: w.apply(Apply(), output_type=Types.STRING()),
    "process": lambda w: w.process(Process(), output_type=Types.STRING()),
    "reduce-apply": lambda w: w.reduce(add, Apply()),
    "aggregate-process": lambda w: w.aggregate(
        Summary(), Process(), accumulator_type=Types.PICKLED_BYTE_ARRAY(), output_type=Types.STRING()
    ),
}
COMBINATIONS = [
    (assigner, trigger, function)
    for a, assigner in enumerate(ASSIGNERS)
    for t, trigger in enumerate(TRIGGERS)
    for f, function in enumerate(FUNCTIONS)
    if not (assigner in UNTIMED and trigger == "purged-time")
    and not (assigner in BY_COUNT and trigger != "default")
    and (trigger == "default" or (a + t + f) % 3 == 0)
]


def define(env: StreamExecutionEnvironment) -> DataStream:
    times = [3, 17, 55, 100, 99, 120, 131, 260, 244, 181, 300, 305, 420, 377, 431, 470, 620, 561, 702, 700, 799]
    data = [("ab"[i % 3 % 2], t, i) for i, t in enumerate(times)]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1000))
    keyed = (
        env.from_collection(data, type_info=ELEMENT)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(ByField()))
        .set_parallelism(1)  # so that the order of a key's elements does not depend on the parallelism
        .key_by(lambda e: e[0], key_type=Types.STRING())
    )
    streams = []
    for assigner, trigger, function in COMBINATIONS:
        windowed = keyed.window(ASSIGNERS[assigner]())
        if trigger != "default":
            windowed = windowed.trigger(TRIGGERS[trigger]())
        name = f"{assigner}/{trigger}/{function}"
        streams.append(FUNCTIONS[function](windowed).map(lambda v, n=name: f"{n} {v}", output_type=Types.STRING()))
    return streams[0].union(*streams[1:])
