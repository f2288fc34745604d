"""BATCH mode: two keyed inputs are merged by key, and of each key by time."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    DataStream,
    KeyedCoProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ValueStateDescriptor

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Join(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.price = runtime_context.get_state(ValueStateDescriptor("price", Types.LONG()))
        self.orders = runtime_context.get_state(ValueStateDescriptor("orders", Types.LONG()))

    def process_element1(self, value, ctx: "KeyedCoProcessFunction.Context"):
        self.orders.update((self.orders.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(1000)
        yield value[0], "order", value[1], self.price.value()

    def process_element2(self, value, ctx: "KeyedCoProcessFunction.Context"):
        self.price.update(value[2])
        yield value[0], "price", value[1], value[2]

    def on_timer(self, timestamp: int, ctx: "KeyedCoProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), "end", timestamp, self.orders.value()


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByField())
    orders = [("abcd"[i % 4], i * 70 % 290) for i in range(24)]
    prices = [("abce"[i % 4], i * 55 % 311 // 10 * 10 + 5, i) for i in range(12)]
    one = env.from_collection(orders).assign_timestamps_and_watermarks(strategy)
    two = env.from_collection(prices).assign_timestamps_and_watermarks(strategy)
    by_name = {"key_selector1": lambda e: e[0], "key_selector2": lambda e: e[0]}
    return one.connect(two).key_by(**by_name).process(Join())
