"""The measurements of one environment of the matrix; prints one line of JSON.

    python tests/matrix/trial.py DIRECTORY

Every part checks its result before its figure counts."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from millstream.common import Configuration, Encoder, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.state import ValueStateDescriptor
from millstream.table import EnvironmentSettings, TableEnvironment

KEYS = 100


class Count(KeyedProcessFunction):
    """Counts the numbers of each key."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value % KEYS} {count}"


def environment(directory: Path, **settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    (directory / "checkpoints").mkdir(parents=True, exist_ok=True)
    given = {"execution.checkpointing.dir": str(directory / "checkpoints"), "execution.checkpointing.interval": "1 s"}
    given |= {key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()}
    for key, value in {**given, "millstream.spark.master": "local[2]"}.items():
        configuration.set_string(key, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


def count_numbers(env: StreamExecutionEnvironment, directory: Path, numbers: int) -> None:
    source = env.from_source(NumberSequenceSource(0, numbers - 1), WatermarkStrategy.no_watermarks(), "numbers")
    counted = source.uid("numbers").key_by(_key, Types.LONG()).process(Count(), Types.STRING()).uid("count")
    counted.sink_to(FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder()).build()).uid("out")


def _key(number: int) -> int:
    return number % KEYS


def check_output(directory: Path, numbers: int) -> None:
    files = [f for f in (directory / "out").rglob("*") if f.is_file() and not any(p.startswith(".") for p in f.parts)]
    lines = Counter(line for file in files for line in file.read_text().splitlines())
    counts = {f"{number % KEYS} {number // KEYS + 1}" for number in range(numbers)}
    assert lines == Counter(counts), f"{sum(lines.values())} lines instead of {numbers}"


def first_job(directory: Path) -> float:
    """Seconds from nothing to the end of a small job."""
    return timed(lambda: run_counts(directory, 1000))


def run_counts(directory: Path, numbers: int, **settings: str) -> Any:
    env = environment(directory, **settings)
    count_numbers(env, directory, numbers)
    result = env.execute("numbers")
    check_output(directory, numbers)
    return result


def keyed_state(directory: Path) -> float:
    """Numbers counted by key in a second."""
    numbers = 200_000
    return numbers / timed(lambda: run_counts(directory, numbers))


def epoch(directory: Path) -> float:
    """Milliseconds of a small epoch."""
    results: list[Any] = []
    seconds = timed(lambda: results.append(run_counts(directory, 6000, millstream__epoch__max_records="100")))
    return 1000 * seconds / results[0].get_accumulator_result("millstream.epochs.count")


def savepoint(directory: Path) -> float:
    """Seconds to stop a job with a savepoint, and to run the rest of it from there at another parallelism."""
    numbers = 20_000
    env = environment(directory, millstream__epoch__max_records="100")
    count_numbers(env, directory, numbers)
    client = env.execute_async("stopped")
    while not list((directory / "out").rglob("*")):
        time.sleep(0.05)

    def continue_elsewhere() -> None:
        path = client.stop_with_savepoint(False, str(directory / "savepoint")).result(120)
        again = environment(directory, execution__state_recovery__path=path).set_parallelism(3)
        count_numbers(again, directory, numbers)
        again.execute("continued")

    seconds = timed(continue_elsewhere)
    check_output(directory, numbers)
    return seconds


def batch(directory: Path) -> float:
    """Numbers counted by key in a second, by a batch job with two stages."""
    numbers = 200_000
    env = environment(directory)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    count_numbers(env, directory, numbers)
    seconds = timed(lambda: env.execute("batch"))
    check_output(directory, numbers)
    return numbers / seconds


def streaming_sql(directory: Path) -> float:
    """Rows aggregated in a second by a streaming query."""
    return sql(directory, EnvironmentSettings.in_streaming_mode())


def batch_sql(directory: Path) -> float:
    """Rows aggregated in a second by a batch query, which Catalyst plans."""
    return sql(directory, EnvironmentSettings.in_batch_mode())


def sql(directory: Path, settings: EnvironmentSettings) -> float:
    numbers = 200_000
    env = TableEnvironment.create(settings)
    env.get_config().set("parallelism.default", "2")
    env.execute_sql(
        f"""CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '{numbers}',
        'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '{numbers - 1}')"""
    )
    totals: dict[int, tuple[int, int]] = {}

    def collect() -> None:
        query = f"SELECT MOD(n, {KEYS}) AS k, COUNT(*), SUM(n) FROM numbers GROUP BY MOD(n, {KEYS})"
        with env.execute_sql(query).collect() as rows:
            totals.update({row[0]: (row[1], row[2]) for row in rows})

    seconds = timed(collect)
    expected = {key: (numbers // KEYS, sum(range(key, numbers, KEYS))) for key in range(KEYS)}
    assert totals == expected
    return numbers / seconds


def timed(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


PARTS = (first_job, keyed_state, epoch, savepoint, batch, streaming_sql, batch_sql)


def main(root: Path, names: list[str]) -> None:
    figures = {}
    for part in PARTS:
        if not names or part.__name__ in names:
            (root / part.__name__).mkdir(parents=True)
            figures[part.__name__] = part(root / part.__name__)
            print(f"{part.__name__}: {figures[part.__name__]:.1f}", file=sys.stderr, flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
