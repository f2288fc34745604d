"""KeyedCoProcessFunction: both inputs share the key's state and timers; a timer set by both fires once."""

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedCoProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor

ORDER = "key"
WATERMARKS = "final"


class Enrich(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.name = runtime_context.get_state(ValueStateDescriptor("name", Types.STRING()))
        self.orders = runtime_context.get_list_state(ListStateDescriptor("orders", Types.INT()))

    def process_element1(self, value, ctx: "KeyedCoProcessFunction.Context"):
        self.orders.add(value[1])
        ctx.timer_service().register_event_time_timer(1000)
        if value[1] % 5 == 0:
            ctx.timer_service().register_event_time_timer(value[1] * 10 + 5)

    def process_element2(self, value, ctx: "KeyedCoProcessFunction.Context"):
        self.name.update(value[1])
        ctx.timer_service().register_event_time_timer(1000)
        ctx.timer_service().register_event_time_timer(2000)

    def on_timer(self, timestamp: int, ctx: "KeyedCoProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), timestamp, ctx.timestamp(), self.name.value(), list(self.orders.get())


def define(env: StreamExecutionEnvironment) -> DataStream:
    orders = env.from_collection([(i * 3 % 5, i) for i in range(25)])
    names = env.from_collection([(0, "zero"), (2, "two"), (3, "three"), (6, "six"), (2, "deux")])
    return orders.connect(names).key_by(lambda e: e[0], lambda e: e[0]).process(Enrich())
