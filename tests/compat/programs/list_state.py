"""ListState: add, add_all, get, update, iteration and clear, per key; an untouched list is empty."""

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor

ORDER = "key"
WATERMARKS = "final"


class Last(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.items = runtime_context.get_list_state(ListStateDescriptor("items", Types.INT()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        before = list(self.items.get())
        n = value[1]
        if n % 7 == 6:
            self.items.clear()
        elif n % 5 == 4:
            self.items.update([n, -n])
        elif n % 3 == 2:
            self.items.add_all([n, n + 100])
        else:
            self.items.add(n)
        yield value[0], n, before, list(self.items)


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("uvw"[(i + i // 5) % 3], i) for i in range(40)]
    kind = Types.TUPLE([Types.STRING(), Types.INT()])
    return env.from_collection(data, type_info=kind).key_by(lambda e: e[0], key_type=Types.STRING()).process(Last())
