"""A pandas aggregate gets whole columns in one call for each group, as a function or a class; NaN is NULL."""

from pyflink.common import Row
from pyflink.table import AggregateFunction, DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col, lit
from pyflink.table.udf import udaf

ORDER = "none"
WATERMARKS = "final"

D = DataTypes


class Forms(AggregateFunction):
    def create_accumulator(self):
        return []

    def accumulate(self, accumulator, *args):
        accumulator.append(" ".join(f"{type(a).__name__}({a.dtype},{sorted(map(str, a))})" for a in args))

    def get_value(self, accumulator):
        return "|".join(accumulator)


def define(env):
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set("parallelism.default", "1")
    table = t_env.from_elements(
        [(1, 2, "x", 1.5), (1, None, "y", 2.5), (2, 5, None, None), (2, 7, "z", None), (3, None, "w", 0.5)],
        D.ROW([D.FIELD("a", D.TINYINT()), D.FIELD("b", D.INT()), D.FIELD("c", D.STRING()), D.FIELD("d", D.DOUBLE())]),
    )
    forms = udaf(Forms(), result_type=D.STRING(), func_type="pandas")
    mean = udaf(lambda d: d.mean(), result_type=D.DOUBLE(), func_type="pandas")
    values = udaf(lambda b: sorted(b.dropna().astype(int).tolist()), result_type=D.ARRAY(D.INT()), func_type="pandas")
    lines = []
    grouped = table.group_by(col("a"))
    with grouped.select(col("a"), forms(col("a"), col("b"), col("c"), lit(1)), mean(col("d")), values(col("b"))) \
            .execute().collect() as rows:
        lines += [f"grouped {row[0]} {row[1]} {row[2]} {row[3]}" for row in rows]
    whole = udaf(
        lambda frame: Row(",".join(frame.columns), len(frame)),
        result_type=D.ROW([D.FIELD("names", D.STRING()), D.FIELD("n", D.INT())]), func_type="pandas",
    )
    with grouped.aggregate(whole.alias("names", "n")).select(col("a"), col("names"), col("n")) \
            .execute().collect() as rows:
        lines += [f"frame {row[0]} {row[1]} {row[2]}" for row in rows]
    pair = udaf(
        lambda b, c: (b.max(), c.dropna().min()),
        result_type=D.ROW([D.FIELD("x", D.INT()), D.FIELD("y", D.STRING())]), func_type="pandas",
    )
    with table.select(pair(col("b"), col("c")).alias("p")).execute().collect() as rows:
        lines += [f"row {row[0][0]} {row[0][1]}" for row in rows]
    return lines
