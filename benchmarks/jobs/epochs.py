"""What the benchmarks of single epochs share: a stepped source, a count per key, the job's own reports.

Promises: epochs come back in order, as the job measured them, without the ones that loaded.
Does not know: what is asked of the figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import common
from benchmarks.jobs.stepped_source import SteppedSource

from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.state import ValueState, ValueStateDescriptor

EPOCHS = "millstream.epochs"
CHECKPOINTS = "millstream.checkpoints"


class Counted(KeyedProcessFunction):
    """Running count of a key."""

    state: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        count = (self.state.value() or 0) + 1
        self.state.update(count)
        yield count


def environment(**settings: str) -> StreamExecutionEnvironment:
    """The benchmark's parallelism, and the settings asked for."""
    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(common.PARALLELISM)
    return env


def numbers(env: StreamExecutionEnvironment, source: SteppedSource) -> DataStream:
    """The stream of the source's keys."""
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", type_info=Types.LONG())


def counts(stream: DataStream) -> DataStream:
    """One exchange by key, and a running count."""
    return stream.key_by(lambda key: key, key_type=Types.LONG()).process(Counted(), output_type=Types.LONG())


def reports(env: StreamExecutionEnvironment, output: DataStream, name: str, accumulator: str) -> list[dict[str, Any]]:
    """Run the job with its output discarded; what it reports under the accumulator's name."""
    output.sink_to(BlackHoleSink())
    result = env.execute(name)
    return list(result.get_accumulator_result(accumulator))


def all_reports(
    env: StreamExecutionEnvironment, output: DataStream, name: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Run the job with its output discarded; what it reports of its epochs, and of its checkpoints."""
    output.sink_to(BlackHoleSink())
    result = env.execute(name)
    return list(result.get_accumulator_result(EPOCHS)), list(result.get_accumulator_result(CHECKPOINTS))


def durations(epochs: list[dict[str, Any]], records: int, wanted: int) -> list[float]:
    """The durations in ms of the last `wanted` epochs that had exactly so many records."""
    full = [float(epoch["duration_ms"]) for epoch in epochs if epoch["records"] == records]
    if len(full) < wanted:
        sizes = sorted({epoch["records"] for epoch in epochs})
        message = f"wanted {wanted} epochs of {records} records, found {len(full)}; sizes seen: {sizes[:10]}"
        raise SystemExit(message)
    return full[-wanted:]
