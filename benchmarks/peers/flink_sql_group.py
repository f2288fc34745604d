"""Unbounded GROUP BY in Flink SQL: count and sum per key, all of it in the JVM.

Promises: mini-batches and two phases, which is Flink's default with them; no Python after planning.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import sql_input
from benchmarks.peers.flink_sql_nexmark import session

if __name__ == "__main__":
    sql_input.measure(__doc__, session)
