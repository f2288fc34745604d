"""Side outputs from elements and from timers; an element may go to several outputs."""

from pyflink.common import Types
from pyflink.datastream import (
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)

ORDER = "key"
WATERMARKS = "final"

EVEN = OutputTag("even", Types.INT())
BIG = OutputTag("big", Types.STRING())
DONE = OutputTag("done")


class Split(ProcessFunction):
    def process_element(self, value, ctx: "ProcessFunction.Context"):
        if value % 2 == 0:
            yield EVEN, value
        if value > 20:
            yield BIG, f"big {value}"
        if value % 5:
            yield value


class Finish(KeyedProcessFunction):
    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        ctx.timer_service().register_event_time_timer(value)
        yield value * 100

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield DONE, (ctx.get_current_key(), timestamp)


def define(env: StreamExecutionEnvironment) -> DataStream:
    main = env.from_collection(list(range(30)), type_info=Types.INT()).process(Split(), output_type=Types.INT())
    finished = main.key_by(lambda n: n % 4).process(Finish(), output_type=Types.INT())
    text = Types.STRING()
    return (
        main.map(lambda n: f"main {n}", output_type=text)
        .union(main.get_side_output(EVEN).map(lambda n: f"even {n}", output_type=text))
        .union(main.get_side_output(BIG))
        .union(finished.map(lambda n: f"hundred-{n // 100 % 4} {n}", output_type=text))
        .union(finished.get_side_output(DONE).map(lambda e: f"done-{e[0]} {e[1]}", output_type=text))
    )
