"""union keeps every element of all inputs and the order of each."""

from pyflink.common import Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    kind = Types.TUPLE([Types.STRING(), Types.INT()])
    odd = env.from_collection([("odd", 2 * i + 1) for i in range(15)], type_info=kind)
    even = env.from_collection([("even", 2 * i) for i in range(10)], type_info=kind)
    squares = env.from_collection([i * i for i in range(8)], type_info=Types.INT()).map(
        lambda n: ("square", n), output_type=kind
    )
    return odd.union(even, squares).map(lambda e: (e[0], e[1], e[1] % 4))
