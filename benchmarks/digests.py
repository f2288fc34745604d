"""The digests that the checks must give, computed by DuckDB, which no contestant is.

    python benchmarks/digests.py            # all but TPC-H, of which it generates 300 MB first
    python benchmarks/digests.py tpch

Promises: writes digests.json beside it; nothing of a contestant's code is used but the formulas of the input. Nexmark's
results are those that Flink gave when they were recorded; those of graphs, points and entities come from plain loops
over the input.
Does not know: contestants."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

import duckdb  # noqa: E402
from benchmarks import (  # noqa: E402
    batch_input,
    common,
    entity_messages,
    graph_input,
    kafka_peers,
    points_input,
    sql_input,
    tpch_input,
)
from benchmarks.nexmark import golden  # noqa: E402
from benchmarks.nexmark import measure as nexmark  # noqa: E402

FILE = Path(__file__).with_name("digests.json")
Digest = dict[str, int]
_KEY = common.KEY_SQL
_N = common.CHECK_RECORDS


def ask(query: str, records: int = _N) -> list[tuple[object, ...]]:
    """Return the rows of a query over the table `r` with the column `i`: 0 to `records` - 1."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE r AS SELECT range AS i FROM range({records})")
        return connection.execute(query).fetchall()


def keyed() -> Digest:
    """The last count and sum of each key, and a row for each record."""
    rows = ask(
        f"SELECT 'user-' || MOD({_KEY}, {common.CHECK_KEYS}) AS k, COUNT(*), CAST(SUM({common.AMOUNT_SQL}) AS BIGINT) "
        "FROM r GROUP BY k"
    )
    return {"rows": _N, "digest": common.digest(rows)["digest"]}


def window() -> Digest:
    """The count and sum of each key and window."""
    return common.digest(
        ask(
            f"SELECT MOD({_KEY}, {common.CHECK_KEYS}) AS k, i - i % {common.CHECK_WINDOW_MS} AS s, COUNT(*), "
            f"CAST(SUM({common.AMOUNT_SQL}) AS BIGINT) FROM r GROUP BY k, s"
        )
    )


def cep() -> Digest:
    """Each tiny, middle and large payment in a row of one key."""
    return common.digest(
        ask(
            "SELECT k, i2, i FROM (SELECT i, k, a, LAG(a) OVER w AS a1, LAG(a, 2) OVER w AS a2, LAG(i, 2) OVER w AS i2 "
            f"FROM (SELECT i, MOD({_KEY}, {common.CEP_CHECK_KEYS}) AS k, {common.AMOUNT_SQL} AS a FROM r) "
            f"WINDOW w AS (PARTITION BY k ORDER BY i)) WHERE a2 < {common.TINY_BELOW} AND a1 >= {common.TINY_BELOW} "
            f"AND a1 < {common.LARGE_FROM} AND a >= {common.LARGE_FROM} AND i - i2 < {common.CEP_WITHIN_MS}",
            common.CEP_CHECK_RECORDS,
        )
    )


def words() -> Digest:
    """How often each word comes."""
    share = f"(i * {batch_input.STEP} % {batch_input.RANGE}) / CAST({batch_input.RANGE} AS DOUBLE)"
    return common.digest(
        ask(f"SELECT 'w' || CAST(FLOOR(POW({common.CHECK_KEYS}, {share})) AS BIGINT) AS w, COUNT(*) FROM r GROUP BY w")
    )


def sessions() -> Digest:
    """The first time, last time and sum of each session of a key."""
    return common.digest(
        ask(
            f"SELECT k, MIN(i), MAX(i), CAST(SUM(a) AS BIGINT) FROM (SELECT *, SUM(b) OVER (PARTITION BY k ORDER BY i) "
            f"AS s FROM (SELECT *, CASE WHEN i - LAG(i) OVER (PARTITION BY k ORDER BY i) <= {batch_input.CHECK_GAP} "
            f"THEN 0 ELSE 1 END AS b FROM (SELECT i, MOD({_KEY}, {common.CHECK_KEYS}) AS k, {common.AMOUNT_SQL} AS a "
            "FROM r))) GROUP BY k, s"
        )
    )


def sql_group() -> Digest:
    """The count and sum of each key."""
    return common.digest(
        ask(
            f"SELECT {sql_input.key_sql(sql_input.CHECK_KEYS)} AS k, COUNT(*), "
            f"CAST(SUM({common.AMOUNT_SQL}) AS BIGINT) FROM r GROUP BY k"
        )
    )


def functions() -> Digest:
    """What the scalar and the pandas function give of each row."""
    key = sql_input.key_sql(sql_input.CHECK_KEYS)
    return common.digest(ask(f"SELECT i, {common.AMOUNT_SQL} * 3 + {key} % 7 FROM r"))


def aggregate() -> Digest:
    """The sum of each key."""
    return common.digest(
        ask(
            f"SELECT {sql_input.key_sql(sql_input.CHECK_KEYS)} AS k, CAST(SUM({common.AMOUNT_SQL}) AS BIGINT) FROM r "
            "GROUP BY k"
        )
    )


def kafka() -> Digest:
    """The records that are copied."""
    return common.digest(ask("SELECT LPAD(CAST(i AS VARCHAR), 100, '0') FROM r", kafka_peers.CHECKED))


def start() -> Digest:
    """The first query of all."""
    values = "(VALUES (1, 2), (1, 3), (2, 4)) AS t (k, v)"
    return common.digest(ask(f"SELECT k, COUNT(*), CAST(SUM(v) AS BIGINT) FROM {values} GROUP BY k ORDER BY k"))


def sql_join() -> Digest:
    """Each row of one side meets one of the other."""
    n = f"CAST({_N} AS BIGINT)"
    sides = (f"SELECT MOD(i * {factor}, {n}) AS k FROM r" for factor in (sql_input.FACTOR, sql_input.OTHER_FACTOR))
    one, other = sides
    (row,) = ask(f"SELECT COUNT(*) FROM ({one}) AS a JOIN ({other}) AS b USING (k)")
    return {"rows": int(str(row[0])), "digest": 0}


def nexmark_queries() -> Digest:
    """What Flink left of some queries."""
    return nexmark.digest((golden.FOLDER / f"{query}.txt").read_text() for query in nexmark.CHECKED)


def tpch() -> Digest:
    """The answers at scale 1."""
    with duckdb.connect() as connection:
        for path in sorted(tpch_input.tables("1").glob("*.parquet")):
            connection.execute(f"CREATE VIEW {path.stem} AS SELECT * FROM read_parquet('{path}')")
        return tpch_input.check(lambda text: connection.execute(text).fetchall())


ALL: dict[str, Callable[[], Digest]] = {
    "keyed": keyed,
    "window": window,
    "cep": cep,
    "words": words,
    "sessions": sessions,
    "sql-group": sql_group,
    "functions": functions,
    "aggregate": aggregate,
    "kafka": kafka,
    "start": start,
    "graph-components": graph_input.expected_components,
    "graph-pagerank": graph_input.expected_ranks,
    "path-labels": graph_input.expected_path_labels,
    "kmeans": points_input.expected_centers,
    "entities": entity_messages.expected,
    "sql-join": sql_join,
    "nexmark": nexmark_queries,
    "tpch": tpch,
}


def expected() -> dict[str, Digest]:
    """Read what was written."""
    return dict(json.loads(FILE.read_text()))


def main() -> None:
    """Write the digests that were asked for, or all but TPC-H's."""
    wanted = sys.argv[1:] or [name for name in ALL if name != "tpch"]
    digests = {**(expected() if FILE.exists() else {}), **{name: ALL[name]() for name in wanted}}
    FILE.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
