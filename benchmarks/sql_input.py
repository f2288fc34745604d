"""Payments for the SQL benchmarks: statements that every engine with Flink's dialect runs.

Promises: standard library only; each key comes equally often, in an irregular order.
Does not know: any engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from benchmarks import common

FACTOR = 2_654_435_761  # a prime, so that it has no factor in common with the number of keys
CHECK_KEYS = 100


def key_sql(keys: int) -> str:
    """The key of payment `i`; below 2**63 for the first three thousand million of them."""
    return f"MOD(i * CAST({FACTOR} AS BIGINT), CAST({keys} AS BIGINT))"


def key_of(index: int, keys: int) -> int:
    """The same in Python."""
    return index * FACTOR % keys


def payments(records: int, keys: int) -> str:
    """The table `payments`, generated where it is read."""
    return (
        f"CREATE TABLE payments (i BIGINT, k AS {key_sql(keys)}, amount AS {common.AMOUNT_SQL}) WITH ("
        "'connector' = 'datagen', 'rows-per-second' = '1000000000', 'fields.i.kind' = 'sequence', "
        f"'fields.i.start' = '0', 'fields.i.end' = '{records - 1}')"
    )


NOWHERE = "CREATE TABLE nowhere (k BIGINT, n BIGINT, total BIGINT) WITH ('connector' = 'blackhole')"
TOTALS = "SELECT k, COUNT(*) AS n, SUM(amount) AS total FROM payments GROUP BY k"


def last_totals(changes: Any) -> dict[str, int]:
    """The digest of the last (key, count, sum) of each key, of rows in the order in which they were told."""
    last: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for key, count, total in changes:
        last[key] = max(last[key], (count, total))
    return common.digest((key, *value) for key, value in last.items())


def expected() -> dict[str, int]:
    """What `last_totals` must give for the first payments with few keys."""
    totals: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for index in range(common.CHECK_RECORDS):
        key = key_of(index, CHECK_KEYS)
        count, total = totals[key]
        totals[key] = (count + 1, total + common.amount_of(index))
    return common.digest((key, *value) for key, value in totals.items())


def check(env: Any) -> dict[str, int]:
    """The digest of a small run in a session."""
    env.execute_sql(payments(common.CHECK_RECORDS, CHECK_KEYS))
    with env.execute_sql(TOTALS).collect() as rows:
        return last_totals(tuple(row) for row in rows if row.get_row_kind().value in (0, 2))


def run(env: Any, records: int, keys: int) -> None:
    """One measured run in a session."""
    env.execute_sql(payments(records, keys))
    env.execute_sql(NOWHERE)
    env.execute_sql(f"INSERT INTO nowhere {TOTALS}").wait()


def measure(description: str | None, session: Callable[[], Any]) -> None:
    """The whole program of a contestant: check, then measure."""
    args = common.arguments(description, base=2_000_000, records=12_000_000, keys=100_000)
    checked = check(session())
    rates = common.rate_of(lambda count: run(session(), count, args.keys), args.base, args.records)
    common.answer({**rates, "check": checked})
