"""Failures of real workers: they die, hang and are cancelled, and no committed output is lost or repeated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from millstream.cluster.job_events import EpochCut
from millstream.common import Configuration, Encoder, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.state import ValueStateDescriptor
from millstream.errors import ExternalError
from millstream.job.job_status import JobStatus

pytestmark = pytest.mark.usefixtures("spark_context")

RECORDS = 3000
KEYS = 50


def environment(directory: Path, **settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    (directory / "checkpoints").mkdir(exist_ok=True)
    configuration.set_string("execution.checkpointing.dir", str(directory / "checkpoints"))
    configuration.set_string("execution.checkpointing.interval", "200 ms")
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "3")
    configuration.set_string("restart-strategy.fixed-delay.delay", "10 ms")
    configuration.set_string("millstream.epoch.max-records", "300")
    for key, value in settings.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


class Counting(KeyedProcessFunction):
    """Counts by key; causes a fault in the worker once, at one record."""

    def __init__(self, accident: Any, marker: Path) -> None:
        self.accident, self.marker = accident, marker

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        if value == RECORDS // 2 and not self.marker.exists():
            self.marker.touch()
            self.accident()
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value % KEYS} {count}"


def kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def exit_process() -> None:
    os._exit(3)


def fail() -> None:
    raise RuntimeError("once")


def expected() -> Counter[str]:
    seen: Counter[int] = Counter()
    lines: Counter[str] = Counter()
    for value in range(RECORDS):
        seen[value % KEYS] += 1
        lines[f"{value % KEYS} {seen[value % KEYS]}"] += 1
    return lines


def lines_of(directory: Path) -> Counter[str]:
    files = [file for file in directory.rglob("*") if file.is_file() and not any(p.startswith(".") for p in file.parts)]
    return Counter(line for file in files for line in file.read_text().splitlines())


def build(env: StreamExecutionEnvironment, directory: Path, accident: Any) -> None:
    numbers = env.from_source(NumberSequenceSource(0, RECORDS - 1), WatermarkStrategy.no_watermarks(), "numbers")
    counted = numbers.key_by(lambda v: v % KEYS, Types.LONG()).process(
        Counting(accident, directory / "happened"), Types.STRING()
    )
    counted.sink_to(FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder()).build())


@pytest.mark.parametrize(("accident", "restarts"), [(kill_worker, 0), (exit_process, 0), (fail, 1)])
def test_a_failure_in_a_worker_does_not_change_the_output(tmp_path: Path, accident: Any, restarts: int) -> None:
    """A dead worker is replaced by Spark within the epoch; a failing function restarts the job from its checkpoint."""
    env = environment(tmp_path)
    build(env, tmp_path, accident)
    result = env.execute("accident")
    assert (tmp_path / "happened").exists()
    assert lines_of(tmp_path / "out") == expected()
    assert result.get_accumulator_result("millstream.restarts") == restarts


def test_an_epoch_that_never_ends_is_cancelled_at_its_deadline(tmp_path: Path) -> None:
    def forever() -> None:
        while True:
            time.sleep(0.1)

    env = environment(tmp_path, millstream__epoch__deadline="3 s", restart_strategy__type="none")
    build(env, tmp_path, forever)
    with pytest.raises(ExternalError, match=r"did not end within 3 s.*deadline"):
        env.execute("hangs")


def test_a_hung_worker_is_replaced_after_the_deadline_and_nothing_is_lost(tmp_path: Path) -> None:
    def hang() -> None:
        time.sleep(60)

    env = environment(tmp_path, millstream__epoch__deadline="15 s")
    cuts = cuts_of(env)
    build(env, tmp_path, hang)
    result = env.execute("hangs once")
    assert lines_of(tmp_path / "out") == expected()
    assert result.get_accumulator_result("millstream.restarts") == len(cuts) == 1


def test_cancel_ends_a_job_and_leaves_only_committed_output(tmp_path: Path) -> None:
    env = environment(tmp_path)
    build(env, tmp_path, lambda: time.sleep(30))
    client = env.execute_async("cancelled")
    deadline = time.monotonic() + 60
    while not (tmp_path / "happened").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    client.cancel().result(30)
    assert client.get_job_status().result() is JobStatus.CANCELED
    assert not lines_of(tmp_path / "out") - expected()


def cuts_of(env: StreamExecutionEnvironment) -> list[EpochCut]:
    """A list that the `EpochCut` events of the next job of an environment are added to."""
    cuts: list[EpochCut] = []
    env.register_listener(lambda seen: cuts.append(seen) if isinstance(seen, EpochCut) else None)
    return cuts


class Greedy(ProcessFunction):
    """Is killed at the 60th record of an epoch, which is one moment of processing time."""

    def open(self, runtime_context):
        self.seen = 0, 0

    def process_element(self, value, ctx):
        now = ctx.timer_service().current_processing_time()
        self.seen = now, self.seen[1] + 1 if self.seen[0] == now else 1
        if self.seen[1] == 60:
            kill_worker()
        yield str(value)


def test_an_epoch_that_is_too_large_for_its_workers_becomes_smaller(tmp_path: Path) -> None:
    """A worker that is killed because of its memory would be killed in every replay."""
    env = environment(tmp_path)
    cuts = cuts_of(env)
    numbers = env.from_source(NumberSequenceSource(0, 599), WatermarkStrategy.no_watermarks(), "numbers")
    out = numbers.process(Greedy(), Types.STRING())
    out.sink_to(FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build())
    result = env.execute("too large")
    assert lines_of(tmp_path / "out") == Counter(map(str, range(600)))
    assert cuts[0] == EpochCut(1, 300, 75)
    assert result.get_accumulator_result("millstream.restarts") == len(cuts)


def test_lost_map_output_that_some_tasks_have_read(tmp_path: Path) -> None:
    """Spark computes it again for the others: with a random key they would get other records than the first ones.

    In a process of its own: Spark's local mode cannot be used any more afterwards, and is replaced by the next job."""
    program = str(Path(__file__).with_name("losing_map_output.py"))
    command = [sys.executable, program, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert answer.returncode == 0, answer.stderr[-3000:]
    first, second = (json.loads(line) for line in answer.stdout.splitlines()[-2:])
    assert first == {"happened": True, "right": True, "restarts": 0}
    assert "the epoch is run again" in answer.stderr
    assert second == {"rows": 200_000}
    assert "another Spark is started: it has lost the blocks" in answer.stderr
