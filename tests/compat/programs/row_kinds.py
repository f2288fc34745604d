"""The kind of a Row survives typed operators, and Row.of_kind sets it."""

from pyflink.common import Row, RowKind, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"

KINDS = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]


def define(env: StreamExecutionEnvironment) -> DataStream:
    kind = Types.ROW_NAMED(["id", "value"], [Types.INT(), Types.STRING()])
    return (
        env.from_collection(list(range(20)), type_info=Types.INT())
        .map(lambda i: Row.of_kind(KINDS[i % 4], id=i % 3, value=f"v{i}"), output_type=kind)
        .filter(lambda row: row.get_row_kind() != RowKind.UPDATE_BEFORE)
        .key_by(lambda row: row.id, key_type=Types.INT())
        .map(lambda row: row, output_type=kind)
        .map(lambda row: (row.id, str(row.get_row_kind()), row.value))
    )
