"""Unbounded GROUP BY in Flink SQL: count and sum per key, all of it in the JVM.

Promises: mini-batches and two phases, which is Flink's default with them; no Python after planning.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import sql_input
from benchmarks.peers import flink_session
from pyflink.table import StreamTableEnvironment


def offer(records: int, key: str, settings: dict[str, str]) -> StreamTableEnvironment:
    """A session with the view `payments`; `key` is SQL."""
    tables = flink_session.number_session(records, settings)
    tables.execute_sql(sql_input.payments_of_numbers(key))
    return tables


if __name__ == "__main__":
    sql_input.measure(__doc__, offer)
