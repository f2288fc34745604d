"""A regular join of two tables in millstream's SQL with the disk backend: the cost of a row against the rows in state.

Promises: every row of one table meets one of the other, in another order; all rows stay in state; the output is
discarded, after a small run whose rows are counted. Few rows are joined several times, in turn with the fewer they are
compared with, and the middle times count: a hundred thousand rows take less than what differs from run to run.
Does not know: the size it is compared with."""

from __future__ import annotations

import statistics

from benchmarks import common, sql_input
from benchmarks.jobs.sql_nexmark import session

_OTHER_FACTOR = 3_266_489_917  # a prime too: the sides meet in another order
_ENOUGH = 1_500_000  # rows a side that are timed, in as many runs as it takes


def table(name: str, records: int, factor: int) -> str:
    """A table whose keys are all the numbers below `records`, in an irregular order."""
    return (
        f"CREATE TABLE {name} (i BIGINT, k AS MOD(i * CAST({factor} AS BIGINT), CAST({records} AS BIGINT))) WITH ("
        "'connector' = 'datagen', 'rows-per-second' = '1000000000', 'fields.i.kind' = 'sequence', "
        f"'fields.i.start' = '0', 'fields.i.end' = '{records - 1}')"
    )


def joined(records: int, statement: str) -> int:
    """Join so many rows a side; gives the rows that the statement told, if any."""
    env = session()
    env.get_config().set("state.backend.type", "rocksdb")
    env.execute_sql(table("orders", records, sql_input.FACTOR))
    env.execute_sql(table("payments", records, _OTHER_FACTOR))
    env.execute_sql("CREATE TABLE nowhere (k BIGINT, o BIGINT, p BIGINT) WITH ('connector' = 'blackhole')")
    rows = "SELECT o.k, o.i AS o, p.i AS p FROM orders AS o JOIN payments AS p ON o.k = p.k"
    done = env.execute_sql(statement.format(rows=rows))
    if statement.startswith("INSERT"):
        done.wait()
        return 0
    with done.collect() as found:
        return len({tuple(row) for row in found})


def taken(records: int) -> float:
    """The seconds of a run."""
    return common.seconds(lambda: joined(records, "INSERT INTO nowhere {rows}"))


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=10_000, records=100_000)
    matched = joined(args.base, "{rows}")
    if matched != args.base:
        message = f"{args.base} rows a side gave {matched} rows"
        raise SystemExit(message)
    taken(args.base)  # to warm up
    pairs = [(taken(args.base), taken(args.records)) for _ in range(max(1, _ENOUGH // args.records))]
    first, second = map(statistics.median, zip(*pairs, strict=True))
    rates = common.rate_between(args.base, first, args.records, second)
    common.answer({**rates, "us_per_row": 1e6 / rates["rate"] / 2})


if __name__ == "__main__":
    main()
