"""Rolling sum, min, max, min_by, max_by on tuples: min/max keep the first's other fields, ties keep the first."""

from pyflink.common import Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("xyz"[i % 3], i * 7 % 5 - 2, i) for i in range(24)]
    kind = Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()])
    keyed = env.from_collection(data, type_info=kind).key_by(lambda e: e[0], key_type=Types.STRING())

    def tagged(name, stream):
        return stream.map(lambda e: (f"{name}-{e[0]}", e[1], e[2]), output_type=kind)

    return tagged("sum", keyed.sum(1)).union(
        tagged("min", keyed.min(1)),
        tagged("max", keyed.max(1)),
        tagged("min_by", keyed.min_by(1)),
        tagged("max_by", keyed.max_by(1)),
    )
