"""Failures of resident slots: they die, hang and lose connections, and nothing is lost or repeated."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from millstream.common import Configuration, Encoder, Types, WatermarkStrategy
from millstream.connector.slot_task import SlotTask
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.state import ValueStateDescriptor
from millstream.engine.contract import Deployment
from millstream.engine.spark import session
from millstream.engine.spark.resident import engine as resident
from millstream.engine.spark.resident.peers import Peers
from millstream.engine.spark.resident.stage import ResidentStage
from millstream.errors import ExternalError
from millstream.job.job_status import JobStatus

RECORDS, KEYS = 1200, 20


@pytest.fixture(scope="module", autouse=True)
def spark() -> Iterator[Any]:
    """A Spark with two cores and task slots for resident stages; jobs of other modules run on another one."""
    session.stop()
    context = session.spark_context(
        {"millstream.spark.master": "local[2]", "millstream.engine": "resident", "spark.driver.memory": "2g"}, slots=2
    )
    yield context
    session.stop()


def environment(directory: Path, **settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration.from_dict(
        {
            "millstream.engine": "resident",
            "execution.checkpointing.dir": str(directory),
            "execution.checkpointing.interval": "100 ms",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "3",
            "restart-strategy.fixed-delay.delay": "10 ms",
            "millstream.epoch.max-records": "100",
            **{key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()},
        }
    )
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


class Counting(KeyedProcessFunction):
    """Counts by key; causes a fault in the slot once, at one record."""

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


def build(env: StreamExecutionEnvironment, directory: Path, accident: Any = lambda: None) -> None:
    numbers = env.from_source(NumberSequenceSource(0, RECORDS - 1), WatermarkStrategy.no_watermarks(), "numbers")
    counted = numbers.key_by(lambda v: v % KEYS, Types.LONG()).process(
        Counting(accident, directory / "happened"), Types.STRING()
    )
    counted.sink_to(FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder()).build())


def expected() -> Counter[str]:
    return Counter(f"{key} {count + 1}" for key in range(KEYS) for count in range(RECORDS // KEYS))


def lines_of(directory: Path) -> Counter[str]:
    files = [file for file in directory.rglob("*") if file.is_file() and not any(p.startswith(".") for p in file.parts)]
    return Counter(line for file in files for line in file.read_text().splitlines())


def send_signal(number: int) -> Any:
    return lambda: os.kill(os.getpid(), number)


def cut_connections() -> None:
    """Close the connections of this slot to the others, as a network does."""
    import gc

    for peers in [value for value in gc.get_objects() if isinstance(value, Peers)]:
        for channel in peers._channels.values():
            channel.close()


@pytest.mark.parametrize("accident", [send_signal(signal.SIGKILL), cut_connections], ids=["killed", "cut"])
def test_a_slot_that_is_lost_in_an_epoch_is_replaced_without_a_restart(
    tmp_path: Path, accident: Any, caplog: pytest.LogCaptureFixture
) -> None:
    env = environment(tmp_path / "checkpoints")
    build(env, tmp_path, accident)
    with caplog.at_level(logging.WARNING, "millstream.spark"):
        result = env.execute("lost slot")
    assert lines_of(tmp_path / "out") == expected()
    assert result.get_accumulator_result("millstream.restarts") == 0
    assert "runs again in a new stage: resident slot" in caplog.text


def test_a_slot_that_is_stopped_ends_at_the_deadline(tmp_path: Path) -> None:
    env = environment(tmp_path / "checkpoints", millstream__epoch__deadline="6 s")
    build(env, tmp_path, send_signal(signal.SIGSTOP))
    result = env.execute("stopped slot")
    assert lines_of(tmp_path / "out") == expected()
    assert result.get_accumulator_result("millstream.restarts") == 1


def test_a_slot_that_is_killed_during_a_checkpoint_is_replaced(tmp_path: Path, monkeypatch: Any) -> None:
    from millstream.cluster.checkpoints import Checkpoints

    stages: list[ResidentStage] = []
    publish, start = Checkpoints.complete, ResidentStage.start

    def note_start(stage: ResidentStage, *arguments: Any) -> None:
        stages.append(stage)
        start(stage, *arguments)

    def kill_and_publish(checkpoints: Checkpoints, *arguments: Any, **named: Any) -> Any:
        if len(stages) == 1 and not marker.exists():
            marker.touch()
            os.kill(stages[0].processes[0], signal.SIGKILL)
            while stages[0]._problem is None:  # Spark reports the end of its job before a connection is used
                time.sleep(0.01)
        return publish(checkpoints, *arguments, **named)

    marker = tmp_path / "killed"
    monkeypatch.setattr(ResidentStage, "start", note_start)
    monkeypatch.setattr(Checkpoints, "complete", kill_and_publish)
    env = environment(tmp_path / "checkpoints", execution__checkpointing__interval="1 ms")  # the first after one epoch
    build(env, tmp_path)
    result = env.execute("killed during a checkpoint")
    assert marker.exists()
    assert lines_of(tmp_path / "out") == expected()
    assert len(stages) == 2
    assert result.get_accumulator_result("millstream.restarts") == 0


def test_cancel_ends_a_function_that_loops(tmp_path: Path) -> None:
    def loop() -> None:
        while True:
            pass

    env = environment(tmp_path / "checkpoints")
    build(env, tmp_path, loop)
    client = env.execute_async("loops")
    for _ in range(600):
        if (tmp_path / "happened").exists():
            break
        threading.Event().wait(0.1)
    client.cancel().result(30)
    assert client.get_job_status().result() is JobStatus.CANCELED
    assert not lines_of(tmp_path / "out") - expected()


def test_tasks_between_epochs_run_on_the_slots_while_an_epoch_runs(tmp_path: Path, monkeypatch: Any) -> None:
    engines: list[resident.ResidentEngine] = []
    deploy = resident.ResidentEngine.deploy

    def note_engine(engine: resident.ResidentEngine, deployment: Deployment) -> None:
        deploy(engine, deployment)
        engines.append(engine)

    monkeypatch.setattr(resident.ResidentEngine, "deploy", note_engine)
    released = tmp_path / "released"

    def await_release() -> None:
        while not released.exists():
            time.sleep(0.01)

    env = environment(tmp_path / "checkpoints")
    build(env, tmp_path, await_release)
    client = env.execute_async("tasks")
    while not (tmp_path / "happened").exists():
        time.sleep(0.01)
    processes = [process for _, process in sorted(engines[0]._stage.processes.items())]
    assert engines[0].run_tasks([SlotTask(slot, os.getpid) for slot in (1, 0)]) == processes[::-1]
    engines[0].run_tasks([SlotTask(0, partial(Path.touch, released))])
    client.get_job_execution_result().result(120)
    assert lines_of(tmp_path / "out") == expected()


def test_blocks_beyond_the_memory_of_a_slot_go_through_its_disk(tmp_path: Path) -> None:
    env = environment(tmp_path / "checkpoints", millstream__resident__receive_memory="1 kb")
    build(env, tmp_path)
    env.execute("spools")
    assert lines_of(tmp_path / "out") == expected()


def test_too_few_task_slots_are_an_error_that_says_what_is_missing(tmp_path: Path) -> None:
    env = environment(tmp_path / "checkpoints", restart_strategy__type="none").set_parallelism(100)
    build(env, tmp_path)
    with pytest.raises(ExternalError, match="it needs 100 free task slots, but Spark has 38, of which 0 are taken"):
        env.execute("too wide")


def test_auto_runs_spark_jobs_where_resident_slots_do_not_fit(tmp_path: Path, caplog: Any, spark: Any) -> None:
    env = environment(tmp_path / "checkpoints", millstream__engine="auto")
    build(env, tmp_path)
    conf = spark.getConf()
    assert conf.get("spark.millstream.cores") == "2"
    with caplog.at_level(logging.INFO, "millstream.spark"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(resident, "find_obstacle", lambda *arguments: "there is no room")
        env.execute("jobs")
    assert lines_of(tmp_path / "out") == expected()
    assert "job 'jobs' runs as Spark jobs, not on resident slots: there is no room" in caplog.text
