"""partition_custom: the partitioner gets key and number of partitions; the element goes on unchanged."""

from pyflink.common import Types
from pyflink.datastream import DataStream, Partitioner, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"
COLLECT = "file"


class ByLength(Partitioner):
    def partition(self, key, num_partitions):
        return len(key) % num_partitions


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("x" * (i % 4 + 1), i) for i in range(30)]
    kind = Types.TUPLE([Types.STRING(), Types.INT()])
    return (
        env.from_collection(data, type_info=kind)
        .partition_custom(ByLength(), lambda e: e[0])
        .map(lambda e: (e[0], e[1] + 1), output_type=kind)
        .rebalance()
        .partition_custom(lambda key, num_partitions: key % num_partitions, lambda e: e[1])
        .map(lambda e: (e[0], e[1] * 2), output_type=kind)
    )
