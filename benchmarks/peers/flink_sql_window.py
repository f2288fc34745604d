"""Tumbling event-time window in Flink SQL: count and sum per key, all of it in the JVM.

Promises: numbers and random keys made in Flink, output to the blackhole connector, no Python after planning.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from pyflink.table import StreamTableEnvironment

from benchmarks import common
from benchmarks.peers import flink_session


def tables_with_input(records: int, key: str) -> StreamTableEnvironment:
    """A session with the view `payments`: `records` rows, one for each millisecond of event time; `key` is SQL."""
    tables = flink_session.number_session(records)
    tables.execute_sql(
        f"CREATE TEMPORARY VIEW payments AS SELECT i, {key} AS k, {common.AMOUNT_SQL} AS amount, ts FROM numbers"
    )
    return tables


def query(window_ms: int) -> str:
    """(key, window start, count, sum) of each key and window."""
    return (
        "SELECT k, window_start, COUNT(*) AS n, SUM(amount) AS total FROM TABLE(TUMBLE("
        f"TABLE payments, DESCRIPTOR(ts), INTERVAL '{window_ms // 1000}' SECOND(4))) "
        "GROUP BY k, window_start, window_end"
    )


def check() -> dict[str, int]:
    """The digest of a small run's rows."""
    tables = tables_with_input(common.CHECK_RECORDS, f"MOD({common.KEY_SQL}, {common.CHECK_KEYS})")
    start = "1000 * TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_start)"
    with tables.execute_sql(f"SELECT k, {start}, n, total FROM ({query(common.CHECK_WINDOW_MS)})").collect() as rows:
        return common.digest(tuple(row) for row in rows)


def run(records: int) -> None:
    """One measured run."""
    tables = tables_with_input(records, common.random_key_sql(common.KEYS))
    columns = "k BIGINT, window_start TIMESTAMP(3), n BIGINT, total BIGINT"
    tables.execute_sql(f"CREATE TABLE nowhere ({columns}) WITH ('connector' = 'blackhole')")
    tables.execute_sql(f"INSERT INTO nowhere {query(common.WINDOW_MS)}").wait()


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=2_000_000, records=12_000_000)
    common.contest(args, check, lambda: common.rate_of(run, args))


if __name__ == "__main__":
    main()
