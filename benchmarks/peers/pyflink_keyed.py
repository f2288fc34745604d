"""KeyedProcessFunction with ValueState in PyFlink: count and sum per key, in thread or process mode.

Promises: the input is generated in the JVM and the output discarded there, so Python runs the key
selector and the user's function.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyflink.common import Configuration, Row, Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.state import ValueState, ValueStateDescriptor
from pyflink.java_gateway import get_gateway
from pyflink.table import StreamTableEnvironment

from benchmarks import common

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


def pipeline(mode: str, records: int, keys: int) -> tuple[StreamExecutionEnvironment, DataStream]:
    """The environment, and the stream of totals."""
    configuration = Configuration()
    configuration.set_string("python.execution-mode", mode)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(common.PARALLELISM)
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(
        "CREATE TABLE numbers (i BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000000000', "
        f"'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.i.end' = '{records - 1}')"
    )
    key = f"CONCAT('user-', CAST(MOD({common.KEY_SQL}, {keys}) AS STRING))"
    table = tables.sql_query(f"SELECT {key} AS k, {common.AMOUNT_SQL} AS amount FROM numbers")
    totals = (
        tables.to_data_stream(table)
        .key_by(lambda row: row[0], key_type=Types.STRING())
        .process(CountAndSum(), output_type=OUTPUT)
    )
    return env, totals


def main() -> None:
    """Check, then measure."""
    args = common.arguments(__doc__, mode="thread", base=50_000, records=300_000)
    mode: str = args.mode

    def run(records: int) -> None:
        env, totals = pipeline(mode, records, common.KEYS)
        totals.sink_to(Sink(get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()))
        env.execute(f"keyed-{mode}")

    _, totals = pipeline(mode, common.CHECK_RECORDS, common.CHECK_KEYS)
    with totals.execute_and_collect() as rows:
        check: dict[str, Any] = common.keyed_digest(tuple(row) for row in rows)
    common.answer({**common.rate_of(run, args.base, args.records), "check": check})


if __name__ == "__main__":
    main()
