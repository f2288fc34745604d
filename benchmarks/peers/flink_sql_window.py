"""Tumbling event-time window in Flink SQL: count and sum per key, all of it in the JVM.

Promises: input from the datagen connector, output to the blackhole connector, no Python after planning.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks import common


def tables_with_input(records: int) -> TableEnvironment:
    """A table environment with the table `payments`: `records` rows, one for each millisecond of event time."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", str(common.PARALLELISM))
    tables.get_config().set("table.local-time-zone", "UTC")
    tables.execute_sql(
        f"CREATE TABLE payments (i BIGINT, k AS {common.KEY_SQL}, amount AS {common.AMOUNT_SQL}, "
        "ts AS TO_TIMESTAMP_LTZ(i, 3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', "
        "'rows-per-second' = '1000000000', 'fields.i.kind' = 'sequence', 'fields.i.start' = '0', "
        f"'fields.i.end' = '{records - 1}')"
    )
    return tables


def query(window_ms: int, keys: int) -> str:
    """(key, window start, count, sum) of each key and window."""
    return (
        f"SELECT MOD(k, {keys}) AS k, window_start, COUNT(*) AS n, SUM(amount) AS total FROM TABLE(TUMBLE("
        f"TABLE payments, DESCRIPTOR(ts), INTERVAL '{window_ms // 1000}' SECOND(4))) "
        f"GROUP BY MOD(k, {keys}), window_start, window_end"
    )


def check() -> dict[str, int]:
    """The digest of a small run's rows."""
    tables = tables_with_input(common.CHECK_RECORDS)
    start = "1000 * TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_start)"
    small = query(common.CHECK_WINDOW_MS, common.CHECK_KEYS)
    with tables.execute_sql(f"SELECT k, {start}, n, total FROM ({small})").collect() as rows:
        return common.digest(tuple(row) for row in rows)


def run(records: int) -> None:
    """One measured run."""
    tables = tables_with_input(records)
    columns = "k BIGINT, window_start TIMESTAMP(3), n BIGINT, total BIGINT"
    tables.execute_sql(f"CREATE TABLE nowhere ({columns}) WITH ('connector' = 'blackhole')")
    tables.execute_sql(f"INSERT INTO nowhere {query(common.WINDOW_MS, common.KEYS)}").wait()


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=2_000_000, records=12_000_000)
    checked = check()
    common.answer({**common.rate_of(run, args.base, args.records), "check": checked})


if __name__ == "__main__":
    main()
