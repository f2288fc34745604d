"""State with a time-to-live that does not pass reads as if it had none, for all kinds of state."""

from pyflink.common import Time, Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

ORDER = "key"
WATERMARKS = "final"


class Remember(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        ttl = (
            StateTtlConfig.new_builder(Time.hours(1))
            .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        value = ValueStateDescriptor("value", Types.INT())
        items = ListStateDescriptor("items", Types.INT())
        table = MapStateDescriptor("table", Types.INT(), Types.INT())
        total = ReducingStateDescriptor("total", lambda a, b: a + b, Types.INT())
        for descriptor in (value, items, table, total):
            descriptor.enable_time_to_live(ttl)
        self.value = runtime_context.get_state(value)
        self.items = runtime_context.get_list_state(items)
        self.table = runtime_context.get_map_state(table)
        self.total = runtime_context.get_reducing_state(total)

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        key, n = value
        before = self.value.value()
        self.value.update(n)
        self.items.add(n)
        self.table.put(n % 3, n)
        self.total.add(n)
        yield key, before, list(self.items.get()), sorted(self.table.items()), self.total.get()


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("kl"[i * i % 5 % 2], i) for i in range(20)]
    return env.from_collection(data).key_by(lambda e: e[0]).process(Remember())
