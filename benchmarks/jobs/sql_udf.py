"""A user's function in a query of millstream.

Promises: the program of the PyFlink peer; the output is discarded.
Does not know: peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import sql_functions
from benchmarks.jobs.sql_nexmark import session

from millstream import table
from millstream.table import udf

if __name__ == "__main__":
    sql_functions.measure(__doc__, table, udf, session, base=200_000, records=2_000_000)
