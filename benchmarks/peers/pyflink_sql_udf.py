"""A user's function in a query of PyFlink, in process mode, which is its default.

Promises: the program of millstream's side; the output is discarded in the JVM.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import common, sql_functions
from benchmarks.peers.flink_sql_nexmark import session
from pyflink import table
from pyflink.table import udf


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=20_000, records=200_000, kind="scalar")
    function = sql_functions.functions(table, udf)[args.kind]
    checked = sql_functions.check(session(), args.kind, function)
    rates = common.rate_of(
        lambda count: sql_functions.run(session(), args.kind, function, count), args.base, args.records
    )
    common.answer({**rates, "check": checked})


if __name__ == "__main__":
    main()
