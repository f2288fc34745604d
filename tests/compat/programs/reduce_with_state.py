"""State in a reduce function belongs to the key of the records."""

from pyflink.common import Types
from pyflink.datastream import DataStream, ReduceFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

ORDER = "key"
WATERMARKS = "final"


class Counting(ReduceFunction):
    def open(self, runtime_context: RuntimeContext):
        self.calls = runtime_context.get_state(ValueStateDescriptor("calls", Types.LONG()))
        self.values = runtime_context.get_list_state(ListStateDescriptor("values", Types.LONG()))
        self.last = runtime_context.get_map_state(MapStateDescriptor("last", Types.STRING(), Types.LONG()))

    def reduce(self, value1, value2):
        calls = (self.calls.value() or 0) + 1
        self.calls.update(calls)
        self.values.add(value2[1])
        before = self.last.get("value")
        self.last.put("value", value2[1])
        return value1[0], value1[1] + value2[1], f"{calls} {list(self.values)} {before}"


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [(i % 4, i, "") for i in range(24)]
    return env.from_collection(data).key_by(lambda e: e[0]).reduce(Counting())
