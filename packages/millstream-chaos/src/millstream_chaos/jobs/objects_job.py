"""The driver of the job of `chaos objects`: `python -m millstream_chaos.jobs.objects_job NAME RECORDS EPOCH_RECORDS`.

Promises: checkpoints, leases and output are below `s3://chaos/NAME`; prints a line for each epoch, and at the end the
status of the job.
Does not know: faults. Environment variables have the address of the store."""

from __future__ import annotations

import sys

from millstream.cluster import entrypoint
from millstream.cluster.job_events import EpochDone, JobEvent
from millstream.common import Configuration, Encoder, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.state import ValueState, ValueStateDescriptor
from millstream.testing.inline_engine import InlineEngine

BUCKET = "chaos"
KEYS = 7


class Count(KeyedProcessFunction):
    """Emits each number with the count of its key so far."""

    _count: ValueState[int]

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state."""
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> list[str]:
        """Emit the number and the count."""
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        return [f"{value},{count}"]


def main(name: str, records: int, epoch_records: int) -> None:
    """Run the job to its end; an earlier driver may have started it already."""
    root = f"s3://{BUCKET}/{name}"
    configuration = Configuration.from_dict(
        {
            "parallelism.default": "2",
            "millstream.epoch.max-records": str(epoch_records),
            "execution.checkpointing.interval": "200 ms",
            "execution.checkpointing.dir": f"{root}/checkpoints",
            "execution.checkpointing.tolerable-failed-checkpoints": "3",
            "high-availability.type": "lease",
            "high-availability.storageDir": f"{root}/ha",
            "high-availability.cluster-id": name,
            "millstream.high-availability.lease-duration": "3 s",
            "restart-strategy.type": "exponential-delay",
            "restart-strategy.exponential-delay.initial-backoff": "50 ms",
            "restart-strategy.exponential-delay.max-backoff": "1 s",
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers = env.from_source(NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.set_parallelism(1)  # so that each key's numbers come in order
    lines = numbers.key_by(lambda number: number % KEYS, Types.LONG()).process(Count(), Types.STRING())
    lines.sink_to(FileSink.for_row_format(f"{root}/out", Encoder.simple_string_encoder()).build())

    def report(event: JobEvent) -> None:
        if isinstance(event, EpochDone):
            print("epoch", flush=True)

    job = entrypoint.submit(env._graph(), configuration, name, engine=InlineEngine(), listeners=[report])
    job.wait()
    if job.master.failure is not None:
        print(job.master.failure)
    print(job.master.job.status.name)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
