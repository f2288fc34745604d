"""BATCH mode: a keyed reduce gives one final result per key."""

from pyflink.common import Types
from pyflink.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    data = [("klmn"[i * i % 7 % 4], i) for i in range(40)]
    kind = Types.TUPLE([Types.STRING(), Types.INT()])
    keyed = env.from_collection(data, type_info=kind).key_by(lambda e: e[0], key_type=Types.STRING())
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1])).union(
        keyed.max_by(1).map(lambda e: (f"max-{e[0]}", e[1]), output_type=kind)
    )
