"""Tumbling event-time window in millstream: count and sum per key with built-in aggregates.

Promises: the same windows and the same kind of input as the peers; the output is discarded.
Does not know: peers, or how the rate is compared."""

from __future__ import annotations

from benchmarks import common

from millstream.common import Row, Time, Types, WatermarkStrategy
from millstream.datastream import DataStream, StreamExecutionEnvironment
from millstream.datastream.aggregations import Aggregations, Count, Sum
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.connectors.datagen import DataGenSource, RandomInt, Sequence
from millstream.datastream.window import TumblingEventTimeWindows

INPUT = Types.ROW_NAMED(["key", "amount", "ts"], [Types.LONG(), Types.LONG(), Types.LONG()])


def environment() -> StreamExecutionEnvironment:
    """Defaults, at the benchmark's parallelism."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(common.PARALLELISM)
    return env


def by_time() -> WatermarkStrategy:
    """Event time is the field `ts`, in order."""
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")


def totals(payments: DataStream, window_ms: int) -> DataStream:
    """(key, window start, window end, count, sum) of each key and window."""
    windows = TumblingEventTimeWindows.of(Time.milliseconds(window_ms))
    return payments.key_by("key").window(windows).aggregate(Aggregations(n=Count(), total=Sum("amount")))


def check() -> dict[str, int]:
    """The digest of a small run's rows, on the peers' first records."""
    payments = [
        Row(common.key_of(index) % common.CHECK_KEYS, common.amount_of(index), index)
        for index in range(common.CHECK_RECORDS)
    ]
    stream = environment().from_collection(payments, type_info=INPUT).assign_timestamps_and_watermarks(by_time())
    with totals(stream, common.CHECK_WINDOW_MS).execute_and_collect("window-check") as rows:
        return common.digest((row["key"], row["window_start"], row["n"], row["total"]) for row in rows)


def run(records: int) -> None:
    """One measured run."""
    env = environment()
    source = DataGenSource(
        fields={
            "key": RandomInt(0, common.KEYS - 1),
            "amount": RandomInt(0, common.AMOUNTS - 1),
            "ts": Sequence(step=1),
        },
        count=records,
        seed=7,
    )
    payments = env.from_source(source, by_time(), "payments")
    totals(payments, common.WINDOW_MS).sink_to(BlackHoleSink())
    env.execute("window")


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=4_000_000, records=24_000_000)
    common.contest(args, check, lambda: common.rate_of(run, args))


if __name__ == "__main__":
    main()
