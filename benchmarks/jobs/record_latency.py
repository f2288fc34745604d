"""How long a record takes in millstream, from the socket to the sink function, with `exchange` exchanges by key.

Promises: a count per key in Python after each exchange; checkpoints every 10 s; everything else by default.
Does not know: peers, or how the latencies are compared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial

from benchmarks import common, record_feed
from benchmarks.jobs import epochs

from millstream.common import Types
from millstream.datastream import KeyedProcessFunction, RuntimeContext
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.state import ValueState, ValueStateDescriptor

RECORD = Types.TUPLE([Types.LONG(), Types.LONG()])


class Count(KeyedProcessFunction):
    """Counts the records of a key, and emits them unchanged."""

    state: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, int]]:
        self.state.update((self.state.value() or 0) + 1)
        yield value


def arrive(directory: str, rate: int, record: tuple[int, int]) -> int:
    """The sink function."""
    record_feed.note_arrival(directory, rate, *record)
    return record[0]


def main() -> None:
    """Measure; there is nothing to compare in the output of a clock."""
    args = common.arguments(__doc__, exchange=0, rate=50, seconds=20, engine="jobs")
    with record_feed.feed(args.rate, args.seconds) as feed, tempfile.TemporaryDirectory() as directory:
        env = epochs.environment(
            **{
                "millstream.engine": args.engine,
                "execution.checkpointing.interval": "10 s",
                "execution.checkpointing.dir": directory,
            }
        )
        stream = env.socket_text_stream("127.0.0.1", feed.port).map(record_feed.parse, RECORD)
        for _ in range(args.exchange):
            stream = stream.key_by(lambda record: record[0] % record_feed.KEYS, Types.LONG()).process(Count(), RECORD)
        stream.map(partial(arrive, feed.directory, args.rate), Types.LONG()).sink_to(BlackHoleSink())
        client = env.execute_async("record latency")
        answer = feed.wait()
        client.cancel().result(60)
    common.answer(answer)


if __name__ == "__main__":
    main()
