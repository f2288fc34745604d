"""project keeps the fields named by position, in the order given, once or more often."""

from pyflink.common import Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "all"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [(i, f"n{i}", i / 4, i % 2 == 0) for i in range(20)]
    kind = Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE(), Types.BOOLEAN()])
    return env.from_collection(data, type_info=kind).project(3, 1, 0)
