"""A job is cancelled while it commits: no staged output is left that no checkpoint names."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from millstream.cluster import entrypoint
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.errors import ExternalError
from millstream.job.job_status import JobStatus
from millstream.testing.inline_engine import InlineEngine


class Store:
    """A system with prepared transactions, whose commits wait from the second checkpoint on."""

    def __init__(self) -> None:
        self.prepared: set[str] = set()
        self.done: list[str] = []
        self.waits, self.let_go, self.broken = threading.Event(), threading.Event(), threading.Event()
        self.refusals = 0  # commits that fail after the one that waited
        self.is_busy = True

    def commit(self, checkpoint: int, gids: Sequence[str]) -> None:
        if checkpoint >= 2 and self.is_busy:
            self.waits.set()
            while not self.let_go.wait(0.005):
                if self.broken.is_set():
                    self.is_busy = False
                    raise ExternalError("the connection was broken")
            self.is_busy = False
        elif checkpoint >= 2 and self.refusals:
            self.refusals -= 1
            raise ExternalError("the database is down")
        for gid in gids:
            self.prepared.discard(gid)
            self.done += [gid] if gid not in self.done else []


STORE = Store()


class Writer(SinkWriter):
    def __init__(self, context: WriterContext) -> None:
        self.gid, self.rows = f"{context.epoch}-{context.subtask}", 0

    def write(self, values: Sequence[Any], timestamps: Any) -> None:
        self.rows += len(values)

    def prepare_commit(self) -> list[Any]:
        if self.rows:
            STORE.prepared.add(self.gid)
        return [self.gid] if self.rows else []


class StoreCommitter(Committer):
    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        STORE.commit(checkpoint, committables)

    def abort(self, committables: Sequence[Any]) -> None:
        STORE.prepared -= set(committables)

    def interrupt(self) -> None:
        STORE.broken.set()


class TwoPhase(Sink):
    def create_writer(self, context: WriterContext) -> SinkWriter:
        return Writer(context)

    def create_committer(self) -> Committer:
        return StoreCommitter()


class NotingEngine(InlineEngine):
    """Notes whether its tasks were cancelled while the commit waited."""

    cancelled_meanwhile = False

    def cancel(self) -> None:
        self.cancelled_meanwhile |= STORE.waits.is_set() and STORE.is_busy


def submit(directory: Path, engine: InlineEngine, **options: str) -> entrypoint.RunningJob:
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.dir": str(directory),
        "execution.checkpointing.interval": "1 ms",
        "millstream.epoch.max-records": "10",
        **options,
    }.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    source = NumberSequenceSource(0, 99)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    numbers.sink_to(TwoPhase()).name("store")
    return entrypoint.submit(env._graph(), configuration, "two-phase", engine=engine)


def cancelled(directory: Path, **options: str) -> tuple[entrypoint.RunningJob, NotingEngine]:
    """A job that is cancelled while its commit waits."""
    engine = NotingEngine()
    job = submit(directory, engine, **options)
    assert STORE.waits.wait(20)
    job.master.cancel()
    return job, engine


def ended(job: entrypoint.RunningJob) -> list[str]:
    """The names of the checkpoints that a cancelled job left."""
    assert job.wait(20)
    assert job.master.job.status is JobStatus.CANCELED
    root = Path(job.master._execution.checkpoints.storage.root)
    return sorted(path.name for path in root.rglob("chk-*"))


@pytest.fixture(autouse=True)
def store() -> Store:
    STORE.__init__()  # type: ignore[misc]
    return STORE


def test_a_commit_under_way_gets_time_to_end(store: Store, tmp_path: Path) -> None:
    job, engine = cancelled(tmp_path)
    time.sleep(0.2)
    assert not store.broken.is_set()
    store.let_go.set()
    assert ended(job) == []
    assert not engine.cancelled_meanwhile
    assert not store.broken.is_set()
    assert (store.done, store.prepared) == (["1-0", "2-0"], set())


def test_an_interrupted_commit_is_attempted_once_more(store: Store, tmp_path: Path) -> None:
    job, _ = cancelled(tmp_path, **{"task.cancellation.timeout": "100 ms"})
    assert ended(job) == []
    assert store.broken.is_set()
    assert (store.done, store.prepared) == (["1-0", "2-0"], set())


def test_the_checkpoint_of_output_that_could_not_be_committed_is_kept(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.refusals = 1
    with caplog.at_level(logging.ERROR):
        job, _ = cancelled(tmp_path, **{"task.cancellation.timeout": "100 ms"})
        assert "chk-2" in ended(job)
    assert (store.done, store.prepared) == (["1-0"], {"2-0"})
    path = job.master._execution.checkpoints.path_of(2)
    assert "the job is CANCELED, but output of sink 'store' of checkpoint 2 may not be committed" in caplog.text
    assert f"the database is down. What is left: 2-0. {path} is kept: a job that starts from it" in caplog.text
    again = submit(tmp_path, InlineEngine(), **{"execution.state-recovery.path": path})
    assert again.wait(20)
    assert again.master.job.status is JobStatus.FINISHED
    assert store.done == [f"{epoch}-0" for epoch in range(1, 11)]
    assert store.prepared == set()


def test_a_commit_that_cannot_be_interrupted_does_not_delay_the_cancellation(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoreCommitter, "interrupt", lambda committer: None)
    monkeypatch.setattr("millstream.cluster.connector_deadlines._ENDING", 0.05)
    job, _ = cancelled(tmp_path, **{"task.cancellation.timeout": "100 ms"})
    assert "chk-2" in ended(job)
    assert "timed out and has still not ended" in caplog.text
    assert store.prepared == {"2-0"}
    store.let_go.set()
