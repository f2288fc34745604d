"""Recovery: a job dies, and a second run continues from the last checkpoint, here with more subtasks."""

import tempfile
from pathlib import Path

from millstream.common import Configuration, Types
from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import MillstreamError

TOTAL = 3_000


def count_up(directory: str, fails: bool, parallelism: int, checkpoint: str | None = None) -> list[tuple[str, int]]:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "1 ms")  # after every epoch
    configuration.set_string("execution.checkpointing.dir", directory)
    configuration.set_string("restart-strategy.type", "none")  # die at the first failure
    configuration.set_integer("millstream.epoch.max-records", 1_000)
    if checkpoint is not None:
        configuration.set_string("execution.state-recovery.path", checkpoint)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism).set_max_parallelism(8)

    def checked(number: int) -> tuple[str, int]:
        if fails and number == TOTAL - 1:
            raise RuntimeError("the power went out")
        return "even" if number % 2 == 0 else "odd", 1

    counts = (
        env.from_collection(range(TOTAL), Types.LONG())
        .map(checked, Types.TUPLE([Types.STRING(), Types.LONG()]))
        .uid("checked")
        .key_by(lambda pair: pair[0], Types.STRING())
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
        .uid("counts")
    )
    return list(counts.execute_and_collect())


with tempfile.TemporaryDirectory() as directory:
    try:
        count_up(directory, fails=True, parallelism=1)
    except MillstreamError as problem:
        print(
            "the first run failed:", next(line for line in str(problem).splitlines() if line.startswith("RuntimeError"))
        )
    newest = max(Path(directory).glob("*/chk-*"), key=lambda path: int(path.name.removeprefix("chk-")))
    rest = count_up(directory, fails=False, parallelism=2, checkpoint=str(newest))
    print(f"the second run went on from {newest.name} and looked at {len(rest):,} of {TOTAL:,} numbers")
    print("in all:", dict(sorted(rest)))  # a later count of the same key replaces an earlier one
