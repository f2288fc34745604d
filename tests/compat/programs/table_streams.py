"""Tables become streams by position, streams become tables with the columns of their schema."""

from pyflink.common import Row, RowKind, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.table import ChangelogMode, DataTypes, Schema, StreamTableEnvironment

ORDER = "none"
WATERMARKS = "final"


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[0] * 1000


def define(env):
    t_env = StreamTableEnvironment.create(env)
    t = t_env.from_elements([(1, "Hi", "Hello"), (2, "Hello", "Hello")], ["a", "b", "c"])
    sums = t.group_by(t.c).select(t.c, t.a.sum.alias("s"))
    three = [Types.LONG(), Types.STRING(), Types.STRING()]
    two = [Types.STRING(), Types.LONG()]
    key = Schema.new_builder().column("c", DataTypes.STRING().not_null()).column("s", DataTypes.BIGINT())
    wide = Schema.new_builder().column("x", DataTypes.STRING()).column("y", DataTypes.DECIMAL(20, 2)).build()
    streams = {
        "append": t_env.to_append_stream(t.select(t.a + 1, t.b + "flink", t.c), Types.ROW(three)),
        "append named": t_env.to_append_stream(t, Types.ROW_NAMED(["c", "a", "b"], three)),
        "append tuple": t_env.to_append_stream(t, Types.TUPLE(three)),
        "retract": t_env.to_retract_stream(sums, Types.ROW(two)),
        "retract named": t_env.to_retract_stream(sums, Types.ROW_NAMED(["s", "c"], two)),
        "changelog": t_env.to_changelog_stream(sums),
        "changelog schema": t_env.to_changelog_stream(sums, wide),
        "changelog key": t_env.to_changelog_stream(sums, key.primary_key("c").build(), ChangelogMode.upsert()),
        "insert only": t_env.to_data_stream(t),
    }
    output = []
    for name, stream in streams.items():
        with stream.execute_and_collect() as elements:
            for element in elements:
                kind = f"{element.get_row_kind()} " if isinstance(element, Row) else ""
                output.append(f"{name} {kind}{element}")
    pairs = env.from_collection([(1, "a"), (2, "b")], Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.STRING()]))
    timed = pairs.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    )
    changes = [("I", "a", 1), ("U", "a", 2), ("I", "b", 5), ("D", "b", 5)]
    kinds = {"I": RowKind.INSERT, "U": RowKind.UPDATE_AFTER, "D": RowKind.DELETE}
    upserts = env.from_collection(
        [Row.of_kind(kinds[kind], name, n) for kind, name, n in changes], Types.ROW([Types.STRING(), Types.INT()])
    )
    by_key = t_env.from_changelog_stream(
        upserts, Schema.new_builder().column("f0", DataTypes.STRING().not_null()).column("f1", DataTypes.INT())
        .primary_key("f0").build(), ChangelogMode.upsert()
    )
    tables = {
        "computed": t_env.from_data_stream(pairs, Schema.new_builder().column_by_expression("z", "x + 1").build()),
        "physical": t_env.from_data_stream(
            pairs,
            Schema.new_builder().column_by_expression("z", "x + 1").column("x", DataTypes.INT()).build(),
        ),
        "metadata": t_env.from_data_stream(
            timed, Schema.new_builder().column_by_metadata("rowtime", "TIMESTAMP(3)").build()
        ),
        "upserts": by_key,
        "upserts summed": by_key.select(by_key.f1.sum),
    }
    for name, table in tables.items():
        output.append(f"{name} {table.get_schema().get_field_names()}")
        with table.execute().collect() as rows:
            output += [f"{name} {row.get_row_kind()} {row}" for row in rows]
    return output
