"""map, flat_map and filter may use keyed state; the same state name in two operators is two states."""

from pyflink.common import Types
from pyflink.datastream import (
    DataStream,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ValueStateDescriptor

ORDER = "key"
WATERMARKS = "final"


class Running(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.INT()))

    def map(self, value):
        self.state.update((self.state.value() or 0) + value[1])
        return value[0], self.state.value()


class Deduplicate(FilterFunction):
    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.INT()))

    def filter(self, value):
        fresh = self.state.value() is None or value[1] > self.state.value() + 2
        if fresh:
            self.state.update(value[1])
        return fresh


class Pairs(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.INT()))

    def flat_map(self, value):
        if self.state.value() is not None:
            yield value[0], self.state.value(), value[1]
        self.state.update(value[1])


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("abc"[i % 7 % 3], i * 5 % 4) for i in range(60)]
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    return (
        env.from_collection(data, type_info=pair)
        .key_by(lambda e: e[0])
        .map(Running(), output_type=pair)
        .key_by(lambda e: e[0])
        .filter(Deduplicate())
        .key_by(lambda e: e[0])
        .flat_map(Pairs())
    )
