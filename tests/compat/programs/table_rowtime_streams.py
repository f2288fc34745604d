"""Timestamps of records become the metadata column rowtime, and the column becomes the timestamps again."""

from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessFunction
from pyflink.table import DataTypes, Schema, StreamTableEnvironment

ORDER = "none"
WATERMARKS = "final"


class Milliseconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[0]


class Stamped(ProcessFunction):
    def process_element(self, value, ctx):
        yield f"{ctx.timestamp()} {value}"


def define(env):
    t_env = StreamTableEnvironment.create(env)
    records = [(1, 42, "a"), (2, 5, "a"), (3, 1000, "c"), (100, 1000, "c")]
    stream = env.from_collection(records, Types.ROW([Types.LONG(), Types.INT(), Types.STRING()]))
    stream = stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Milliseconds())
    ).map(lambda row: Row(row[1], row[2]), Types.ROW([Types.INT(), Types.STRING()]))
    table = t_env.from_changelog_stream(
        stream,
        Schema.new_builder()
        .column_by_metadata("rowtime", DataTypes.TIMESTAMP_LTZ(3))
        .column_by_expression("computed", "UPPER(f1)")
        .watermark("rowtime", "SOURCE_WATERMARK()")
        .build(),
    )
    reordered = table.select(table.computed, table.rowtime, table.f0)
    target = (
        Schema.new_builder()
        .column("f1", DataTypes.STRING())
        .column_by_metadata("rowtime", DataTypes.TIMESTAMP_LTZ(3))
        .column_by_expression("ignored", "UPPER(f1)")
        .column("f0", DataTypes.BIGINT())
        .build()
    )
    output = [", ".join(table.get_schema().get_field_names())]
    stamped = t_env.to_changelog_stream(reordered, target).process(Stamped(), Types.STRING())
    with stamped.execute_and_collect() as elements:
        output += list(elements)
    return output
