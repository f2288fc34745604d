"""A user's function in a query of millstream.

Promises: the program of the PyFlink peer; the output is discarded.
Does not know: peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import common, sql_functions
from benchmarks.jobs.sql_group import offer

from millstream import table
from millstream.table import udf

if __name__ == "__main__":
    args = common.arguments(__doc__, base=200_000, records=2_000_000, kind="scalar", mini_batch=50_000)
    sql_functions.measure(table, udf, offer, args, {})
