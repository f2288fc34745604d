"""Rows of collect() have no field names, nested rows neither; a FLOAT has the digits that Java prints."""

from pyflink.table import StreamTableEnvironment

ORDER = "all"
WATERMARKS = "final"

QUERIES = (
    "SELECT 1",
    "SELECT 1 AS a, 'x' AS b",
    "SELECT CAST(1.23 AS FLOAT), CAST(10000000000 AS FLOAT), CAST(0.00001 AS FLOAT), CAST(1.23 AS DOUBLE)",
    "SELECT ARRAY[CAST(1.1 AS FLOAT), CAST(2.7 AS FLOAT)], MAP['a', CAST(1.1 AS FLOAT)]",
    "SELECT ROW(1, ROW('a', CAST(1.1 AS FLOAT)))",
    "SELECT CAST(ROW(1, 2) AS ROW<a INT, b INT>)",
    "SELECT ARRAY[ROW(1, 2)], MAP['a', ROW(1, 2)]",
    "SELECT CAST(NULL AS ROW<a INT>), CAST(NULL AS FLOAT)",
    "SELECT CAST(1.5 AS DECIMAL(10, 3)), CAST(1 AS TINYINT), TRUE, CAST('ab' AS CHAR(4))",
    "SELECT DATE '2020-01-02', TIME '10:11:12', TIMESTAMP '2020-01-02 03:04:05.123'",
    "SELECT x'0aff', CAST(x'0a' AS BYTES), ROW(x'01')",
    "SELECT COLLECT(x) FROM (VALUES 1, 1, 2) AS t(x)",
    "SELECT a, COUNT(*) FROM (VALUES 1, 1, 1) AS t(a) GROUP BY a",
    "SHOW CATALOGS",
    "CREATE TABLE t (a INT NOT NULL, r ROW<x FLOAT>, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'datagen')",
    "DESCRIBE t",
    "SHOW TABLES",
    "SHOW FULL MODULES",
)


def define(env):
    t_env = StreamTableEnvironment.create(env)
    output = []
    for query in QUERIES:
        with t_env.execute_sql(query).collect() as rows:
            output += [f"{row.get_row_kind()} {row} {hasattr(row, '_fields')}" for row in rows]
    return output
