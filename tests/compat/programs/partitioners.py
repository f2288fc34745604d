"""rebalance, rescale, shuffle, forward and broadcast lose and double nothing while there is one subtask."""

from pyflink.common import Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "none"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection(list(range(25)), type_info=Types.INT())

    def tagged(name, stream):
        return stream.map(lambda n: f"{name} {n * n}", output_type=Types.STRING())

    return tagged("rebalance", numbers.rebalance()).union(
        tagged("rescale", numbers.rescale()),
        tagged("shuffle", numbers.shuffle()),
        tagged("forward", numbers.forward()),
        tagged("broadcast", numbers.broadcast()),
    )
