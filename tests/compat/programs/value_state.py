"""ValueState is per key, None before the first update and again after clear()."""

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

ORDER = "key"
WATERMARKS = "final"


class CountToFive(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        before, last = self.count.value(), self.last.value()
        self.count.update((before or 0) + 1)
        self.last.update({"value": value[1], "was": None if last is None else last["value"]})
        yield ctx.get_current_key(), before, last, self.count.value()
        if self.count.value() == 5:
            self.count.clear()
            self.last.clear()


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("abcde"[i * i * i % 7 % 5], i) for i in range(48)]
    return env.from_collection(data).key_by(lambda e: e[0]).process(CountToFive())
