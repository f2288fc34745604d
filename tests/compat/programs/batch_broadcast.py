"""BATCH mode: the broadcast side comes first, whatever the order of the streams."""

from pyflink.common import Types
from pyflink.datastream import (
    BroadcastProcessFunction,
    DataStream,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import MapStateDescriptor

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"

NAMES = MapStateDescriptor("names", Types.LONG(), Types.STRING())


class Name(BroadcastProcessFunction):
    def process_element(self, value, ctx: "BroadcastProcessFunction.ReadOnlyContext"):
        names = ctx.get_broadcast_state(NAMES)
        yield value, names.get(value % 4), names.contains(value % 3)

    def process_broadcast_element(self, value, ctx: "BroadcastProcessFunction.Context"):
        ctx.get_broadcast_state(NAMES).put(value[0], value[1])


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    numbers = env.from_collection(list(range(20)), type_info=Types.LONG())
    names = env.from_collection([(0, "zero"), (1, "one"), (2, "two"), (1, "uno")])
    return numbers.connect(names.broadcast(NAMES)).process(Name())
