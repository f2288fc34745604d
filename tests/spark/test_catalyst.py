"""Batch SQL through Catalyst: which parts of the recorded queries stay streams, and the results of millstream's own
functions."""

from __future__ import annotations

import datetime
import math
import random
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.append(str(Path(__file__).parent.parent / "sql"))

from sql_cases import GOLDEN, changelog, content, environment, materialize

from millstream.engine.spark.catalyst import QuerySession
from millstream.engine.spark.compatibility import collect_batches, create_frame
from millstream.errors import UserError
from millstream.sql.catalyst import columns as spark_columns
from millstream.sql.catalyst.expressions import spell_expression
from millstream.sql.columns import arrow_type, to_internal_values
from millstream.sql.connectors.simple import register_values
from millstream.sql.evaluation.evaluate import Frame, Projection
from millstream.sql.logical import nodes as l
from millstream.table import DataTypes, EnvironmentSettings, TableEnvironment
from millstream.table.udf import udf

BATCH = {"execution.runtime-mode": "BATCH"}
TOPICS = sorted(path.stem for path in GOLDEN.glob("*.yaml") if "queries" in content(path.stem))
DIFFERENT = {
    # An aggregate without GROUP BY has one row for empty input in batch mode; a stream emits none before the first row.
    ("aggregates", "empty"): [["+I", "0", "<NULL>"]],
}


@pytest.mark.parametrize("topic", TOPICS)
def test_batch_and_streaming_have_the_same_final_table(topic: str, spark_context: Any) -> None:
    case = content(topic)
    env = environment(case, BATCH)
    wrong: dict[str, Any] = {}
    for query in case["queries"]:
        if "changelog" not in query:
            continue
        names, types, rows = changelog(env, query["sql"])
        if (names, types) != (query["names"], query["types"]):
            wrong[query["name"]] = names, types
        found = materialize(rows)
        wanted = materialize(DIFFERENT.get((topic, query["name"]), query["changelog"]))
        if found != wanted:
            wrong[query["name"]] = found - wanted, wanted - found
    assert wrong == {}


def test_a_query_reads_all_rows_of_a_source_with_a_rate(spark_context: Any) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.execute_sql("""CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '5000',
        'rows-per-second' = '10', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '5000')""")
    with env.execute_sql("SELECT COUNT(*), MIN(n), SUM(n) FROM numbers").collect() as rows:
        assert [tuple(row) for row in rows] == [(5000, 1, 12502500)]


VALUES: dict[str, tuple[str, list[Any]]] = {
    "i": ("INT", [0, 1, -1, 7, 2**31 - 1, -(2**31)]),
    "j": ("INT", [0, 1, 2, 3, -5, 2**31 - 1]),
    "b": ("BIGINT", [0, 1, -1, 10**12, 2**63 - 1, -(2**63)]),
    "n": ("TINYINT", [0, 1, 127, -128]),
    "m": ("DECIMAL(10, 2)", [Decimal("0.00"), Decimal("1.25"), Decimal("-3.55"), Decimal("99999999.99")]),
    "w": ("DECIMAL(38, 10)", [Decimal("0E-10"), Decimal("1.0000000005"), Decimal("-9999999999999999999999999999.5")]),
    "d": ("DOUBLE", [0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, 1e300]),
    "f": ("FLOAT", [0.0, 1.5, -2.25, math.nan]),
    "s": (
        "STRING",
        ["", "a", "A", "ab", "a_b", "100%", "back\\slash", "it's", "é", "日本", "\U0001f600x", "line\nfeed"],
    ),
    "u": ("STRING", ["", "a", "b", "\t", "\u0000"]),
    "x": ("BOOLEAN", [True, False]),
    "y": ("BOOLEAN", [True, False]),
    "dt": ("DATE", [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), datetime.date(1, 1, 1)]),
    "ts": (
        "TIMESTAMP(3)",
        [datetime.datetime.fromisoformat(text) for text in ("2024-02-29 23:59:59.999", "1969-12-31 01:00")],
    ),
    "lt": ("TIMESTAMP_LTZ(3)", [datetime.datetime(2024, 3, 10, 2, 30, tzinfo=datetime.UTC)]),
}
EXPRESSIONS = """
i + j; i - j; i * j; b + i; b * b; n + n; n * n; -i; -b; -n; ABS(i); ABS(b); i / 7; b / 3; i % 7; b % 10
MOD(i, 3); m + m; m - w; m * m; w * w; w + w; w * 10; m / 3; m / 7.5; w / NULLIF(m, 0.00); i / NULLIF(j, 0); -m
m + i; m * 2; m % 3; d + d; d - 1; d * 2; f + f; f * d; d / 2; d / 0.25; -d; i = j; i <> j; i < j; b >= i; m > i
m = 1.25; d = d; d <> d; d < 1.5; d >= d; f = d; f < 2; s = u; s < u; s >= 'a'; dt < DATE '2000-01-01'; ts = ts
ts > TIMESTAMP '2000-01-01 00:00:00'; lt = lt; x = y; x <> y; x AND y; x OR y; NOT x; x IS TRUE; x IS NOT TRUE
x IS FALSE; x IS NOT FALSE; x IS UNKNOWN; x IS NOT UNKNOWN; i IS NULL; s IS NOT NULL; i IS DISTINCT FROM j
s IS NOT DISTINCT FROM u; i IN (1, 7, NULL); s IN ('a', '日本', ''); i NOT IN (0, 1); i BETWEEN -1 AND 7
COALESCE(i, j, 5); COALESCE(s, u); NULLIF(i, j); NULLIF(s, 'a'); CASE WHEN x THEN i WHEN y THEN j ELSE 0 END
CASE i WHEN 1 THEN 'one' WHEN 7 THEN s END; CASE WHEN i > j THEN m ELSE w END; IF(x, i, j); s || u
CONCAT(s, 'é', u); CHAR_LENGTH(s); SUBSTRING(s FROM 2); SUBSTRING(s FROM 1 FOR 2); SUBSTRING(s, 2, 0)
s LIKE 'a%'; s LIKE '%'; s LIKE '_'; s LIKE 'a\\_b'; s LIKE '%é%'; s NOT LIKE 'a_b'; s LIKE '日_'
EXTRACT(YEAR FROM dt); EXTRACT(MONTH FROM dt); EXTRACT(DAY FROM ts); EXTRACT(HOUR FROM ts)
EXTRACT(QUARTER FROM dt); EXTRACT(MINUTE FROM ts); ts + INTERVAL '1' DAY; ts - INTERVAL '90' MINUTE
lt + INTERVAL '36' HOUR; ts < ts + INTERVAL '0.001' SECOND; CAST(i AS TINYINT); CAST(b AS INT)
CAST(i AS BIGINT); CAST(i AS DOUBLE); CAST(b AS DOUBLE); CAST(b AS FLOAT); CAST(i AS DECIMAL(5, 2))
CAST(b AS DECIMAL(38, 10)); CAST(m AS DECIMAL(4, 1)); CAST(w AS DECIMAL(20, 4)); CAST(m AS DOUBLE)
CAST(w AS DOUBLE); CAST(f AS DOUBLE); CAST(s AS STRING); CAST(dt AS TIMESTAMP(3)); CAST(ts AS TIMESTAMP(6))
'it''s; \\ %' || s; CAST(1 AS BIGINT) + b; 1.5 * m; DATE '2024-01-31' + INTERVAL '1' MONTH; UPPER('é') || s
"""


def test_spark_expressions_compute_the_same_as_our_functions(spark_context: Any) -> None:
    texts = [
        each.strip() for line in EXPRESSIONS.strip().splitlines() for each in line.replace("''s; ", "''s@ ").split(";")
    ]
    texts = [each.replace("''s@ ", "''s; ") for each in texts]
    rng = random.Random(7)
    rows = [tuple(rng.choice([*values, None]) for _, values in VALUES.values()) for _ in range(400)]
    register_values("edges", rows)
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    env.execute_sql(f"CREATE TABLE edges ({columns}) WITH ('connector' = 'values', 'data-id' = 'edges')")
    project = env.sql_query(f"SELECT {', '.join(f'{text} AS e{i}' for i, text in enumerate(texts))} FROM edges")._plan
    assert isinstance(project, l.Project)
    kinds = project.input.schema.types
    arrays = [pa.array([row[i] for row in rows], arrow_type(kind)) for i, kind in enumerate(kinds)]
    frame = Frame(arrays, len(rows))
    named = [
        (text, e, spell_expression(e, [f"c{i}" for i in range(len(kinds))], "UTC"))
        for text, e in zip(texts, project.exprs)
    ]
    # Spark computes FLOAT with DOUBLE as DOUBLE, Flink as the type of the first operand
    assert [text for text, _, found in named if found is None] == ["f * d", "f = d", r"s LIKE 'a\_b'"]
    named = [each for each in named if each[2] is not None]
    session = QuerySession(spark_context).spark
    local = pa.Table.from_batches([spark_columns.to_spark(arrays, project.input.schema, len(rows))])
    spelled = spark_columns.spell_columns(project.input.schema)
    create_frame(session, local, spelled).createOrReplaceTempView("edges")
    selected = ", ".join(f"{found} AS r{i}" for i, (_, _, found) in enumerate(named))
    table = pa.Table.from_batches(collect_batches(session.sql(f"SELECT {selected} FROM edges")))
    wrong = {}
    for i, (text, expression, _) in enumerate(named):
        (ours,) = Projection([expression]).columns(frame)
        theirs = table.column(i).combine_chunks().cast(arrow_type(expression.type), safe=False)
        pairs = zip(
            to_internal_values(ours, expression.type), to_internal_values(theirs, expression.type), rows, strict=True
        )
        differ = [pair for pair in pairs if not _same(*pair[:2])]
        if differ:
            wrong[text] = differ[0][:2], len(differ)
    assert wrong == {}


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


@pytest.fixture
def sales(spark_context: Any) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.get_config().set("parallelism.default", "2")
    register_values("sales", [(i % 7, i, None if i % 5 == 0 else f"item {i % 3}") for i in range(1000)])
    env.execute_sql("CREATE TABLE sales (k INT, v INT, s STRING) WITH ('connector' = 'values', 'data-id' = 'sales')")
    return env


def test_over_functions_number_and_rank_the_rows_of_a_partition(spark_context: Any) -> None:
    register_values("ranked", [("a", 1), ("a", 1), ("a", 2), ("a", 3), ("b", 5)])
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.execute_sql("CREATE TABLE ranked (k STRING, v INT) WITH ('connector' = 'values', 'data-id' = 'ranked')")
    calls = ("DENSE_RANK()", "CUME_DIST()", "PERCENT_RANK()", "NTILE(2)", "LEAD(v)")
    over = "OVER (PARTITION BY k ORDER BY v)"
    with env.execute_sql(f"SELECT k, v, {', '.join(f'{call} {over}' for call in calls)} FROM ranked").collect() as rows:
        found = sorted(tuple(row) for row in rows)
    assert found == [
        ("a", 1, 1, 0.5, 0.0, 1, 1),
        ("a", 1, 1, 0.5, 0.0, 1, 2),
        ("a", 2, 2, 0.75, 2 / 3, 2, 3),
        ("a", 3, 3, 1.0, 1.0, 2, None),
        ("b", 5, 1, 1.0, 0.0, 1, None),
    ]


def test_rows_of_relations_reach_every_sink_once(sales: TableEnvironment, tmp_path: Path) -> None:
    for name in ("one", "two"):
        sales.execute_sql(
            f"CREATE TABLE {name} (k STRING, n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = '{tmp_path / name}')"
        )
    both = sales.create_statement_set()
    both.add_insert_sql("INSERT INTO one SELECT CAST(k AS STRING), SUM(CAST(v AS BIGINT)) FROM sales GROUP BY k")
    both.add_insert_sql("INSERT INTO two SELECT s, COUNT(*) FROM sales GROUP BY s ORDER BY s DESC")
    both.execute().wait()
    found = {
        name: [
            line for path in sorted((tmp_path / name).rglob("*")) if path.is_file() for line in path.read_text().split()
        ]
        for name in ("one", "two")
    }
    assert sorted(found["one"]) == sorted(f"{k},{sum(range(k, 1000, 7))}" for k in range(7))
    assert len(found["two"]) == 4 * 2 - 1  # a space in three of the four names


def test_a_query_reads_files_that_were_added_or_changed_since_the_last_one(spark_context: Any, tmp_path: Path) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'parquet'"
    env.execute_sql(f"CREATE TABLE numbers (n BIGINT) WITH ({options})")
    expected = []
    for name, numbers in (("a", [1, 2]), ("b", [3]), ("a", [4, 5, 6])):
        pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), tmp_path / f"{name}.parquet")
        with env.execute_sql("SELECT SUM(n) FROM numbers").collect() as rows:
            expected.append([tuple(row) for row in rows])
    assert expected == [[(3,)], [(6,)], [(18,)]]


def test_a_query_that_fails_on_its_data_is_a_user_error(sales: TableEnvironment) -> None:
    for sql in ("SELECT SUM(10 / v) FROM sales", "SELECT COUNT(CAST(s AS INT)) FROM sales"):
        with pytest.raises(UserError, match=r"division by zero|item"), sales.execute_sql(sql).collect() as rows:
            list(rows)


def test_user_functions_run_in_our_operators_after_catalyst(sales: TableEnvironment) -> None:
    sales.create_temporary_function("twice", udf(lambda n: 2 * n, result_type=DataTypes.BIGINT()))
    sql = "SELECT k, twice(n) FROM (SELECT k, COUNT(*) AS n FROM sales GROUP BY k) AS counted"
    plan = sales.explain_sql(sql).split("== Optimized Execution Plan ==")[1]
    assert "Calc(" in plan
    assert "Catalyst(" in plan
    with sales.execute_sql(sql).collect() as rows:
        assert sorted(tuple(row) for row in rows) == [(k, 2 * len(range(k, 1000, 7))) for k in range(7)]
