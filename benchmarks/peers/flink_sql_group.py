"""Unbounded GROUP BY in Flink SQL: count and sum per key, all of it in the JVM.

Promises: mini-batches and two phases, which is Flink's default with them; no Python after planning.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import common, sql_input
from benchmarks.peers.flink_sql_nexmark import session


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=2_000_000, records=12_000_000, keys=100_000)
    checked = sql_input.check(session())
    rates = common.rate_of(lambda count: sql_input.run(session(), count, args.keys), args.base, args.records)
    common.answer({**rates, "check": checked})


if __name__ == "__main__":
    main()
