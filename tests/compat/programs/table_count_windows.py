"""Tumbling and sliding windows of a number of rows, over processing time: a window that is not full is not emitted."""

from pyflink.table import DataTypes, StreamTableEnvironment
from pyflink.table.expressions import call_sql, col, row_interval
from pyflink.table.udf import AggregateFunction, udaf
from pyflink.table.window import Slide, Tumble

ORDER = "none"
WATERMARKS = "final"


class WeightedSum(AggregateFunction):
    def create_accumulator(self):
        return [0]

    def accumulate(self, accumulator, value, weight):
        accumulator[0] += value * weight

    def get_value(self, accumulator):
        return accumulator[0]

    def get_result_type(self):
        return DataTypes.BIGINT()

    def get_accumulator_type(self):
        return DataTypes.ARRAY(DataTypes.BIGINT())


def define(env):
    t_env = StreamTableEnvironment.create(env)
    rows = [(i, "a" if i % 3 else "b", 10 * i) for i in range(1, 18)]
    t = t_env.from_elements(rows, ["id", "k", "v"]).add_columns(call_sql("PROCTIME()").alias("pt"))
    weighted = udaf(WeightedSum())
    windows = {
        "tumble 2": Tumble.over(row_interval(2)).on(col("pt")).alias("w"),
        "tumble 5": Tumble.over(row_interval(5)).on(col("pt")).alias("w"),
        "slide 4 2": Slide.over(row_interval(4)).every(row_interval(2)).on(col("pt")).alias("w"),
        "slide 5 2": Slide.over(row_interval(5)).every(row_interval(2)).on(col("pt")).alias("w"),
        "slide 2 3": Slide.over(row_interval(2)).every(row_interval(3)).on(col("pt")).alias("w"),
    }
    output = []
    for name, window in windows.items():
        grouped = t.window(window).group_by(col("w"), col("k"))
        table = grouped.select(col("k"), col("v").count, col("v").sum.alias("s"))
        with table.execute().collect() as result:
            output += [f"{name} {row.get_row_kind()} {row}" for row in result]
    everything = t.window(Tumble.over(row_interval(4)).on(col("pt")).alias("w")).group_by(col("w"))
    with everything.select(col("v").sum.alias("s"), weighted(col("v"), col("id"))).execute().collect() as result:
        output += [f"all {row.get_row_kind()} {row}" for row in result]
    return output
