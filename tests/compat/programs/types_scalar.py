"""Scalar types across an exchange: the Python value that comes out, extremes and rounding included."""

import datetime
from decimal import Decimal

from pyflink.common import Instant, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"

CASES = [
    ("BOOLEAN", Types.BOOLEAN, [True, False]),
    ("BYTE", Types.BYTE, [0, 127, -128]),
    ("SHORT", Types.SHORT, [0, 32767, -32768]),
    ("INT", Types.INT, [0, 2**31 - 1, -(2**31)]),
    ("LONG", Types.LONG, [0, 2**63 - 1, -(2**63)]),
    ("FLOAT", Types.FLOAT, [0.1, 1.5, 16777217.0, -3.4028234e38, float("inf"), float("nan")]),
    ("DOUBLE", Types.DOUBLE, [0.1, -1e308, float("-inf"), 5e-324]),
    ("STRING", Types.STRING, ["", "a b", "grüße", "日本", "tab\tnew\nline"]),
    ("BIG_DEC", Types.BIG_DEC, [Decimal("0.10"), Decimal("12345678901234567890.123456789"), Decimal("-1")]),
    ("SQL_DATE", Types.SQL_DATE, [datetime.date(1970, 1, 1), datetime.date(2024, 2, 29), datetime.date(1900, 1, 1)]),
    (
        "SQL_TIME",
        Types.SQL_TIME,
        [datetime.time(0, 0), datetime.time(23, 59, 59, 999000), datetime.time(1, 2, 3, 4567)],
    ),
    (
        "SQL_TIMESTAMP",
        Types.SQL_TIMESTAMP,
        [datetime.datetime(1970, 1, 1), datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)],
    ),
    ("INSTANT", Types.INSTANT, [Instant.of_epoch_milli(0), Instant.of_epoch_milli(1700000000123), Instant(5, 7)]),
    ("PICKLED", Types.PICKLED_BYTE_ARRAY, [1 + 2j, {"a": {1}}, b"\x00\xff", range(3)]),
]


def define(env: StreamExecutionEnvironment) -> DataStream:
    streams = []
    for name, make, values in CASES:
        typed = env.from_collection(list(range(len(values)))).map(lambda i, v=values: v[i], output_type=make())
        streams.append(typed.rebalance().map(lambda v, n=name: (n, type(v).__name__, repr(v))))
    return streams[0].union(*streams[1:])
