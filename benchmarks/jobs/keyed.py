"""KeyedProcessFunction with ValueState in millstream: count and sum per key.

Promises: PyFlink's program, name for name: rows, a key selector in Python, the same function; the output is discarded.
Does not know: peers, or how the rate is compared."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import common

from millstream.common import Row, Types, WatermarkStrategy
from millstream.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.connectors.datagen import DataGenSource, RandomInt, RandomString
from millstream.datastream.state import ValueState, ValueStateDescriptor

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
INPUT = Types.ROW_NAMED(["k", "amount"], [Types.STRING(), Types.LONG()])
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


def environment() -> StreamExecutionEnvironment:
    """Defaults, at the benchmark's parallelism."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(common.PARALLELISM)
    return env


def totals(payments: DataStream) -> DataStream:
    """(key, running count, running sum) of each record."""
    return payments.key_by(lambda row: row[0], key_type=Types.STRING()).process(CountAndSum(), output_type=OUTPUT)


def check() -> dict[str, int]:
    """The digest of a small run's rows, on the peers' first records."""
    payments = [
        Row(common.string_key(common.key_of(index) % common.CHECK_KEYS), common.amount_of(index))
        for index in range(common.CHECK_RECORDS)
    ]
    stream = totals(environment().from_collection(payments, type_info=INPUT))
    with stream.execute_and_collect("keyed-check") as rows:
        return common.keyed_digest((row[0], row[1], row[2]) for row in rows)


def run(records: int) -> None:
    """One measured run."""
    env = environment()
    source = DataGenSource(
        fields={
            "k": RandomString(prefix="user-", cardinality=common.KEYS),
            "amount": RandomInt(0, common.AMOUNTS - 1),
        },
        count=records,
        seed=7,
    )
    payments = env.from_source(source, WatermarkStrategy.no_watermarks(), "payments")
    totals(payments).sink_to(BlackHoleSink())
    env.execute("keyed")


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=1_000_000, records=8_000_000)
    common.contest(args, check, lambda: common.rate_of(run, args))


if __name__ == "__main__":
    main()
