"""Batch jobs on real workers: Spark sorts and spills, workers die, and output is written exactly once."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from millstream.common import Configuration, Encoder, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.state import ValueStateDescriptor
from millstream.errors import UserError

pytestmark = pytest.mark.usefixtures("spark_context")

RECORDS = 60_000
KEYS = 5_000
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


def environment(**settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.runtime-mode", "BATCH")
    configuration.set_string("millstream.batch.run-size", "1 mb")
    for key, value in settings.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


def numbers(env: StreamExecutionEnvironment):
    return env.from_source(NumberSequenceSource(0, RECORDS - 1), WatermarkStrategy.no_watermarks(), "numbers")


class Total(KeyedProcessFunction):
    """Emits the total of a key when the key is finished; kills the worker once, at one record."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        if value == RECORDS // 2 and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self.total.update((self.total.value() or 0) + value)
        ctx.timer_service().register_event_time_timer(0)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.total.value()


def test_a_dead_worker_does_not_change_the_output(tmp_path: Path) -> None:
    env = environment()
    totals = numbers(env).key_by(lambda n: n % KEYS, Types.LONG()).process(Total(tmp_path / "killed"), PAIR)
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    by_digit = totals.key_by(lambda pair: pair[0] % 10, Types.LONG()).sum(1)
    totals.union(by_digit.map(lambda pair: (pair[0] % 10 - 10, pair[1]), PAIR)).map(str, Types.STRING()).sink_to(sink)
    result = env.execute("killed")
    assert (tmp_path / "killed").exists()
    assert result.get_accumulator_result("millstream.restarts") == 0
    expected: Counter[int] = Counter()
    for n in range(RECORDS):
        expected[n % KEYS] += n
        expected[n % KEYS % 10 - 10] += n
    found = Counter(line for file in (tmp_path / "out").rglob("part*") for line in file.read_text().splitlines())
    assert found == Counter(map(str, expected.items()))


def test_a_failing_function_is_reported_as_in_streaming_mode() -> None:
    env = environment()
    with pytest.raises(UserError, match=r"ZeroDivisionError(.|\n)*in operator 'Map'"):
        list(numbers(env).map(lambda n: 1 // (n - 7)).execute_and_collect())


def test_results_are_collected() -> None:
    env = environment()
    sums = numbers(env).map(lambda n: (n % 7, n), PAIR).key_by(lambda pair: pair[0], Types.LONG()).sum(1)
    assert sorted(sums.execute_and_collect()) == [(k, sum(range(k, RECORDS, 7))) for k in range(7)]
