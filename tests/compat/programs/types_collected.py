"""What execute_and_collect gives for a typed Row of many field types: the values that come back from the cluster."""

import datetime
from decimal import Decimal

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "all"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    kind = Types.ROW_NAMED(
        ["i", "flag", "byte", "short", "long", "float", "double", "dec", "day", "text", "pair", "items", "table"],
        [
            Types.INT(),
            Types.BOOLEAN(),
            Types.BYTE(),
            Types.SHORT(),
            Types.LONG(),
            Types.FLOAT(),
            Types.DOUBLE(),
            Types.BIG_DEC(),
            Types.SQL_DATE(),
            Types.STRING(),
            Types.TUPLE([Types.INT(), Types.STRING()]),
            Types.LIST(Types.INT()),
            Types.MAP(Types.STRING(), Types.INT()),
        ],
    )

    def make(i):
        day = datetime.date(2020, 1, 1) + datetime.timedelta(days=i * 31)
        return Row(
            i, i % 2 == 0, i - 10, i * 100, i << 40, i / 8, i / 10, Decimal(i) / 8, day, "t" * (i % 4), (i, str(i)),
            list(range(i % 4)), {"k": i},
        )  # fmt: skip

    return env.from_collection(list(range(20)), type_info=Types.INT()).map(make, output_type=kind)
