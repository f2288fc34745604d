"""Columns without an alias: _c with the position, EXPR$ for aggregates, row$field, name-TYPE."""

from pyflink.common import Row
from pyflink.table import DataTypes, StreamTableEnvironment
from pyflink.table.expressions import UNBOUNDED_ROW, call, call_sql, col, lit
from pyflink.table.udf import udf
from pyflink.table.window import Over, Tumble

ORDER = "all"
WATERMARKS = "final"

ROW = DataTypes.ROW(
    [
        DataTypes.FIELD("a", DataTypes.BIGINT()),
        DataTypes.FIELD("b", DataTypes.STRING()),
        DataTypes.FIELD(
            "r",
            DataTypes.ROW(
                [
                    DataTypes.FIELD("x", DataTypes.INT()),
                    DataTypes.FIELD("y", DataTypes.ROW([DataTypes.FIELD("z", DataTypes.INT())])),
                ]
            ),
        ),
        DataTypes.FIELD("arr", DataTypes.ARRAY(DataTypes.INT())),
    ]
)


def define(env):
    t_env = StreamTableEnvironment.create(env)
    t = t_env.from_elements([(1, "Hi", Row(1, Row(2)), [1])], ROW)
    timed = t.add_columns(call_sql("PROCTIME()").alias("pt"))
    by_window = timed.window(Tumble.over(lit(1).seconds).on(col("pt")).alias("w")).group_by(col("w"), col("b"))
    over = timed.over_window(
        Over.partition_by(col("b")).order_by(col("pt")).preceding(UNBOUNDED_ROW).alias("w")
    )
    same = udf(lambda x: x, result_type=DataTypes.BIGINT())
    tables = [
        t.select(t.a + 1, t.b, t.a * 2),
        t.select(t.a.cast(DataTypes.INT()), (t.a + 1).cast(DataTypes.INT()), t.b.cast(DataTypes.DECIMAL(10, 2))),
        t.select(t.a.try_cast(DataTypes.INT()), lit(1), t.b.upper_case),
        t.select(t.r.get("x"), t.r.get(0).alias("r0"), t.r.get("y").get("z"), t.r.get("x").cast(DataTypes.BIGINT())),
        t.select(t.arr.at(1), t.arr.cardinality),
        t.select(t.r.flatten, t.a),
        t.select(t.a.sum, t.a.max),
        t.select(t.a.sum + 1, t.a.max, t.a.sum, t.a.min.cast(DataTypes.INT())),
        t.select(call("sum0", t.a), call("count", t.a)),
        t.group_by(t.b).select(t.b, t.a.sum, t.a.sum + t.a.max, t.a.max),
        t.group_by(t.b).select(t.a.sum.alias("s"), t.a.max, t.a.count.distinct, t.b.upper_case),
        t.group_by((t.a + 1).alias("k")).select(col("k"), t.b.count),
        t.add_columns(t.a + 1, lit(2)),
        t.add_columns(t.a + 1).add_columns(t.a + 2),
        t.add_or_replace_columns(t.a + 1),
        t.select(col("*"), t.a + 1),
        t.select(t.a).select(same(col("*"))),
        t.select(same(t.a), t.b),
        t.map(udf(lambda r: r.a, result_type=DataTypes.BIGINT())),
        by_window.select(col("b"), col("w").start, col("a").sum, col("w").end),
        over.select(col("a"), col("a").sum.over(col("w")), col("a").max.over(col("w")) + 1),
    ]
    return [", ".join(table.get_schema().get_field_names()) for table in tables]
