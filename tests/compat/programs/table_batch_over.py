"""Batch: OVER with frames that end after the current row."""

from pyflink.table import EnvironmentSettings, StreamTableEnvironment

ORDER = "none"
WATERMARKS = "final"

FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)


def define(env):
    t_env = StreamTableEnvironment.create(env, EnvironmentSettings.in_batch_mode())
    rows = [(i, "a" if i % 3 else "b", f"2020-01-01 00:00:{5 * (i // 2):02d}") for i in range(1, 9)]
    t_env.create_temporary_view("source", t_env.from_elements(rows, ["v", "k", "ts"]))
    t_env.create_temporary_view("t", t_env.sql_query("SELECT v, k, CAST(ts AS TIMESTAMP(3)) AS ts FROM source"))
    output = []
    for frame in FRAMES:
        order = "ts, v" if frame.startswith("ROWS") else "ts"
        window = f"PARTITION BY k ORDER BY {order} {frame}"
        query = f"SELECT k, v, SUM(v) OVER w, COUNT(v) OVER w FROM t WINDOW w AS ({window})"
        with t_env.execute_sql(query).collect() as result:
            output += [f"{frame}: {row}" for row in result]
    return output
