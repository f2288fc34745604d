"""A function may change an object after it has emitted it: what was emitted does not change."""

from pyflink.common import Row, Types
from pyflink.datastream import (
    DataStream,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    StreamExecutionEnvironment,
)

ORDER = "key"
WATERMARKS = "final"
TEXTS = Types.TUPLE([Types.STRING(), Types.STRING()])


class Growing(FlatMapFunction):
    def __init__(self):
        self.seen = []

    def flat_map(self, value):
        self.seen.append(value)
        yield self.seen
        yield {"inside": (value, self.seen)}


class Reused(MapFunction):
    def __init__(self):
        self.row = Row(0, "x")

    def map(self, value):
        self.row[0] = value
        return self.row


class Buffering(ProcessFunction):
    def __init__(self):
        self.buffer = []

    def process_element(self, value, ctx):
        self.buffer.append(value)
        if len(self.buffer) == 2:
            yield self.buffer
            self.buffer.clear()


class PerKey(KeyedProcessFunction):
    def __init__(self):
        self.values = {}

    def process_element(self, value, ctx):
        values = self.values.setdefault(ctx.get_current_key(), set())
        values.add(value)
        yield ctx.get_current_key(), values


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection([1, 2, 3, 4, 5, 6])
    growing = numbers.flat_map(Growing()).map(lambda x: ("growing", str(x)), TEXTS)
    row_type = Types.ROW([Types.INT(), Types.STRING()])
    reused = numbers.map(Reused(), row_type).map(lambda x: ("reused", f"{x[0]} {x[1]}"), TEXTS)
    buffered = numbers.process(Buffering()).map(lambda x: ("buffered", str(x)), TEXTS)
    per_key = numbers.key_by(lambda x: x % 2).process(PerKey())
    per_key = per_key.map(lambda x: (f"key-{x[0]}", str(sorted(x[1]))), TEXTS)
    return growing.union(reused, buffered, per_key)
