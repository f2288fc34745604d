"""Schemas of streams whose columns are expressions (by name, by position, time attributes), and of declared tables."""

from pyflink.common import Row, Types
from pyflink.table import DataTypes, StreamTableEnvironment
from pyflink.table.expressions import col

ORDER = "all"
WATERMARKS = "final"

CHOICES = {
    "reordered": [col("y"), col("x")],
    "renamed": [col("p"), col("q")],
    "mixed": [col("x"), col("q")],
    "left out": [col("y").alias("z")],
    "first": [col("p")],
    "too many": [col("p"), col("q"), col("r")],
    "proctime": [col("p"), col("q"), col("t").proctime],
    "proctime too early": [col("p"), col("t").proctime],
    "rowtime": [col("p"), col("q"), col("t").rowtime],
    "rowtime replaces": [col("t").rowtime, col("q")],
    "rowtime by name": [col("x").rowtime, col("y")],
    "both": [col("y"), col("x"), col("r").rowtime, col("p").proctime],
    "proctime renamed": [col("y"), col("r").proctime.alias("rr")],
    "twice": [col("x"), col("x")],
    "computed": [col("x") + 1],
    "two rowtimes": [col("p"), col("q"), col("a").rowtime, col("b").rowtime],
    "proctime replaces": [col("x"), col("y"), col("x").proctime],
}
ATOMIC = {"name": [col("v")], "f0": [col("f0")], "proctime": [col("v"), col("p").proctime], "two": [col("v"), col("w")]}
ELEMENTS = {
    "named rows keep names": ([Row(a=1, b="x")], ["p", "q"]),
    "nested rows": ([(Row(1, 2),)], ["a"]),
    "maps": ([({"k": [1]},)], ["a"]),
    "no common type": ([(1,), ("x",)], ["a"]),
    "longer than CHAR": ([("abc",)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.CHAR(2))])),
    "shorter than CHAR": ([("a",)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.CHAR(2))])),
    "VARCHAR": ([("ab",)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.VARCHAR(2))])),
    "longer than VARCHAR": ([("abc",)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.VARCHAR(2))])),
}


def define(env):
    env.get_config().set_auto_watermark_interval(200)  # else Flink refuses rowtime attributes
    t_env = StreamTableEnvironment.create(env)
    rows = env.from_collection([(1, "a")], Types.ROW_NAMED(["x", "y"], [Types.LONG(), Types.STRING()]))
    numbers = env.from_collection(["a"], Types.STRING())
    output = []

    def show(name, make):
        try:
            text = str(make())
        except Exception:
            text = "refused"
        output.append(f"{name}: {' '.join(text.split())}")

    for name, columns in CHOICES.items():
        show(f"row {name}", lambda columns=columns: t_env.from_data_stream(rows, *columns).get_schema())
    for name, columns in ATOMIC.items():
        show(f"atomic {name}", lambda columns=columns: t_env.from_data_stream(numbers, *columns).get_schema())
    for name, (elements, schema) in ELEMENTS.items():
        show(name, lambda e=elements, s=schema: t_env.from_elements(e, s).get_schema())

    t_env.execute_sql(
        "CREATE TABLE declared (a INT NOT NULL COMMENT 'ca', b STRING, ts TIMESTAMP(3), c AS a + 1, "
        "m STRING METADATA FROM 'x' VIRTUAL, p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, "
        "PRIMARY KEY (a) NOT ENFORCED) WITH ('connector'='datagen')"
    )
    declared = t_env.from_path("declared")
    resolved = declared.get_resolved_schema()
    show("declared", lambda: resolved)
    show("watermarks", lambda: [str(each) for each in resolved.get_watermark_specs()])
    show("columns", lambda: [(str(c), c.get_comment(), c.is_physical()) for c in resolved.get_columns()])
    show("key", lambda: resolved.get_primary_key().as_summary_string())
    show("physical", lambda: declared.select(col("a"), col("ts"), col("c")).get_resolved_schema())
    show("unresolved", lambda: t_env.get_catalog("default_catalog").list_tables("default_database"))

    show("drop all columns", lambda: declared.drop_columns(*map(col, "a b ts c m p".split())).get_schema())
    show("rename to an existing name", lambda: declared.rename_columns(col("a").alias("b")).get_schema())
    t_env.create_temporary_view("v", t_env.from_data_stream(rows))
    show("a view is no table", lambda: t_env.drop_temporary_table("v"))
    show("the view", lambda: t_env.drop_temporary_view("v"))
    show("unknown time zone", lambda: t_env.get_config().set_local_timezone("no/where"))
    return output
