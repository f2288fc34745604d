"""BATCH mode: union and side outputs; what comes after a keyed operator is keyed anew."""

from pyflink.common import Types
from pyflink.datastream import (
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ReducingStateDescriptor

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
LARGE = OutputTag("large", Types.TUPLE([Types.STRING(), Types.INT()]))


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        descriptor = ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
        self.sum = runtime_context.get_reducing_state(descriptor)

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        self.sum.add(value[1])
        if value[1] >= 20:
            yield LARGE, (f"large-{value[1] % 3}", value[1])
        ctx.timer_service().register_event_time_timer(0)

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield f"sum-{ctx.get_current_key()[0]}", self.sum.get()


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    one = env.from_collection([(f"f{i % 5}", i) for i in range(25)], type_info=PAIR)
    two = env.from_collection([(f"g{i % 2}", i) for i in range(15, 30)], type_info=PAIR)
    counted = one.union(two).key_by(lambda e: e[0], key_type=Types.STRING()).process(Count(), output_type=PAIR)
    sums = counted.key_by(lambda e: e[0], key_type=Types.STRING()).sum(1)
    return counted.get_side_output(LARGE).key_by(lambda e: e[0], key_type=Types.STRING()).max(1).union(sums)
