"""Rows without a declared type travel as they are: positional, named, nested, with kinds."""

from pyflink.common import Row, RowKind
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "all"
WATERMARKS = "final"

KINDS = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]


def make(i):
    shapes = [
        Row(i, f"v{i}"),
        Row(number=i, text=f"v{i}"),
        Row("number", "text")(i, f"v{i}"),
        Row(outer=Row(i), inner=[Row(a=i)]),
    ]
    row = shapes[i % 4]
    row.set_row_kind(KINDS[i // 4 % 4])
    return row


def define(env: StreamExecutionEnvironment) -> DataStream:
    rows = env.from_collection(list(range(20))).map(make)
    return rows.map(lambda row: (str(row), str(row.get_row_kind()), len(row), row == make(0), Row(1, 2) == row))
