"""MapState: put, put_all, get, contains, remove, views, emptiness and clear, per key; a missing key reads as None."""

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"


class Basket(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.items = runtime_context.get_map_state(MapStateDescriptor("items", Types.STRING(), Types.LONG()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        user, item, n = value
        empty, had, old = self.items.is_empty(), self.items.contains(item), self.items.get(item)
        if n % 11 == 10:
            self.items.clear()
        elif n % 7 == 6:
            self.items.put_all({"pear": n, "plum": n + 1})
        elif n % 5 == 4:
            self.items.remove(item)
        elif n % 2:
            self.items.put(item, n)
        else:
            self.items[item] = (old or 0) + n
        yield (
            user,
            item,
            empty,
            had,
            old,
            item in self.items,
            sorted(self.items.keys()),
            sorted(self.items.values()),
            sorted(self.items.items()),
        )


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("ab"[i % 5 % 2], ("apple", "pear", "plum")[i * i % 7 % 3], i) for i in range(45)]
    return env.from_collection(data).key_by(lambda e: e[0]).process(Basket())
