"""Payments for the SQL benchmarks: statements that every engine with Flink's dialect runs.

Promises: standard library only; each key comes equally often, in an irregular order.
Does not know: any engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from benchmarks import common
from benchmarks.mini_batch_settings import mini_batches

FACTOR = 2_654_435_761  # a prime, so that it has no factor in common with the number of keys
OTHER_FACTOR = 3_266_489_917  # a prime too: the sides of a join meet in another order
CHECK_KEYS = 100


def key_sql(keys: int) -> str:
    """The key of payment `i`; below 2**63 for the first three thousand million of them."""
    return f"MOD(i * CAST({FACTOR} AS BIGINT), CAST({keys} AS BIGINT))"


def key_of(index: int, keys: int) -> int:
    """The same in Python."""
    return index * FACTOR % keys


def payments(records: int, key: str) -> str:
    """The table `payments` of millstream, generated where it is read; `key` is SQL, or the number of random keys."""
    column, field = f"k AS {key}", ""
    if key.isdigit():
        column, field = "k BIGINT", f", 'fields.k.min' = '0', 'fields.k.max' = '{int(key) - 1}'"
    return (
        f"CREATE TABLE payments (i BIGINT, {column}, amount AS {common.AMOUNT_SQL}) WITH ("
        "'connector' = 'datagen', 'rows-per-second' = '1000000000', 'fields.i.kind' = 'sequence', "
        f"'fields.i.start' = '0', 'fields.i.end' = '{records - 1}'{field})"
    )


def payments_of_numbers(key: str) -> str:
    """The view `payments` over a view `numbers` with the column `i`; `key` is SQL, or the number of random keys."""
    column = common.random_key_sql(int(key)) if key.isdigit() else key
    return f"CREATE TEMPORARY VIEW payments AS SELECT i, {column} AS k, {common.AMOUNT_SQL} AS amount FROM numbers"


NOWHERE = "CREATE TABLE nowhere (k BIGINT, n BIGINT, total BIGINT) WITH ('connector' = 'blackhole')"
TOTALS = "SELECT k, COUNT(*) AS n, SUM(amount) AS total FROM payments GROUP BY k"


def last_totals(changes: Any) -> dict[str, int]:
    """The digest of the last (key, count, sum) of each key, of rows in the order in which they were told."""
    last: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for key, count, total in changes:
        last[key] = max(last[key], (count, total))
    return common.digest((key, *value) for key, value in last.items())


def check(env: Any) -> dict[str, int]:
    """The digest of a small run in a session that has the payments."""
    with env.execute_sql(TOTALS).collect() as rows:
        return last_totals(tuple(row) for row in rows if row.get_row_kind().value in (0, 2))


def run(env: Any) -> None:
    """One measured run in a session that has the payments."""
    env.execute_sql(NOWHERE)
    env.execute_sql(f"INSERT INTO nowhere {TOTALS}").wait()


def measure(description: str | None, offer: Callable[[int, str, dict[str, str]], Any]) -> None:
    """The whole program of a contestant; `offer(records, key, settings)` makes a session that has the payments."""
    args = common.arguments(description, base=2_000_000, records=12_000_000, keys=100_000, mini_batch=50_000)
    settings = mini_batches(args.mini_batch)
    common.contest(
        args,
        lambda: check(offer(common.CHECK_RECORDS, key_sql(CHECK_KEYS), settings)),
        lambda: common.rate_of(lambda count: run(offer(count, str(args.keys), settings)), args),
    )
