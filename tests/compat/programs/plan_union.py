"""A union, a keyed reduce at its own parallelism and a rebalanced map: also recorded as an execution plan."""

from pyflink.common import Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    kind = Types.TUPLE([Types.STRING(), Types.INT()])
    left = env.from_collection([("l", i) for i in range(12)], type_info=kind)
    right = env.from_collection([("r", i) for i in range(9)], type_info=kind)
    return (
        left.union(right)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .name("running sum")
        .set_parallelism(1)
        .rebalance()
        .map(lambda e: (e[0], e[1], e[1] % 2))
        .name("parity")
    )
