"""Words of the Table API: tables in SQL texts, *, uncalled table functions, sum0, rows as elements, + of strings."""

from datetime import timedelta

from pyflink.table import DataTypes, StreamTableEnvironment
from pyflink.table.expressions import call, col, lit, row
from pyflink.table.udf import udf, udtf

ORDER = "none"
WATERMARKS = "final"

SCHEMA = DataTypes.ROW(
    [
        DataTypes.FIELD("a", DataTypes.BIGINT()),
        DataTypes.FIELD("b", DataTypes.STRING()),
        DataTypes.FIELD("c", DataTypes.FLOAT()),
    ]
)


def define(env):
    t_env = StreamTableEnvironment.create(env)
    t = t_env.from_elements([(1, "Hi", 1.5), (2, "Hello", 2.7)], SCHEMA)
    split = udtf(lambda r: [(letter, r.a) for letter in r.b], result_types=[DataTypes.STRING(), DataTypes.BIGINT()])
    none = udtf(lambda r: [], result_types=[DataTypes.STRING()])
    joined = udf(lambda *values: "|".join(map(str, values)), result_type=DataTypes.STRING())
    tables = {
        "text": t_env.sql_query(f"SELECT a, b FROM {t} WHERE a > 1"),
        "text twice": t_env.sql_query("SELECT x.a, y.b FROM %s AS x JOIN %s AS y ON x.a = y.a" % (t, t)),
        "star": t.select(col("*"), t.a + 1),
        "star call": t.select(joined(t.a, t.b)).alias("j"),
        "lateral": t.join_lateral(split.alias("letter", "n")).select(col("a"), col("letter"), col("n")),
        "left": t.left_outer_join_lateral(none.alias("x")).select(col("b"), col("x")),
        "sum0": t.where(t.a > 5).select(call("sum0", t.a)),
        "row": t_env.from_elements([row(1, "abc", 2.0), row(2, "def", 3.25)], SCHEMA),
        "plus": t.select(t.b + "!", lit("<") + t.b, t.b + t.a, t.b + 1.5, t.b + True, t.a + 1),
        "names": t_env.from_elements([(1, "a")], ["id"]),
        "more names": t_env.from_elements([(1, "a")], ["id", "s", "more"]),
    }
    output = []
    for name, table in tables.items():
        with table.execute().collect() as rows:
            output += [f"{name} {row.get_row_kind()} {row}" for row in rows]
    config = t_env.get_config()
    output.append(f"retention {config.get_idle_state_retention()!r}")
    config.set_idle_state_retention(timedelta(days=1, hours=2))
    output.append(f"retention {config.get_idle_state_retention()!r}")
    return output
