"""CoMap and CoFlatMap: each input goes to its own method and keeps its order; co_map drops nothing."""

from pyflink.common import Types
from pyflink.datastream import CoFlatMapFunction, CoMapFunction, DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


class Label(CoMapFunction):
    def map1(self, value):
        return "left", str(value)

    def map2(self, value):
        return "right", value.upper()


class Explode(CoFlatMapFunction):
    def flat_map1(self, value):
        for i in range(value % 3):
            yield "number", f"{value}.{i}"

    def flat_map2(self, value):
        if value != "c":
            yield "letter", value


def define(env: StreamExecutionEnvironment) -> DataStream:
    kind = Types.TUPLE([Types.STRING(), Types.STRING()])
    numbers = env.from_collection(list(range(20)), type_info=Types.INT())
    letters = env.from_collection(list("abcdefabc"), type_info=Types.STRING())
    connected = numbers.connect(letters)
    return connected.map(Label(), output_type=kind).union(connected.flat_map(Explode(), output_type=kind))
