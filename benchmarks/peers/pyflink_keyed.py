"""KeyedProcessFunction with ValueState in PyFlink: count and sum per key, in thread or process mode.

Promises: the input is generated in the JVM and the output discarded there, so Python runs the key
selector and the user's function. `cache` is how many states Python keeps, and `bundle` how many records go to Python
together.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.state import ValueState, ValueStateDescriptor
from pyflink.java_gateway import get_gateway

from benchmarks import common
from benchmarks.peers import flink_session

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
OUTPUT = Types.ROW([Types.STRING(), Types.LONG(), Types.LONG()])


class CountAndSum(KeyedProcessFunction):
    """Running count and sum of a key."""

    state: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("totals", PAIR))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        count, total = self.state.value() or (0, 0)
        count, total = count + 1, total + value[1]
        self.state.update((count, total))
        yield Row(value[0], count, total)


def pipeline(
    args: argparse.Namespace, records: int, key: str
) -> tuple[StreamExecutionEnvironment, DataStream]:
    """The environment, and the stream of totals; `key` is SQL."""
    env = flink_session.environment(
        {
            "python.execution-mode": args.mode,
            "python.state.cache-size": str(args.cache),
            "python.fn-execution.bundle.size": str(args.bundle),
        }
    )
    tables = flink_session.session(env)
    numbers = tables.from_data_stream(flink_session.numbers(env, records)).alias("i")
    tables.create_temporary_view("numbers", numbers)
    table = tables.sql_query(
        f"SELECT CONCAT('user-', CAST({key} AS STRING)) AS k, {common.AMOUNT_SQL} AS amount FROM numbers"
    )
    totals = (
        tables.to_data_stream(table)
        .key_by(lambda row: row[0], key_type=Types.STRING())
        .process(CountAndSum(), output_type=OUTPUT)
    )
    return env, totals


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, mode="thread", base=50_000, records=300_000, cache=1_000, bundle=1_000)

    def check() -> dict[str, Any]:
        _, totals = pipeline(args, common.CHECK_RECORDS, f"MOD({common.KEY_SQL}, {common.CHECK_KEYS})")
        with totals.execute_and_collect() as rows:
            return common.keyed_digest(tuple(row) for row in rows)

    def run(records: int) -> None:
        env, totals = pipeline(args, records, common.random_key_sql(common.KEYS))
        totals.sink_to(Sink(get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()))
        env.execute(f"keyed-{args.mode}")

    common.contest(args, check, lambda: common.rate_of(run, args))


if __name__ == "__main__":
    main()
