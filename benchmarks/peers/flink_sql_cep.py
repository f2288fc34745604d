"""A pattern of three payments in Flink SQL's MATCH_RECOGNIZE, all of it in the JVM.

Promises: input from the datagen connector, output to the blackhole connector, no Python after planning.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from pyflink.table import TableEnvironment

from benchmarks import common
from benchmarks.peers import flink_sql_window

COLUMNS = "k BIGINT, first_i BIGINT, last_i BIGINT"


def tables_with_input(records: int, keys: int) -> TableEnvironment:
    """A table environment with the view `events`: payments with as many keys as asked for."""
    tables = flink_sql_window.tables_with_input(records)
    tables.execute_sql(
        f"CREATE TEMPORARY VIEW events AS SELECT MOD(k, CAST({keys} AS BIGINT)) AS k, i, amount, ts FROM payments"
    )
    return tables


def query() -> str:
    """(key, first record, last record) of each match."""
    return (
        "SELECT k, first_i, last_i FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        "MEASURES A.i AS first_i, C.i AS last_i ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW "
        f"PATTERN (A B C) WITHIN INTERVAL '{common.CEP_WITHIN_MS // 60_000}' MINUTE "
        f"DEFINE A AS A.amount < {common.TINY_BELOW}, "
        f"B AS B.amount >= {common.TINY_BELOW} AND B.amount < {common.LARGE_FROM}, "
        f"C AS C.amount >= {common.LARGE_FROM})"
    )


def check() -> dict[str, int]:
    """The digest of a small run's matches."""
    tables = tables_with_input(common.CEP_CHECK_RECORDS, common.CEP_CHECK_KEYS)
    with tables.execute_sql(query()).collect() as rows:
        return common.digest(tuple(row) for row in rows)


def run(records: int) -> None:
    """One measured run."""
    tables = tables_with_input(records, common.CEP_KEYS)
    tables.execute_sql(f"CREATE TABLE nowhere ({COLUMNS}) WITH ('connector' = 'blackhole')")
    tables.execute_sql(f"INSERT INTO nowhere {query()}").wait()


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=1_000_000, records=5_000_000)
    checked = check()
    common.answer({**common.rate_of(run, args.base, args.records), "check": checked})


if __name__ == "__main__":
    main()
