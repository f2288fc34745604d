"""Rolling aggregations on elements that are plain numbers use the element itself (position 0)."""

from pyflink.common import Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [i * 13 % 31 - 15 for i in range(30)]
    keyed = env.from_collection(data, type_info=Types.INT()).key_by(lambda n: n % 3, key_type=Types.INT())
    kind = Types.TUPLE([Types.STRING(), Types.INT()])
    return (
        keyed.max()
        .map(lambda n: (f"max-{n % 3}", n), output_type=kind)
        .union(
            keyed.min(0).map(lambda n: (f"min-{n % 3}", n), output_type=kind),
            keyed.filter(lambda n: n % 3 == 0).map(lambda n: ("multiple of 3", n), output_type=kind),
            env.from_collection(data, type_info=Types.INT())
            .key_by(lambda n: 0, key_type=Types.INT())
            .sum()
            .map(lambda n: ("total", n), output_type=kind),
        )
    )
