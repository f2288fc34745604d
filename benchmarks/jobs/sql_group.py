"""Unbounded GROUP BY in millstream's SQL: count and sum per key.

Promises: the statements of the Flink peer, with mini-batches; the output is discarded.
Does not know: peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import common, sql_input
from benchmarks.jobs.sql_nexmark import session


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=2_000_000, records=12_000_000, keys=100_000)
    checked = sql_input.check(session())
    rates = common.rate_of(lambda count: sql_input.run(session(), count, args.keys), args.base, args.records)
    common.answer({**rates, "check": checked})


if __name__ == "__main__":
    main()
