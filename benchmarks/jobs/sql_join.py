"""A regular join of two tables in millstream's SQL with the disk backend: the cost of a row against the rows in state.

Promises: every row of one table meets one of the other, in another order; all rows stay in state; the output is
discarded. What is timed are the rows between `base` and `records`, so with a large `base` the rows that meet large
state. The check counts the rows of a small join.
Does not know: the size it is compared with."""

from __future__ import annotations

from typing import Any

from benchmarks import common, sql_input
from benchmarks.jobs.sql_nexmark import session
from benchmarks.nexmark.measure import MINI_BATCH


def table(name: str, records: int, factor: int) -> str:
    """A table whose keys are all the numbers below `records`, in an irregular order."""
    return (
        f"CREATE TABLE {name} (i BIGINT, k AS MOD(i * CAST({factor} AS BIGINT), CAST({records} AS BIGINT))) WITH ("
        "'connector' = 'datagen', 'rows-per-second' = '1000000000', 'fields.i.kind' = 'sequence', "
        f"'fields.i.start' = '0', 'fields.i.end' = '{records - 1}')"
    )


def joined(records: int, statement: str) -> int:
    """Join so many rows a side; gives the rows that the statement told, if any."""
    env = session(MINI_BATCH)
    env.get_config().set("state.backend.type", "rocksdb")
    env.execute_sql(table("orders", records, sql_input.FACTOR))
    env.execute_sql(table("payments", records, sql_input.OTHER_FACTOR))
    env.execute_sql("CREATE TABLE nowhere (k BIGINT, o BIGINT, p BIGINT) WITH ('connector' = 'blackhole')")
    rows = "SELECT o.k, o.i AS o, p.i AS p FROM orders AS o JOIN payments AS p ON o.k = p.k"
    done = env.execute_sql(statement.format(rows=rows))
    if statement.startswith("INSERT"):
        done.wait()
        return 0
    with done.collect() as found:
        return len({tuple(row) for row in found})


def check() -> dict[str, int]:
    """How many rows a small join gives, as a digest."""
    return {"rows": joined(common.CHECK_RECORDS, "{rows}"), "digest": 0}


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=500_000, records=2_500_000)

    def run(records: int) -> None:
        joined(records, "INSERT INTO nowhere {rows}")

    def measure() -> dict[str, Any]:
        rates = common.rate_of(run, args)
        return {**rates, "us_per_row": 1e6 / rates["rate"] / 2}

    common.contest(args, check, measure)


if __name__ == "__main__":
    main()
