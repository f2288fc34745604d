"""ReducingState, AggregatingState: None before the first add and after clear(); get() gives the result."""

from pyflink.common import Types
from pyflink.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import AggregatingStateDescriptor, ReducingStateDescriptor

ORDER = "key"
WATERMARKS = "final"


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1] if accumulator[1] else None

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Statistics(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.largest = runtime_context.get_reducing_state(ReducingStateDescriptor("largest", max, Types.INT()))
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([Types.INT(), Types.INT()]))
        )

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        before = self.largest.get(), self.mean.get()
        self.largest.add(value[1])
        self.mean.add(value[1])
        yield value[0], before, self.largest.get(), self.mean.get()
        if value[1] % 10 == 7:
            self.largest.clear()
            self.mean.clear()


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("mn"[i % 3 % 2], i * 17 % 29) for i in range(36)]
    return env.from_collection(data).key_by(lambda e: e[0]).process(Statistics())
