"""A user's function in a query of millstream.

Promises: the program of the PyFlink peer; the output is discarded.
Does not know: peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import common, sql_functions
from benchmarks.jobs.sql_nexmark import session

from millstream import table
from millstream.table import udf


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, base=200_000, records=2_000_000, kind="scalar")
    function = sql_functions.functions(table, udf)[args.kind]
    checked = sql_functions.check(session(), args.kind, function)
    rates = common.rate_of(
        lambda count: sql_functions.run(session(), args.kind, function, count), args.base, args.records
    )
    common.answer({**rates, "check": checked})


if __name__ == "__main__":
    main()
