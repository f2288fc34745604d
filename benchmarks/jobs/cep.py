"""A pattern of three payments in millstream.

Promises: the records and the pattern of the peers; the output is discarded.
Does not know: peers, or how the rate is compared."""

from __future__ import annotations

from typing import Any

from benchmarks import common
from benchmarks.jobs.payments_source import PaymentsSource

from millstream.cep import CEP, AfterMatchSkipStrategy, Pattern, field
from millstream.common import Types, WatermarkStrategy
from millstream.datastream import DataStream, StreamExecutionEnvironment
from millstream.datastream.connectors.blackhole import BlackHoleSink

MATCH = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])


def pattern() -> Pattern:
    """Tiny, middle, large: one directly after the other."""
    amount = field("amount")
    tiny = Pattern.begin("tiny", AfterMatchSkipStrategy.skip_past_last_event()).where(amount < common.TINY_BELOW)
    middle = tiny.next("middle").where((amount >= common.TINY_BELOW) & (amount < common.LARGE_FROM))
    return middle.next("large").where(amount >= common.LARGE_FROM).within(common.CEP_WITHIN_MS)


def told(match: dict[str, list[Any]]) -> tuple[int, int, int]:
    """(key, first record, last record)."""
    first, last = match["tiny"][0], match["large"][0]
    return first[0], first[1], last[1]


def matches(env: StreamExecutionEnvironment, records: int, keys: int) -> DataStream:
    """The matches among the first records."""
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("i")
    payments = env.from_source(PaymentsSource(records, keys), by_time, "payments")
    return CEP.pattern(payments.key_by("key"), pattern()).select(told, output_type=MATCH)


def environment() -> StreamExecutionEnvironment:
    """Defaults, at the benchmark's parallelism."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(common.PARALLELISM)
    return env


def check() -> dict[str, int]:
    """The digest of a small run's matches."""
    found = matches(environment(), common.CEP_CHECK_RECORDS, common.CEP_CHECK_KEYS)
    with found.execute_and_collect("cep-check") as rows:
        return common.digest(tuple(row) for row in rows)


def run(records: int) -> None:
    """One measured run."""
    env = environment()
    matches(env, records, common.CEP_KEYS).sink_to(BlackHoleSink())
    env.execute("cep")


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=1_000_000, records=5_000_000)
    common.contest(args, check, lambda: common.rate_of(run, args))


if __name__ == "__main__":
    main()
