"""A reduce function may change its first argument: results that were emitted before keep their values."""

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


def add_dicts(first, second):
    first["n"] += second["n"]
    first["seen"].append(second["n"])
    return first


def add_rows(first, second):
    first[1] += second[1]
    return first


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection(list(range(1, 13)))
    dicts = numbers.map(lambda i: {"k": i % 3, "n": i, "seen": []}).key_by(lambda d: d["k"]).reduce(add_dicts)
    rows = numbers.map(lambda i: Row(i % 3, i), Types.ROW([Types.INT(), Types.INT()]))
    texts = Types.TUPLE([Types.STRING(), Types.STRING()])
    return dicts.map(lambda d: (f"dict {d['k']}", f"{d['n']} {d['seen']}"), texts).union(
        rows.key_by(lambda r: r[0]).reduce(add_rows).map(lambda r: (f"row {r[0]}", str(r[1])), texts)
    )
