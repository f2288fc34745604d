"""An empty iterable gives no element, nor does a process that returns None; None is a value inside a Row."""

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, ProcessFunction, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


class Sometimes(ProcessFunction):
    def process_element(self, value, ctx: "ProcessFunction.Context"):
        if value[1] % 4 == 0:
            return None
        if value[1] % 4 == 1:
            return []
        if value[1] % 4 == 2:
            return [value, Row("process", None)]
        return iter((value, Row("process", -value[1])))


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection(list(range(20)))
    kind = Types.ROW([Types.STRING(), Types.INT()])
    typed = numbers.map(lambda n: Row("map", None if n % 3 == 0 else n), output_type=kind)
    return typed.union(
        numbers.map(lambda n: Row("process", n)).process(Sometimes(), output_type=kind),
        typed.filter(lambda e: e[1] is None or e[1] > 10).map(lambda e: Row("filter", e[1]), output_type=kind),
        typed.flat_map(lambda e: [] if e[1] is None else [Row("flat", e[1])] * (e[1] % 3), output_type=kind),
        numbers.filter(lambda n: False).map(lambda n: Row("never", n), output_type=kind),
    )
