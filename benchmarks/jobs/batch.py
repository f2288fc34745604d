"""Word count and sessions over bounded input in millstream, as a batch and as a stream: the same programs.

Promises: the functions of the peers, the same kind of input; the output is discarded.
Does not know: peers, or how the rate is compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from benchmarks import batch_input, common

from millstream.common import Configuration, Time, Types, WatermarkStrategy
from millstream.datastream import DataStream, ProcessWindowFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from millstream.datastream.connectors import NumberSequenceSource
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.connectors.datagen import DataGenSource, RandomInt, Sequence
from millstream.datastream.window import EventTimeSessionWindows

SESSION = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()])


class Click(NamedTuple):
    """What a session is made of."""

    key: int
    ts: int
    amount: int


class Session(ProcessWindowFunction):
    """(key, first click, last click, total) of a session."""

    def process(
        self, key: int, context: ProcessWindowFunction.Context, elements: Iterable[Click]
    ) -> Iterator[tuple[int, int, int, int]]:
        yield batch_input.session(key, elements)


def environment(mode: str) -> StreamExecutionEnvironment:
    """Two subtasks, and a JVM that leaves most of two GiB to Python."""
    configuration = Configuration()
    configuration.set_string("spark.driver.memory", "640m")
    configuration.set_string("millstream.pre-aggregation.enabled", "true")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_runtime_mode(RuntimeExecutionMode[mode.upper()])
    return env.set_parallelism(common.PARALLELISM)


def words(numbers: DataStream, keys: int) -> DataStream:
    """(word, count) of each word."""
    return (
        numbers.map(lambda index: (batch_input.word(index, keys), 1))
        .key_by(lambda pair: pair[0])
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )


def sessions(clicks: DataStream, gap: int) -> DataStream:
    """(key, first click, last click, total) of each session."""
    windows = EventTimeSessionWindows.with_gap(Time.milliseconds(gap))
    return clicks.key_by("key").window(windows).process(Session(), output_type=SESSION)


def by_time() -> WatermarkStrategy:
    """Event time is the field `ts`, in order."""
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")


def check(task: str, mode: str) -> dict[str, int]:
    """The digest of a small run's rows; of a word that is told again and again, the last count."""
    env = environment(mode)
    if task == "words":
        numbers = env.from_source(
            NumberSequenceSource(0, common.CHECK_RECORDS - 1), WatermarkStrategy.no_watermarks(), "numbers"
        )
        counts: dict[str, int] = {}
        with words(numbers, common.CHECK_KEYS).execute_and_collect() as rows:
            for word, count in rows:
                counts[word] = max(count, counts.get(word, 0))
        return common.digest(counts.items())
    clicks = [Click(*batch_input.click(index)) for index in range(common.CHECK_RECORDS)]
    stream = env.from_collection(clicks).assign_timestamps_and_watermarks(by_time())
    with sessions(stream, batch_input.CHECK_GAP).execute_and_collect() as rows:
        return common.digest(tuple(row) for row in rows)


def run(task: str, mode: str, records: int, keys: int) -> None:
    """One measured run."""
    env = environment(mode)
    if task == "words":
        source = NumberSequenceSource(0, records - 1)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        words(numbers, keys).sink_to(BlackHoleSink())
    else:
        fields = {
            "key": RandomInt(0, keys - 1),
            "ts": Sequence(step=1),
            "amount": RandomInt(0, common.AMOUNTS - 1),
        }
        clicks = DataGenSource(fields=fields, count=records, seed=7, record_type=Click)
        sessions(env.from_source(clicks, by_time(), "clicks"), keys).sink_to(BlackHoleSink())
    env.execute(f"{task} as {mode}")


def main() -> None:
    """Check or measure."""
    args = common.arguments(
        __doc__, task="words", mode="batch", base=1_000_000, records=50_000_000, keys=batch_input.KEYS
    )
    common.contest(
        args,
        lambda: check(args.task, args.mode),
        lambda: common.rate_of(lambda records: run(args.task, args.mode, records, args.keys), args),
    )


if __name__ == "__main__":
    main()
