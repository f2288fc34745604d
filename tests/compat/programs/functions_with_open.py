"""Function classes: open() runs once before the first element; the instance keeps its attributes between elements."""

from pyflink.common import Types
from pyflink.datastream import (
    DataStream,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)

ORDER = "all"
WATERMARKS = "final"


class Numbered(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.seen = 0

    def map(self, value):
        self.seen += 1
        return self.seen, value


class Spell(FlatMapFunction):
    def __init__(self, letters):
        self.letters = letters
        self.opened = 0

    def open(self, runtime_context: RuntimeContext):
        self.opened += 1

    def flat_map(self, value):
        number, n = value
        for i in range(n % 3):
            yield number, self.letters[(n + i) % len(self.letters)] * self.opened


class NotTwiceInARow(FilterFunction):
    def open(self, runtime_context: RuntimeContext):
        self.last = None

    def filter(self, value):
        fresh = value[1] != self.last
        self.last = value[1]
        return fresh


def define(env: StreamExecutionEnvironment) -> DataStream:
    pair = Types.TUPLE([Types.INT(), Types.STRING()])
    numbers = env.from_collection([n * n % 17 for n in range(50)], type_info=Types.INT())
    return (
        numbers.map(Numbered(), output_type=Types.TUPLE([Types.INT(), Types.INT()]))
        .flat_map(Spell("abcd"), output_type=pair)
        .filter(NotTwiceInARow())
    )
