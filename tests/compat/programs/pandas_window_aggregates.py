"""A pandas aggregate is called once for each group window; in batch mode, every timestamp can be the time of windows."""

import datetime

from pyflink.table import AggregateFunction, DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col, lit
from pyflink.table.udf import udaf
from pyflink.table.window import Slide, Tumble

ORDER = "none"
WATERMARKS = "final"

D = DataTypes


class Spread(AggregateFunction):
    def create_accumulator(self):
        return []

    def accumulate(self, accumulator, values):
        accumulator.append(f"{values.dtype}:{values.max() - values.min()}:{len(values)}")

    def get_value(self, accumulator):
        return "|".join(accumulator)


def define(env):
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set("parallelism.default", "1")
    start = datetime.datetime(2018, 3, 11, 3, 10)
    minutes = [(1, 2, 0), (3, 2, 0), (2, 1, 0), (1, 3, 30), (1, 8, 70), (2, 3, 20)]
    table = t_env.from_elements(
        [(a, b, start + datetime.timedelta(minutes=m)) for a, b, m in minutes],
        D.ROW([D.FIELD("a", D.TINYINT()), D.FIELD("b", D.SMALLINT()), D.FIELD("ts", D.TIMESTAMP(3))]),
    )
    spread = udaf(Spread(), result_type=D.STRING(), func_type="pandas")
    lines = []
    tumble = Tumble.over(lit(1).hours).on(col("ts")).alias("w")
    with table.window(tumble).group_by(col("w")).select(col("w").start, spread(col("b"))).execute().collect() as rows:
        lines += [f"tumble {row[0]} {row[1]}" for row in rows]
    slide = Slide.over(lit(1).hours).every(lit(30).minutes).on(col("ts")).alias("w")
    with table.window(slide).group_by(col("a"), col("w")).select(col("a"), col("w").end, spread(col("b"))) \
            .execute().collect() as rows:
        lines += [f"slide {row[0]} {row[1]} {row[2]}" for row in rows]
    return lines
