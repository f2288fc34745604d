"""Stop a job with a savepoint, then start a new version of the program from it, with another parallelism."""

import tempfile
import time

from millstream.common import Configuration, JobClient, Types, WatermarkStrategy
from millstream.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors import NumberSequenceSource
from millstream.datastream.state import ValueStateDescriptor
from millstream.state_processor import Savepoint


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


def count_numbers(last: int, parallelism: int, savepoint: str | None = None) -> DataStream:
    configuration = Configuration()
    configuration.set_integer("millstream.epoch.max-records", 2_000)  # small, so that there is time to stop the job
    if savepoint is not None:
        configuration.set_string("execution.state-recovery.path", savepoint)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism).set_max_parallelism(16)
    numbers = env.from_source(NumberSequenceSource(1, last), WatermarkStrategy.no_watermarks(), "numbers")
    counts = numbers.uid("numbers").key_by(lambda number: number % 4, Types.LONG()).process(Count())
    return counts.uid("counts").filter(lambda count: count[1] == last // 4)  # uids connect operators with their state


def stop_in_the_middle(job: JobClient, directory: str) -> str:
    time.sleep(1)
    return job.stop_with_savepoint(False, directory).result(60)


LAST = 200_000
with tempfile.TemporaryDirectory() as directory:
    first = count_numbers(LAST, parallelism=1)
    first.print()
    path = stop_in_the_middle(first.get_execution_environment().execute_async("first version"), directory)
    counted = sum(Savepoint(path).operator("counts").state("count").entries().values())
    print("stopped before the end:", counted < LAST)
    second = count_numbers(LAST, parallelism=2, savepoint=path)
    print("each key was counted to the end:", sorted(second.execute_and_collect()))
