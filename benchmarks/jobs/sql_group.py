"""Unbounded GROUP BY in millstream's SQL: count and sum per key.

Promises: the statements of the Flink peer, with mini-batches; the output is discarded.
Does not know: peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import sql_input
from benchmarks.jobs.sql_nexmark import session

if __name__ == "__main__":
    sql_input.measure(__doc__, session)
