"""A leader whose engine is lost for good leaves the job to a standby driver: two drivers in real time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from millstream.cluster import entrypoint
from millstream.common import Configuration, Encoder, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.engine.contract import Deployment, EngineGone, EpochRequest, EpochResult
from millstream.errors import ExternalError
from millstream.job.job_status import JobStatus
from millstream.testing.inline_engine import InlineEngine


class Dying(InlineEngine):
    """Is lost in an epoch, and cannot be started again."""

    def __init__(self, then: type[ExternalError]) -> None:
        super().__init__()
        self._then, self._epochs = then, 0

    def deploy(self, deployment: Deployment) -> None:
        if self._epochs > 3:
            raise self._then("no JVM starts on this machine any more")
        super().deploy(deployment)

    def run_epoch(self, request: EpochRequest) -> EpochResult:
        self._epochs += 1
        if self._epochs > 3:
            raise ExternalError("the JVM has ended")
        return super().run_epoch(request)


class Refusing(InlineEngine):
    """Fails in the fourth epoch, whenever that is run."""

    def run_epoch(self, request: EpochRequest) -> EpochResult:
        if request.epoch == 4:
            raise ExternalError("this machine cannot run epoch 4")
        return super().run_epoch(request)


def submitted(directory: Path, engine: Any, interval: str = "1 ms") -> entrypoint.RunningJob:
    configuration = Configuration()
    for name in ("checkpoints", "leases"):
        (directory / name).mkdir(exist_ok=True)
    for key, value in {
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.interval": interval,
        "high-availability.type": "lease",
        "high-availability.storageDir": str(directory / "leases"),
        "millstream.high-availability.lease-duration": "400 ms",
        "millstream.high-availability.progress-timeout": "2 s",
        "millstream.epoch.max-records": "10",
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.initial-backoff": "20 ms",
        "restart-strategy.exponential-delay.max-backoff": "100 ms",
    }.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers = env.from_source(NumberSequenceSource(0, 99), WatermarkStrategy.no_watermarks(), "numbers")
    lines = numbers.map(lambda value: str(value), Types.STRING())
    lines.sink_to(FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder()).build())
    return entrypoint.submit(env._graph(), configuration, "giving up", engine=engine)


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        (ExternalError, "the job made no progress for 2 s, so this driver gave up the lease of term 1: no JVM starts"),
        (EngineGone, "no JVM starts on this machine any more"),
    ],
)
def test_a_leader_without_engine_gives_up_and_the_standby_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: type[ExternalError], reason: str
) -> None:
    give_up(tmp_path, monkeypatch, Dying(then), reason)


@pytest.mark.parametrize("interval", ["1 ms", "1 h"])
def test_a_leader_that_always_fails_at_one_epoch_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval: str
) -> None:
    """With the long interval the epochs before it are replayed after each failure."""
    reason = (
        "the job made no progress for 2 s, so this driver gave up the lease of term 1: this machine cannot run epoch 4"
    )
    give_up(tmp_path, monkeypatch, Refusing(), reason, interval)


def give_up(
    directory: Path, monkeypatch: pytest.MonkeyPatch, engine: InlineEngine, reason: str, interval: str = "1 ms"
) -> None:
    jobs = []
    for each in (engine, InlineEngine()):
        monkeypatch.setattr(entrypoint, "_submissions", Counter())  # as in another process
        jobs.append(submitted(directory, each, interval))
    first, second = jobs
    assert first.wait(60)
    assert first.master.job.status is JobStatus.SUSPENDED
    assert str(first.master.failure).startswith(reason)
    assert second.wait(60)
    assert second.master.job.status is JobStatus.FINISHED
    files = [file for file in (directory / "out").rglob("*") if file.is_file() and "/." not in str(file)]
    found = sorted(int(line) for file in files for line in file.read_text().splitlines())
    assert found == list(range(100))
