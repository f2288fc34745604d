"""Rolling sum, min, max, min_by and max_by x types of elements x numeric types x ways to name the field."""

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"

NUMBERS = {
    "int": (Types.INT, [5, 3, 3, 9, -2, 9]),
    "long": (Types.LONG, [5, 3, 3, 9, -2, 2**40]),
    "double": (Types.DOUBLE, [0.5, 0.25, 0.25, 9.0, -2.5, 9.0]),
    "float": (Types.FLOAT, [0.5, 0.1, 0.1, 9.0, -2.5, 9.0]),
    "short": (Types.SHORT, [5, 3, 3, 9, -2, 9]),
}
METHODS = ("sum", "min", "max", "min_by", "max_by")


def define(env: StreamExecutionEnvironment) -> DataStream:
    streams = []
    for name, (make, values) in NUMBERS.items():
        tuples = env.from_collection(
            [("ab"[i % 2], v, f"n{i}") for i, v in enumerate(values)],
            type_info=Types.TUPLE([Types.STRING(), make(), Types.STRING()]),
        ).key_by(lambda e: e[0], key_type=Types.STRING())
        rows = env.from_collection(
            [Row("ab"[i % 2], v, f"n{i}") for i, v in enumerate(values)],
            type_info=Types.ROW_NAMED(["key", "number", "text"], [Types.STRING(), make(), Types.STRING()]),
        ).key_by(lambda e: e[0], key_type=Types.STRING())
        plain = env.from_collection(values, type_info=make()).key_by(lambda v: int(v) % 2, key_type=Types.INT())
        for method in METHODS:
            made = {
                "tuple": getattr(tuples, method)(1),
                "row-index": getattr(rows, method)(1),
                "row-name": getattr(rows, method)("number"),
                "plain": getattr(plain, method)(),
            }
            for shape, stream in made.items():
                case = f"{method}/{name}/{shape}"
                streams.append(stream.map(lambda v, n=case: f"{n} {v!r}", output_type=Types.STRING()))
    return streams[0].union(*streams[1:])
