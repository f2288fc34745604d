"""How long a record takes in PyFlink, from the socket to the sink function, with `exchange` exchanges by key.

Promises: Flink's own socket source, which is Java; checkpoints every 10 s; with `--tuned 1`, no buffer timeout and
bundles of one record, which is PyFlink at its best here.
Does not know: other peers, or how the latencies are compared."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import common, record_feed
from pyflink.common import Configuration, Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.state import ValueState, ValueStateDescriptor
from pyflink.java_gateway import get_gateway

RECORD = Types.TUPLE([Types.LONG(), Types.LONG()])
TUNED = {
    "execution.buffer-timeout.interval": "0 ms",
    "python.fn-execution.bundle.size": "1",
    "python.fn-execution.bundle.time": "1",
}


class Count(KeyedProcessFunction):
    """Counts the records of a key, and emits them unchanged."""

    state: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, int]]:
        self.state.update((self.state.value() or 0) + 1)
        yield value


def main() -> None:
    """Measure."""
    args = common.arguments(__doc__, exchange=0, rate=50, seconds=20, mode="thread", tuned=0)
    rate = args.rate
    with record_feed.feed(rate, args.seconds) as feed:
        directory = feed.directory

        def arrive(record: tuple[int, int]) -> int:
            record_feed.note_arrival(directory, rate, record[0], record[1])
            return record[0]

        configuration = Configuration()
        for key, value in {"python.execution-mode": args.mode, **(TUNED if args.tuned else {})}.items():
            configuration.set_string(key, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(common.PARALLELISM)
        env.enable_checkpointing(10_000)
        lines = DataStream(env._j_stream_execution_environment.socketTextStream("127.0.0.1", feed.port))
        stream = lines.map(record_feed.parse, output_type=RECORD)
        for _ in range(args.exchange):
            keyed = stream.key_by(lambda record: record[0] % record_feed.KEYS, key_type=Types.LONG())
            stream = keyed.process(Count(), output_type=RECORD)
        discarding = get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()
        stream.map(arrive, output_type=Types.LONG()).sink_to(Sink(discarding))
        client = env.execute_async("record latency")
        answer = feed.wait()
        client.cancel().result()
    common.answer(answer)


if __name__ == "__main__":
    main()
