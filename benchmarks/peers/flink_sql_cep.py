"""A pattern of three payments in Flink SQL's MATCH_RECOGNIZE, all of it in the JVM.

Promises: numbers and random keys made in Flink, output to the blackhole connector, no Python after planning.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import common
from benchmarks.peers import flink_sql_window

COLUMNS = "k BIGINT, first_i BIGINT, last_i BIGINT"


def query() -> str:
    """(key, first record, last record) of each match."""
    return (
        "SELECT k, first_i, last_i FROM payments MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        "MEASURES A.i AS first_i, C.i AS last_i ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW "
        f"PATTERN (A B C) WITHIN INTERVAL '{common.CEP_WITHIN_MS // 60_000}' MINUTE "
        f"DEFINE A AS A.amount < {common.TINY_BELOW}, "
        f"B AS B.amount >= {common.TINY_BELOW} AND B.amount < {common.LARGE_FROM}, "
        f"C AS C.amount >= {common.LARGE_FROM})"
    )


def check() -> dict[str, int]:
    """The digest of a small run's matches."""
    key = f"MOD({common.KEY_SQL}, CAST({common.CEP_CHECK_KEYS} AS BIGINT))"
    tables = flink_sql_window.tables_with_input(common.CEP_CHECK_RECORDS, key)
    with tables.execute_sql(query()).collect() as rows:
        return common.digest(tuple(row) for row in rows)


def run(records: int) -> None:
    """One measured run."""
    tables = flink_sql_window.tables_with_input(records, common.random_key_sql(common.CEP_KEYS))
    tables.execute_sql(f"CREATE TABLE nowhere ({COLUMNS}) WITH ('connector' = 'blackhole')")
    tables.execute_sql(f"INSERT INTO nowhere {query()}").wait()


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=1_000_000, records=5_000_000)
    common.contest(args, check, lambda: common.rate_of(run, args))


if __name__ == "__main__":
    main()
