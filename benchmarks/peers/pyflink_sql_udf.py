"""A user's function in a query of PyFlink, in process or thread mode; thread mode runs scalar functions only.

Promises: the program of millstream's side; the output is discarded in the JVM. `bundle` is how many rows go to Python
together, `arrow` how many are in a batch of pandas functions, `cache` how many states Python keeps.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import common, sql_functions
from benchmarks.peers.flink_sql_group import offer
from pyflink import table
from pyflink.table import udf

if __name__ == "__main__":
    args = common.arguments(
        __doc__,
        base=20_000,
        records=200_000,
        kind="scalar",
        mode="process",
        bundle=1_000,
        arrow=1_000,
        cache=1_000,
        mini_batch=50_000,
    )
    settings = {
        "python.execution-mode": args.mode,
        "python.fn-execution.bundle.size": str(args.bundle),
        "python.fn-execution.arrow.batch.size": str(args.arrow),
        "python.state.cache-size": str(args.cache),
    }
    sql_functions.measure(table, udf, offer, args, settings)
