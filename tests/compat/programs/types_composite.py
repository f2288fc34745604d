"""Composite types across an exchange: tuples, rows, lists, maps and arrays, nested; which Python value comes out."""

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"

CASES = [
    ("TUPLE", lambda: Types.TUPLE([Types.INT(), Types.TUPLE([Types.STRING(), Types.DOUBLE()])]), [(1, ("a", 0.5))]),
    ("ROW", lambda: Types.ROW([Types.INT(), Types.STRING()]), [Row(1, "a"), Row(2, None)]),
    (
        "ROW_NAMED",
        lambda: Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.LIST(Types.INT())]),
        [Row(1, [2]), Row(b=[3], a=4), Row(None, None)],
    ),
    ("LIST", lambda: Types.LIST(Types.STRING()), [[], ["a", "b"]]),
    ("LIST_LIST", lambda: Types.LIST(Types.LIST(Types.LONG())), [[[1], [], [2, 3]]]),
    ("MAP", lambda: Types.MAP(Types.STRING(), Types.INT()), [{}, {"a": 1}]),
    ("MAP_TUPLE", lambda: Types.MAP(Types.INT(), Types.TUPLE([Types.INT(), Types.BOOLEAN()])), [{1: (2, True)}]),
    ("PRIMITIVE_INT", lambda: Types.PRIMITIVE_ARRAY(Types.INT()), [[1, 2, 3], []]),
    ("PRIMITIVE_BYTE", lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"abc", b""]),
    ("PRIMITIVE_DOUBLE", lambda: Types.PRIMITIVE_ARRAY(Types.DOUBLE()), [[0.5, 1.5]]),
    ("BASIC_ARRAY", lambda: Types.BASIC_ARRAY(Types.STRING()), [["a", "b"], []]),
    ("OBJECT_ARRAY", lambda: Types.OBJECT_ARRAY(Types.TUPLE([Types.INT(), Types.STRING()])), [[(1, "a"), (2, "b")]]),
]


def define(env: StreamExecutionEnvironment) -> DataStream:
    streams = []
    for name, make, values in CASES:
        typed = env.from_collection(list(range(len(values)))).map(lambda i, v=values: v[i], output_type=make())
        streams.append(typed.rebalance().map(lambda v, n=name: (n, type(v).__name__, repr(v))))
    return streams[0].union(*streams[1:])
