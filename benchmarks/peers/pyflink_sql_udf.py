"""A user's function in a query of PyFlink, in process mode, which is its default.

Promises: the program of millstream's side; the output is discarded in the JVM.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import sql_functions
from benchmarks.peers.flink_sql_nexmark import session
from pyflink import table
from pyflink.table import udf

if __name__ == "__main__":
    sql_functions.measure(__doc__, table, udf, session, base=20_000, records=200_000)
