"""Rolling sum, min, max, min_by and max_by on Rows, the field chosen by name."""

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [Row("pq"[i * i % 3 % 2], i * 11 % 7, i / 4) for i in range(20)]
    kind = Types.ROW_NAMED(["name", "score", "at"], [Types.STRING(), Types.INT(), Types.DOUBLE()])
    keyed = env.from_collection(data, type_info=kind).key_by(lambda row: row.name, key_type=Types.STRING())

    def tagged(name, stream):
        return stream.map(lambda row: Row(f"{name}-{row['name']}", row.score, row[2]), output_type=kind)

    return tagged("sum", keyed.sum("score")).union(
        tagged("min", keyed.min("score")),
        tagged("max", keyed.max("score")),
        tagged("min_by", keyed.min_by("score")),
        tagged("max_by", keyed.max_by("at")),
    )
